package policytext_test

import (
	"strings"
	"testing"

	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

func TestOddVerbsOfAuthorsAreWarnedOf(t *testing.T) {
	for text, want := range map[string]string{
		"ci who=any verbs=alias,compact,delete,lease,pay,put,read": "",
		"ci who=any":                  "",
		"ci who=any verbs=putt":       "author ci: the verb putt permits nothing: it is not one of alias, compact, delete, lease, put, read, users, and no action of the policy is called so; did you mean put?",
		"ci who=any verbs=pays":       "; did you mean pay?",
		"ci who=any verbs=frobnicate": "the verb frobnicate permits nothing: it is not one of alias, compact, delete, lease, put, read, users, and no action of the policy is called so",
		"ci who=any verbs=put,write":  `author ci: the verb write permits "aweigh do write" alone; "aweigh put" needs the verb put`,
	} {
		a, err := policytext.ParseAuthor(text)
		if err != nil {
			t.Fatal(err)
		}
		from := scope.OpenPolicy(quorum.BFT)
		from.Actions = from.Actions.With(action.Rule{Verb: "pay", Class: action.Write})
		to := from
		to.Authors = policytext.SetAuthor(from.Authors, a)
		all := policytext.Warnings(from, to)
		if got := strings.Join(all, "; "); (want == "") != (got == "") || !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		if again := policytext.Warnings(to, to); len(again) > 0 {
			t.Errorf("%s: warned of though it is in force: %q", text, again)
		}
	}
}

// TestOddPartitionsAreWarnedOf: an island that decides by less than a third of the weight, and keys that none has.
func TestOddPartitionsAreWarnedOf(t *testing.T) {
	for text, want := range map[string]string{ // order-free: each is checked alone
		"prefix=/ship/ share=1/2 after=1m gather=1m window=1h": "",
		"prefix=/ship/ share=2/5 after=1m gather=1m window=1h": "share=1/2 excludes that",
		"prefix=ship/ share=1/2 after=1m gather=1m window=1h":  "did you mean prefix=/ship/?",
	} {
		p, err := policytext.ParsePartition(text)
		if err != nil {
			t.Fatal(err)
		}
		from := scope.DefaultPolicy(quorum.BFT)
		to := from
		to.Partitions = []scope.Partition{p}
		all := policytext.Warnings(from, to)
		if got := strings.Join(all, "; "); (want == "") != (got == "") || !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		if again := policytext.Warnings(to, to); len(again) > 0 {
			t.Errorf("%s: warned of though it is in force: %q", text, again)
		}
	}
}

// TestNodesThatWriteNoMoreAreWarnedOf: a policy after which the clients of nodes cannot write is odd, however it comes.
func TestNodesThatWriteNoMoreAreWarnedOf(t *testing.T) {
	from := scope.DefaultPolicy(quorum.BFT)
	for text, want := range map[string]bool{
		"anchors who=anchors":                    false,
		"anchors who=anchors verbs=delete,lease": true,
		"anchors who=anchors verbs=put":          false,
		"anchors who=any prefix=/apps/":          false,
		"anchors who=listed list=/o/ verbs=read": true,
	} {
		a, err := policytext.ParseAuthor(text)
		if err != nil {
			t.Fatal(err)
		}
		to := from
		to.Authors = policytext.SetAuthor(from.Authors, a)
		if got := strings.Contains(strings.Join(policytext.Warnings(from, to), "; "), "no entry lets the anchors' nodes put keys"); got != want {
			t.Errorf("%s: warned %v, want %v", text, got, want)
		}
	}
}

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
