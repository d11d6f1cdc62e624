package policytext

import (
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// What the policy above asks below a delegated prefix is told, unless the new policy asks the same.
func TestDelegationTellsWhatIsLost(t *testing.T) {
	approval := func(prefix string, num uint32) scope.Approval {
		return scope.Approval{Matter: scope.Changes, Prefix: []byte(prefix), Num: num, Den: 4, Window: time.Hour}
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
		"of decisions":       {above: []scope.Approval{{Matter: scope.Policies, Num: 1, Den: 1, Window: time.Hour}}},
		"a rule":             {rules: [2]action.Table{{rule}, nil}, want: []string{`the verb "write" (class write) now, and below "/s/" no block there`}},
		"another rule":       {rules: [2]action.Table{{rule}, {{Verb: "write", Class: action.Write}}}, want: []string{"another one would bind"}},
		"the same rule":      {rules: [2]action.Table{{rule}, {rule}}},
	} {
		above, child := scope.DefaultPolicy(quorum.BFT), scope.DefaultPolicy(quorum.BFT)
		above.Approvals, child.Approvals = x.above, x.child
		above.Actions, child.Actions = x.rules[0], x.rules[1]
		d := scope.Decision{Kind: scope.Delegate, Child: &scope.Child{Prefix: []byte("/s/"), Policy: child}}
		got := Delegated(&above, &d)
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
