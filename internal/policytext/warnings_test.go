package policytext_test

import (
	"strings"
	"testing"

	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

func TestOddApprovalsAreWarnedOf(t *testing.T) {
	for text, want := range map[string]string{
		"of=policies threshold=1/10 window=1h":                 "what finalizes (> 2/3)",
		"of=policies threshold=2/3 window=1h":                  "changes nothing",
		"of=membership threshold=1/2 min-anchors=4 window=1h":  "changes nothing",
		"of=policies threshold=0/1 window=1h":                  "", // says so itself
		"of=policies threshold=3/4 window=1h":                  "",
		"threshold=1/10 window=1h":                             "",
		"prefix=/secrets/ threshold=1/10 window=1h":            "",
		"prefix=secrets/ threshold=1/10 window=1h":             "did you mean prefix=/secrets/?",
		"of=deletions prefix=secrets threshold=1/10 window=1h": "below \"secrets\" covers no key that begins with a slash",
		`prefix="\x00" threshold=1/10 window=1h`:               "no key that begins with a slash",
	} {
		a, err := policytext.ParseApproval(text)
		if err != nil {
			t.Fatal(err)
		}
		from := scope.OpenPolicy(quorum.BFT)
		to := from
		to.Approvals = policytext.SetApproval(nil, a)
		all := policytext.Warnings(from, to)
		if got := strings.Join(all, "; "); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		if again := policytext.Warnings(to, to); len(again) > 0 {
			t.Errorf("%s: warned of though it is in force: %q", text, again)
		}
	}
}
