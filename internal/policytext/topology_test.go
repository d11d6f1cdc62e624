package policytext_test

import (
	"errors"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/scope"
)

// TestTopologiesAreRead: the words of --split, and what is left out.
func TestTopologiesAreRead(t *testing.T) {
	of := func(c scope.Conduct, rate, epochs, rest, most uint32) scope.Topology {
		return scope.Topology{Split: c, Rate: rate, Epochs: epochs, Rest: rest, Most: most, Fold: scope.ConductAct, Quiet: time.Minute}
	}
	was := scope.Topology{Rate: 77, Fold: scope.ConductAct, Quiet: time.Minute}
	for text, want := range map[string]scope.Topology{
		"off":                              of(scope.ConductOff, 1000, 3, 8, 16),
		"advise":                           of(scope.ConductAdvise, 1000, 3, 8, 16),
		"act":                              of(scope.ConductAct, 1000, 3, 8, 16),
		"act,rate=5":                       of(scope.ConductAct, 5, 3, 8, 16),
		"act, most=0,rest=1,epochs=2":      of(scope.ConductAct, 1000, 2, 1, 0),
		"advise,rate=1,epochs=4294967295 ": of(scope.ConductAdvise, 1, 4294967295, 8, 16),
	} {
		if got, err := policytext.ParseTopology(was, text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "on", "act,", "act,rate", "act,rate=", "act,rate=-1", "act,rate=4294967296", "act,rate=1,rate=2", "act,speed=1", "rate=1", "act rate=1"} {
		if got, err := policytext.ParseTopology(was, text); !errors.Is(err, policytext.ErrSyntax) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

// TestFoldsAreRead: the words of --fold, which leave what is said of splits.
func TestFoldsAreRead(t *testing.T) {
	was := scope.DefaultTopology()
	was.Rate, was.Quiet = 77, time.Minute
	for text, want := range map[string]scope.Topology{
		"off":             {Fold: scope.ConductOff, Quiet: time.Hour},
		"advise":          {Fold: scope.ConductAdvise, Quiet: time.Hour},
		"act":             {Fold: scope.ConductAct, Quiet: time.Hour},
		"act, quiet=90s ": {Fold: scope.ConductAct, Quiet: 90 * time.Second},
	} {
		want.Split, want.Rate, want.Epochs, want.Rest, want.Most = was.Split, was.Rate, was.Epochs, was.Rest, was.Most
		if got, err := policytext.ParseFold(was, text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "on", "act,", "act,quiet", "act,quiet=", "act,quiet=5", "act,quiet=1h,quiet=2h", "act,rate=1", "quiet=1h"} {
		if got, err := policytext.ParseFold(was, text); !errors.Is(err, policytext.ErrSyntax) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}
