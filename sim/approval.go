package sim

import (
	"fmt"

	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
	"github.com/aweigh/aweigh/votes"
)

// prefix is that of the keys whose changes must be approved.
const prefix = "/m/"

// approvals are those of the scope's policy, none if the scenario has no motions.
func approvals(a *scenario.Approval, approvers []*voter) []scope.Approval {
	if a.Motions == 0 {
		return nil
	}
	p := scope.Approval{
		Matter: scope.Changes, Prefix: []byte(prefix), Num: uint32(a.Share), Den: uint32(scenario.Whole), Anchors: uint32(a.Anchors), Window: a.Window,
	}
	if a.StepUp {
		p.Num, p.Den, p.StepUp = 0, 1, true
	}
	for i, v := range approvers {
		p.Approvers = append(p.Approvers, scope.Approver{Name: v.name, Key: v.key.Public(), Share: uint32(a.Weight), Required: i < a.Required})
	}
	return []scope.Approval{p}
}

// appoint makes the voters that have a key and no node.
func (w *World) appoint(newKey func() (votes.PrivateKey, error)) error {
	for i := range w.Scenario.Approval.Approvers {
		key, err := newKey()
		if err != nil {
			return err
		}
		w.polls.voters = append(w.polls.voters, &voter{
			name: fmt.Sprintf("approver %d", i), key: key, fickle: i >= w.Scenario.Approval.Approvers-w.Scenario.Approval.Fickle,
		})
	}
	return nil
}
