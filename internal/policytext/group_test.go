package policytext_test

import (
	"errors"
	"testing"

	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/trust"
)

func TestParseGroup(t *testing.T) {
	for text, want := range map[string]trust.Group{
		"off":                               {},
		"4":                                 {Least: 4, Most: 4, Tolerates: 1, Replace: 3},
		"7..9":                              {Least: 7, Most: 9, Tolerates: 2, Replace: 3},
		"4..7,tolerates=2,replace=0,load=9": {Least: 4, Most: 7, Tolerates: 2, Load: 9},
	} {
		if got, err := policytext.ParseGroup(text, quorum.BFT); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
	}
	if got, err := policytext.ParseGroup("3..5", quorum.Crash); err != nil || got.Tolerates != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := policytext.ParseGroup("4..7, replace=2", quorum.BFT); err != nil || got.Replace != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{"off,replace=2", "4,replace=1,replace=2", "", "0", "four", "4..", "..4", "4..7,", "4..7,load", "4,faults=1", "4..7,replace=-1", "5000000000", "off,load=1"} {
		if got, err := policytext.ParseGroup(text, quorum.BFT); !errors.Is(err, policytext.ErrSyntax) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}
