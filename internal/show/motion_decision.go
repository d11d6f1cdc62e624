package show

import (
	"fmt"
	"slices"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/scope"
)

// DecisionOf is the decision that a motion is about, nil if it is about none.
func DecisionOf(m *aweighv1.Motion) *scope.Decision {
	var of scope.Mutation
	d := new(scope.Decision)
	if canon.Decode(m.Mutation, &of) != nil || of.Class != scope.Govern || canon.Decode(of.Content, d) != nil {
		return nil
	}
	return d
}

// voidBefore are the names of the approvers that are no voters on a motion, since they signed both ways before.
func voidBefore(m *aweighv1.Motion) (names []string) {
	mo, err := Opening(m)
	if err != nil {
		return nil
	}
	for _, a := range mo.Approval.Approvers {
		if slices.Contains(mo.Void, a.Key.ID()) {
			names = append(names, a.Name)
		}
	}
	return names
}

// decided is the policy that a motion's decision is about, if it is about one.
func decided(m *aweighv1.Motion) *scope.Policy {
	switch d := DecisionOf(m); {
	case d == nil || d.Kind == scope.Fold: // by its prefix alone
		return nil
	case d.Child != nil:
		return &d.Child.Policy
	default:
		return d.Policy
	}
}

// warnings report what a valid motion would end without naming it. inForce is the policy of its scope, and own that
// of the scope that it is about; nil if they are not known.
func warnings(m *aweighv1.Motion, inForce, own *scope.Policy) []string {
	d := DecisionOf(m)
	if d == nil || inForce == nil || !stands(m) {
		return nil
	}
	return policytext.Lost(inForce, own, d)
}

// terms writes how a policy differs from the default one, which has the rest.
func (p Printer) terms(to *scope.Policy) error {
	mode := to.Rules.Mode
	rows := [][]string{{"POLICY", "", "DEFAULT"}, {"quorum.mode", mode.String(), ""}}
	for _, x := range policytext.Diff(scope.DefaultPolicy(mode), *to) {
		rows = append(rows, []string{x.Field, x.To, x.From})
	}
	err := p.table(rows...)
	fmt.Fprintln(p.Out)
	return err
}
