package policytext

import (
	"bytes"
	"fmt"

	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/scope"
)

// Delegated says which rules of the policy above would not hold any more below a prefix that a decision delegates:
// from then on the policy of the new scope alone says what needs approval there, and which verbs there are.
func Delegated(above *scope.Policy, d *scope.Decision) (all []string) {
	if d.Kind != scope.Delegate || d.Child == nil {
		return nil
	}
	child := d.Child
	for i := range above.Approvals {
		if loss := lostApproval(&above.Approvals[i], child); loss != "" {
			all = append(all, loss)
		}
	}
	for _, rule := range above.Actions {
		if loss := lostRule(rule, child); loss != "" {
			all = append(all, loss)
		}
	}
	return all
}

// lostApproval says what becomes of an approval below the prefix of a child; empty if it is the same there.
func lostApproval(a *scope.Approval, child *scope.Child) string {
	reach := child.Prefix // where both hold
	if bytes.HasPrefix(a.Prefix, reach) {
		reach = a.Prefix
	}
	if a.Matter != scope.Changes && a.Matter != scope.Deletions || !bytes.HasPrefix(reach, a.Prefix) {
		return ""
	}
	becomes := "need none"
	for _, b := range child.Policy.Approvals {
		if b.Matter != a.Matter || !bytes.HasPrefix(reach, b.Prefix) {
			continue
		}
		if becomes = "need another one: " + WriteApproval(b); terms(*a) == terms(b) {
			return ""
		}
	}
	return fmt.Sprintf("%s below %q need approval now (%s), and would %s", a.Matter, reach, WriteApproval(*a), becomes)
}

// terms is an approval without its prefix.
func terms(a scope.Approval) string {
	a.Prefix = nil
	return WriteApproval(a)
}

// lostRule says what becomes of a rule about a verb below the prefix of a child; empty if it is the same there.
func lostRule(rule action.Rule, child *scope.Child) string {
	becomes := "no block there would be bound by it"
	for _, r := range child.Policy.Actions {
		if r == rule {
			return ""
		}
		if r.Verb == rule.Verb {
			becomes = "another one would bind the blocks there"
		}
	}
	return fmt.Sprintf("a rule is about the verb %q (class %s) now, and below %q %s", rule.Verb, rule.Class, child.Prefix, becomes)
}
