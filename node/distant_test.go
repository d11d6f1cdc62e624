package node

import (
	"bytes"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// TestBallotsFarAheadAreNotVerified: but those of views that the engine looks at
// are, and those that claim to be this anchor's own.
func TestBallotsFarAheadAreNotVerified(t *testing.T) {
	self, other := aweigh.AnchorID{1}, aweigh.AnchorID{2}
	n := &Replica{runner: &runner{}}
	n.runner.stand.Store(&machine.StatusSource{Self: self, View: 1000})
	ballot := func(a aweigh.AnchorID, v aweigh.View) []byte {
		b := votes.Ballot{Format: votes.Format, Anchor: a, Subject: quorum.Subject{Kind: quorum.Nullify, View: v}, Signature: bytes.Repeat([]byte{1}, 64)}
		return machine.RawFrame(machine.TagBallot, b.Encode())
	}
	for _, c := range []struct {
		what    string
		frame   []byte
		distant bool
	}{
		{"the view of this node", ballot(other, 1000), false},
		{"as far ahead as the engine looks", ballot(other, 1000+quorum.Ahead), false},
		{"a view of before", ballot(other, 1), false},
		{"far ahead", ballot(other, 1<<32), true},
		{"far ahead, its own", ballot(self, 1<<32), false},
		{"another frame", machine.Tagged(machine.TagAsk, machine.Ask{Round: 1 << 32}), false},
		{"no ballot", []byte{machine.TagBallot, 1, 2, 3}, false},
		{"nothing", nil, false},
	} {
		if got := n.distant(c.frame); got != c.distant {
			t.Errorf("%s: passed over: %v", c.what, got)
		}
	}
}
