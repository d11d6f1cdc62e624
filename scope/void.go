package scope

import (
	"errors"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// An approver that approves and rejects one motion counts on neither side of it (P33). From then on it is void (P51):
// it is no voter on motions that open later, until a decision readmits it. Its weight stays a part of the whole that
// the policy's share is of, and its approval stays required, so that nothing gets easier because an approver lied.

// maxVoid bounds the approvers on record as void. A policy lists no more than so many, so there is always room for one
// that the policy in force lists.
const maxVoid = maxApprovals * maxApprovers

// Voided is the record of an approver that signed both ways.
type Voided struct {
	_      struct{} `cbor:",toarray"`
	Name   string   // as the policy called it
	Key    votes.PublicKey
	Motion votes.MotionID // both ballots are on record of
	Height aweigh.Height  // of the block that recorded the second one
	Time   aweigh.Instant
	Proof  aweigh.Hash // of the two ballots
}

// ErrVoid refuses a mutation that cannot be carried without an approver that is void.
var ErrVoid = errors.New("scope: it takes the approval or the weight of an approver that signed both ways, and whose ballots are void; " +
	"readmit that approver (aweigh anchor readmit), or set a policy without it, unless policies take its approval as well")

// void is the place of the record of an approver that is void.
func (s *space) void(key aweigh.Hash) []byte { return s.at(atVoid, key[:]...) }

// Voided are the approvers that are void, by the IDs of their keys.
func (s *State) Voided() ([]Voided, error) { return s.view.voided() }

func (v *view) voided() (all []Voided, err error) {
	prefix := v.space.at(atVoid)
	var bad error
	err = v.r.Scan(prefix, kv.PrefixEnd(prefix), false, func(_, raw []byte) bool {
		var is Voided
		if bad = canon.Decode(raw, &is); bad == nil {
			all = append(all, is)
		}
		return bad == nil
	})
	if err == nil && bad != nil {
		err = fmt.Errorf("%w: an approver that is void: %w", ErrCorrupt, bad)
	}
	return all, err
}

// isVoid reports whether an approver is void.
func (v *view) isVoid(key aweigh.Hash) (bool, error) {
	_, ok, err := v.r.Get(v.space.void(key))
	return ok, err
}

// voidOf are the approvers of an approval that are void, in its order.
func (v *view) voidOf(a *Approval) (all []aweigh.Hash, err error) {
	for i := range a.Approvers {
		id := a.Approvers[i].Key.ID()
		is, err := v.isVoid(id)
		if err != nil {
			return nil, err
		}
		if is {
			all = append(all, id)
		}
	}
	return all, nil
}

// avoid makes an approver void that has voted both ways on a motion; proof names the two ballots.
func (x *execution) avoid(mo *Motion, voter, proof aweigh.Hash) error {
	at := slices.IndexFunc(mo.Approval.Approvers, func(p Approver) bool { return p.Key.ID() == voter })
	if at < 0 {
		return nil
	}
	if is, err := x.isVoid(voter); is || err != nil {
		return err
	}
	all, err := x.voided()
	if err != nil {
		return err
	}
	if len(all) >= maxVoid {
		i := slices.IndexFunc(all, func(v Voided) bool { return !x.policy.lists(v.Key.ID()) })
		if i < 0 {
			return nil // so the policy does not list this one any more
		}
		if err := x.dropRecord(x.space.void(all[i].Key.ID())); err != nil {
			return err
		}
	}
	h, p := &x.block.Header, &mo.Approval.Approvers[at]
	x.setRecord(x.space.void(voter), canon.Encode(Voided{Name: p.Name, Key: p.Key, Motion: mo.ID(), Height: h.Height, Time: h.Time, Proof: proof}))
	return nil
}

// lists reports whether some approval of a policy names an approver.
func (p *Policy) lists(key aweigh.Hash) bool {
	return slices.ContainsFunc(p.Approvals, func(a Approval) bool {
		return slices.ContainsFunc(a.Approvers, func(p Approver) bool { return p.Key.ID() == key })
	})
}

// mayReadmitApprover reports why an approver cannot be readmitted.
func (x *execution) mayReadmitApprover(d *Decision) (failure, err error) {
	if is, err := x.isVoid(d.Subject); is || err != nil {
		return nil, err
	}
	return fmt.Errorf("the approver %s is not void, so there is nothing to lift", d.Subject.Short()), nil
}

// readmit lifts what makes an approver void.
func (x *execution) readmit(d *Decision) error {
	is, err := x.isVoid(d.Subject)
	if err != nil || !is {
		return err
	}
	return x.dropRecord(x.space.void(d.Subject))
}

// ofApprover reports whether the decision readmits an approver, and no anchor.
func (d *Decision) ofApprover() bool { return d.Kind == Readmit && d.Anchor == nil }

// without returns the weight of the approvers that are void, which stays a part of the whole, and whether one of them
// is required.
func (a *Approval) without(r Roster, void []aweigh.Hash) (weight uint64, required bool) {
	for i := range a.Approvers {
		p := &a.Approvers[i]
		if slices.Contains(void, p.Key.ID()) && !a.StepUp {
			w := r.Weights.Total() * uint64(p.Share) / 1_000_000
			weight, required = weight+w, required || p.Required || w == 0
		}
	}
	return weight, required
}

// electors are the voters on a motion under an approval of which some approvers are void, and the rule that carries it.
// readmits is a decision to readmit an approver: on that, none that is void has to vote, as none could ever return.
func (a *Approval) electors(r Roster, askers, void []aweigh.Hash, readmits bool) (voters []Elector, rule quorum.Rule, err error) {
	lost, required := a.without(r, void)
	if required && !readmits {
		return nil, rule, ErrVoid
	}
	voters = a.voters(r, askers, void)
	if a.StepUp && len(voters) == 0 {
		if len(void) > 0 {
			return nil, rule, ErrVoid
		}
		return nil, rule, ErrNoSecond
	}
	e, err := electorate(voters)
	if err != nil {
		return nil, rule, fmt.Errorf("scope: no voter could approve it: %w", err)
	}
	if rule = a.rule(e.Total(), lost); rule.Num >= e.Total() || !e.Carriable(rule) {
		if lost > 0 {
			return nil, rule, ErrVoid
		}
		return nil, rule, errors.New("scope: the policy asks for more approval than all voters together can give")
	}
	return voters, rule, nil
}

// inOrderOf reports whether keys are some of an approval's approvers, in its order.
func (a *Approval) inOrderOf(keys []aweigh.Hash) bool {
	for i := range a.Approvers {
		if id := a.Approvers[i].Key.ID(); len(keys) > 0 && id == keys[0] {
			keys = keys[1:]
		}
	}
	return len(keys) == 0
}
