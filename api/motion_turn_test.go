package api

import (
	"testing"

	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// TestMotionsTellThatTheyWaitForTheirTurn: a motion that is approved is neither open nor carried.
func TestMotionsTellThatTheyWaitForTheirTurn(t *testing.T) {
	for _, v := range []struct {
		m        node.Motion
		fate     string
		approved uint64
	}{
		{node.Motion{}, "open", 0},
		{node.Motion{Approved: 17}, "approved", 17},
		{node.Motion{Ending: &scope.Ending{Fate: scope.Carried, Height: 18}}, "carried", 0},
	} {
		v.m.Opening = &scope.Motion{}
		if got := motionOf(&v.m, nil); got.Fate != v.fate || got.ApprovedHeight != v.approved {
			t.Errorf("%s, approved in block %d; want %s, %d", got.Fate, got.ApprovedHeight, v.fate, v.approved)
		}
	}
}
