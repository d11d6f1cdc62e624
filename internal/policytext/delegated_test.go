package policytext

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// A requirement of the policy above below a delegated prefix is in a warning, unless the new policy has the
// same.
func TestDelegationTellsWhatIsLost(t *testing.T) {
	approval := func(prefix string, num uint32) scope.Approval {
		return scope.Approval{Matter: scope.Changes, Prefix: []byte(prefix), Num: num, Den: 4, Window: time.Hour}
	}
	deletions := func(prefix string, num uint32) scope.Approval {
		a := approval(prefix, num)
		a.Matter = scope.Deletions
		return a
	}
	of := func(a scope.Approval, verb string) scope.Approval {
		a.Verbs = []string{verb}
		return a
	}
	rule := action.Rule{Verb: "write", Class: action.Write, When: "false"}
	for name, x := range map[string]struct {
		above []scope.Approval
		child []scope.Approval
		rules [2]action.Table
		want  []string // parts of each, in order
	}{
		"of the very prefix": {above: []scope.Approval{approval("/s/", 3)}, want: []string{`changes below "/s/" need approval now`}},
		"of all keys":        {above: []scope.Approval{approval("", 3)}, want: []string{`below "/s/"`}},
		"of a longer prefix": {above: []scope.Approval{approval("/s/deep/", 3)}, want: []string{`below "/s/deep/" need approval now (prefix=/s/deep/ threshold=3/4 window=1h0m0s), and would need none`}},
		"of another prefix":  {above: []scope.Approval{approval("/t/", 3)}},
		"kept":               {above: []scope.Approval{approval("", 3)}, child: []scope.Approval{approval("/s/", 3)}},
		"weakened":           {above: []scope.Approval{approval("/s/", 3)}, child: []scope.Approval{approval("/s/", 1)}, want: []string{"would need another one: prefix=/s/ threshold=1/4"}},
		"kept for a part":    {above: []scope.Approval{approval("/s/", 3)}, child: []scope.Approval{approval("/s/deep/", 3)}, want: []string{"would need none"}},
		"weakened in a part": {above: []scope.Approval{approval("/s/", 3)}, child: []scope.Approval{approval("/s/", 3), approval("/s/deep/", 1)}, want: []string{`below "/s/deep/" need approval now (prefix=/s/ threshold=3/4 window=1h0m0s), and would need another one: prefix=/s/deep/ threshold=1/4`}},
		"deletions weakened": {above: []scope.Approval{approval("/s/", 3)}, child: []scope.Approval{approval("/s/", 3), deletions("/s/", 1)}, want: []string{`deletions below "/s/" need approval now (prefix=/s/ threshold=3/4 window=1h0m0s), and would need another one`}},
		"a longer one holds": {above: []scope.Approval{approval("", 1), approval("/s/", 3)}, child: []scope.Approval{approval("", 1)}, want: []string{`threshold=3/4 window=1h0m0s), and would need another one`}},
		"of a verb":          {above: []scope.Approval{of(approval("/s/", 3), "pay")}, want: []string{`need approval now`}},
		"weakened by a verb": {above: []scope.Approval{approval("/s/", 3)}, child: []scope.Approval{approval("/s/", 3), of(approval("/s/", 1), "pay")},
			want: []string{"would need another one: prefix=/s/ verbs=pay threshold=1/4"}},
		"weakened for all, and more by a verb": {above: []scope.Approval{approval("/s/", 3)}, child: []scope.Approval{approval("/s/", 2), of(approval("/s/", 1), "pay")},
			want: []string{"threshold=2/4", "threshold=1/4"}},
		"of decisions":  {above: []scope.Approval{{Matter: scope.Policies, Num: 1, Den: 1, Window: time.Hour}}},
		"a rule":        {rules: [2]action.Table{{rule}, nil}, want: []string{`the verb "write" (class write) now, and below "/s/" no block there`}},
		"another rule":  {rules: [2]action.Table{{rule}, {{Verb: "write", Class: action.Write}}}, want: []string{"another one would bind"}},
		"the same rule": {rules: [2]action.Table{{rule}, {rule}}},
	} {
		above, child := scope.OpenPolicy(quorum.BFT), scope.OpenPolicy(quorum.BFT)
		above.Approvals, child.Approvals = x.above, x.child
		above.Actions, child.Actions = x.rules[0], x.rules[1]
		d := scope.Decision{Kind: scope.Delegate, Child: &scope.Child{Prefix: []byte("/s/"), Policy: child}}
		got := Lost(&above, nil, &d)
		if len(got) != len(x.want) {
			t.Errorf("%s: %q", name, got)
			continue
		}
		for i := range got {
			if !strings.Contains(got[i], x.want[i]) {
				t.Errorf("%s: %q, not %q", name, got[i], x.want[i])
			}
		}
	}
}

// TestEveryLossIsTold: where a key, or its deletion, would need another approval, a warning is about a prefix of the
// key.
func TestEveryLossIsTold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefixes := rapid.SampledFrom([]string{"", "/s/", "/s/a/", "/s/a/b/", "/s/c", "/t/"})
		drawn := func(label string) scope.Policy {
			p := scope.OpenPolicy(quorum.BFT)
			there := make(map[string]bool)
			for range rapid.IntRange(0, 4).Draw(t, label) {
				a := scope.Approval{
					Matter: rapid.SampledFrom([]scope.Matter{scope.Changes, scope.Deletions}).Draw(t, "matter"), Prefix: []byte(prefixes.Draw(t, "prefix")),
					Num: rapid.Uint32Range(1, 2).Draw(t, "num"), Den: 2, Window: time.Hour,
				}
				if at := a.Matter.String() + string(a.Prefix); !there[at] {
					there[at] = true
					p.Approvals = append(p.Approvals, a)
				}
			}
			return p
		}
		own, next := drawn("own"), drawn("next")
		told := Lost(&own, &own, &scope.Decision{Kind: scope.Revoke, Child: &scope.Child{Prefix: []byte("/s/"), Policy: next}})
		key := []byte(rapid.SampledFrom([]string{"/s/x", "/s/a/x", "/s/a/b/x", "/s/cx"}).Draw(t, "key"))
		deletion := rapid.Bool().Draw(t, "deletion")
		now, then := own.Covers(key, deletion), next.Covers(key, deletion)
		if now == nil || then != nil && terms(*now) == terms(*then) {
			return
		}
		if !slices.ContainsFunc(told, func(text string) bool {
			of := regexp.MustCompile(`below "([^"]*)"`).FindStringSubmatch(text)
			return strings.HasPrefix(string(key), of[1]) && strings.Contains(text, writeApproval(*now))
		}) {
			t.Fatalf("of %s (deletion: %v), which needs %s now, is told %q", key, deletion, writeApproval(*now), told)
		}
	})
}

// TestRevocationTellsWhatIsLost: so are requirements of the scope's own policy, also for its decisions; the policy
// above does not matter.
func TestRevocationTellsWhatIsLost(t *testing.T) {
	above, own, next := scope.OpenPolicy(quorum.BFT), scope.OpenPolicy(quorum.BFT), scope.OpenPolicy(quorum.BFT)
	above.Approvals = []scope.Approval{{Matter: scope.Changes, Num: 1, Den: 2, Window: time.Hour}}
	own.Approvals = []scope.Approval{{Matter: scope.Policies, Num: 1, Den: 1, Window: time.Hour}, {Matter: scope.Changes, Num: 3, Den: 4, Window: time.Hour}}
	d := scope.Decision{Kind: scope.Revoke, Child: &scope.Child{Prefix: []byte("/s/"), Policy: next}}
	got := Lost(&above, &own, &d)
	if len(got) != 2 || !strings.Contains(got[0], `policies below "/s/" need approval now`) || !strings.Contains(got[1], "threshold=3/4") {
		t.Errorf("%q", got)
	}
	if got = Lost(&above, nil, &d); len(got) != 1 || !strings.Contains(got[0], `the policy of "/s/" is replaced, and is not known here`) {
		t.Errorf("of an unknown policy: %q", got)
	}
	d.Child.Policy = own
	if got = Lost(&above, &own, &d); len(got) != 0 {
		t.Errorf("of the same policy: %q", got)
	}
}
