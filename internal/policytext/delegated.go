package policytext

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/scope"
)

// Lost reports which rules would not hold any more below a prefix for which a decision sets a policy: from then on
// that policy alone decides what needs approval there, and which verbs there are. Until then the policy above does
// so below a prefix that is delegated, and the scope's own policy, nil if it is not known, in a scope that is
// revoked or goes back to the scope above.
func Lost(above, own *scope.Policy, d *scope.Decision) (all []string) {
	child, now := d.Child, above
	switch {
	case child == nil || d.Kind != scope.Delegate && d.Kind != scope.Revoke && d.Kind != scope.Fold:
		return nil
	case d.Kind != scope.Delegate && own == nil:
		return []string{fmt.Sprintf("the policy of %q is replaced, and is not known here: see with \"aweigh policy show\" which of its approvals and "+
			"rules would not hold any more", child.Prefix)}
	case d.Kind == scope.Revoke:
		now = own
	case d.Kind == scope.Fold:
		now, child = own, &scope.Child{Prefix: child.Prefix, Policy: *above}
	}
	if d.Kind == scope.Revoke { // decisions of the scope above about itself stay
		all = lostDecisions(own, child)
	}
	all = append(all, lostApprovals(now, child)...)
	for _, rule := range now.Actions {
		if loss := lostRule(rule, child); loss != "" {
			all = append(all, loss)
		}
	}
	return all
}

// lostApprovals reports where below the prefix of a child changes or deletions of keys would need another approval
// than now, or none. What one needs is the same for all keys between two prefixes of approvals.
func lostApprovals(now *scope.Policy, child *scope.Child) (all []string) {
	prefixes := [][]byte{child.Prefix}
	for _, a := range slices.Concat(now.Approvals, child.Policy.Approvals) {
		if ofKeys(&a) && bytes.HasPrefix(a.Prefix, child.Prefix) {
			prefixes = append(prefixes, a.Prefix)
		}
	}
	slices.SortFunc(prefixes, bytes.Compare)
	for _, prefix := range slices.CompactFunc(prefixes, bytes.Equal) {
		changes := lostApproval(scope.Changes, prefix, now.Covers(prefix, false), child.Policy.Covers(prefix, false))
		if changes != "" {
			all = append(all, changes)
		}
		a, b := now.Covers(prefix, true), child.Policy.Covers(prefix, true)
		if deletions := lostApproval(scope.Deletions, prefix, a, b); deletions != "" && (changes == "" || special(a) || special(b)) {
			all = append(all, deletions)
		}
		for _, verb := range verbsIn(slices.Concat(now.Approvals, child.Policy.Approvals)) {
			was, is := now.CoversVerb(prefix, verb), child.Policy.CoversVerb(prefix, verb)
			if was != now.Covers(prefix, false) || is != child.Policy.Covers(prefix, false) { // or another line names it
				if loss := lostApproval(scope.Changes, prefix, was, is); loss != "" {
					all = append(all, loss)
				}
			}
		}
	}
	return all
}

// verbsIn are the verbs that approvals name.
func verbsIn(approvals []scope.Approval) (all []string) {
	for i := range approvals {
		all = append(all, approvals[i].Verbs...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func ofKeys(a *scope.Approval) bool { return a.Matter == scope.Changes || a.Matter == scope.Deletions }

// special reports whether an approval is about deletions alone.
func special(a *scope.Approval) bool { return a != nil && a.Matter == scope.Deletions }

// lostApproval reports what becomes of an approval below a prefix; empty if there is none now, or the same
// then.
func lostApproval(matter scope.Matter, prefix []byte, now, then *scope.Approval) string {
	switch {
	case now == nil || then != nil && terms(*now) == terms(*then):
		return ""
	case then == nil:
		return fmt.Sprintf("%s below %q need approval now (%s), and would need none", matter, prefix, writeApproval(*now))
	}
	return fmt.Sprintf("%s below %q need approval now (%s), and would need another one: %s", matter, prefix, writeApproval(*now),
		writeApproval(*then))
}

// lostDecisions reports which decisions of a scope about itself would need another approval than now, or
// none.
func lostDecisions(own *scope.Policy, child *scope.Child) (all []string) {
	for i := range own.Approvals {
		a := &own.Approvals[i]
		if ofKeys(a) {
			continue
		}
		var then *scope.Approval
		if at := slices.IndexFunc(child.Policy.Approvals, func(b scope.Approval) bool {
			return b.Matter == a.Matter && bytes.Equal(b.Prefix, a.Prefix)
		}); at >= 0 {
			then = &child.Policy.Approvals[at]
		}
		if loss := lostApproval(a.Matter, child.Prefix, a, then); loss != "" {
			all = append(all, loss)
		}
	}
	return all
}

// terms is an approval without its prefix.
func terms(a scope.Approval) string {
	a.Prefix = nil
	return writeApproval(a)
}

// lostRule reports what becomes of a rule about a verb below the prefix of a child; empty if it is the same
// there.
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
