package scope

import (
	"errors"
	"strings"
	"testing"

	"github.com/aweigh/aweigh/quorum"
)

// TestReasonsCountInWords: one thing has no plural in reasons that blocks keep, and in errors of policies.
func TestReasonsCountInWords(t *testing.T) {
	p := DefaultPolicy(quorum.BFT)
	p.Rules.Finalize.MinAnchors = 0
	for want, err := range map[string]error{
		"at least 1 anchor to finalize, and not 0":  (&Bound{Finalize: quorum.Rule{Num: 2, Den: 3, MinAnchors: 1}}).admits(&p),
		"at least 2 anchors to finalize, and not 0": (&Bound{Finalize: quorum.Rule{Num: 2, Den: 3, MinAnchors: 2}}).admits(&p),
		"may have 1 lease; revoke":                  (&Author{Name: "a", Quota: Quota{Leases: 1}}).exhausted(heldLeases),
		"may have 2 open motions; withdraw":         (&Author{Name: "a", Quota: Quota{Motions: 2}}).exhausted(openMotions),
		"> 2/3, 1 anchor;":                          errors.New(quorum.Rule{Num: 2, Den: 3, MinAnchors: 1}.String() + ";"),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, without %q", err, want)
		}
	}
}
