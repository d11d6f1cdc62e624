package policytext_test

import (
	"errors"
	"testing"

	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/scope"
)

// TestTopologiesAreRead: the words of --split, and what is left out.
func TestTopologiesAreRead(t *testing.T) {
	of := func(c scope.Conduct, rate, epochs, rest, most uint32) scope.Topology {
		return scope.Topology{Split: c, Rate: rate, Epochs: epochs, Rest: rest, Most: most}
	}
	for text, want := range map[string]scope.Topology{
		"off":                              of(scope.SplitOff, 1000, 3, 8, 16),
		"advise":                           of(scope.SplitAdvise, 1000, 3, 8, 16),
		"act":                              of(scope.SplitAct, 1000, 3, 8, 16),
		"act,rate=5":                       of(scope.SplitAct, 5, 3, 8, 16),
		"act, most=0,rest=1,epochs=2":      of(scope.SplitAct, 1000, 2, 1, 0),
		"advise,rate=1,epochs=4294967295 ": of(scope.SplitAdvise, 1, 4294967295, 8, 16),
	} {
		if got, err := policytext.ParseTopology(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "on", "act,", "act,rate", "act,rate=", "act,rate=-1", "act,rate=4294967296", "act,rate=1,rate=2", "act,speed=1", "rate=1", "act rate=1"} {
		if got, err := policytext.ParseTopology(text); !errors.Is(err, policytext.ErrSyntax) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}
