package policytext

import (
	"fmt"
	"slices"

	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// Warnings report what is odd about the approvals and authors that a policy has and another
// has not: they are valid, but may not have the intended effect.
func Warnings(from, to scope.Policy) (all []string) {
	if nodesWrite(from.Authors) && !nodesWrite(to.Authors) {
		all = append(all, "no entry lets the anchors' nodes put keys any more, so their clients cannot write; "+
			"this brings it back: aweigh auth grant anchors --anchors --here")
	}
	all = append(all, oddAuthors(from, to)...)
	all = append(all, oddPartitions(&from, &to)...)
	known := make(map[string]bool)
	for _, a := range from.Approvals {
		known[writeApproval(a)] = true
	}
	for i := range to.Approvals {
		a := &to.Approvals[i]
		if known[writeApproval(*a)] {
			continue
		}
		all = append(all, alone(a)...)
		switch decisions := a.Matter == scope.Policies || a.Matter == scope.Membership; {
		case decisions && a.Num > 0 && within(a, to.Rules.Finalize):
			all = append(all, fmt.Sprintf("the approval of %s asks for %d/%d of the weight, and such decisions need what finalizes (%s) in any case: the threshold changes nothing",
				a.Matter, a.Num, a.Den, to.Rules.Finalize))
		case !decisions && len(a.Prefix) > 0 && a.Prefix[0] != '/':
			all = append(all, fmt.Sprintf("the approval of %s below %q covers no key that begins with a slash, as most do; did you mean prefix=%s?",
				a.Matter, a.Prefix, quoted("/"+string(a.Prefix))))
		}
	}
	return all
}

// nodesWrite reports whether some entry lets the anchors' nodes put keys.
func nodesWrite(all []scope.Author) bool {
	return slices.ContainsFunc(all, func(x scope.Author) bool {
		return (x.Who == scope.Anchors || x.Who == scope.Anyone) && (len(x.Verbs) == 0 || slices.Contains(x.Verbs, scope.VerbPut))
	})
}

// alone names the approvers whose single ballot carries a motion under an approval.
func alone(a *scope.Approval) (all []string) {
	const anchors = 1_000_000 // the weight of all of them
	total, required := uint64(anchors), 0
	for i := range a.Approvers {
		total += uint64(a.Approvers[i].Share)
		if a.Approvers[i].Required {
			required++
		}
	}
	for i := range a.Approvers {
		p := &a.Approvers[i]
		others := required
		if p.Required {
			others--
		}
		if a.Anchors == 0 && others == 0 && p.Share > 0 && uint64(p.Share)*uint64(a.Den) >= total*uint64(a.Num) {
			all = append(all, fmt.Sprintf("the approval of %s below %q is given by approver %s alone: without any anchor, its weight is %d/%d of the whole or more",
				a.Matter, a.Prefix, quoted(p.Name), a.Num, a.Den))
		}
	}
	return all
}

// within reports whether all sets of voters that meet a rule meet a share.
func within(a *scope.Approval, r quorum.Rule) bool {
	return uint64(a.Num)*r.Den <= r.Num*uint64(a.Den)
}
