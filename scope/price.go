package scope

import (
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
)

// Price is what the bundle of a mutation must reserve, so that it could be executed on
// the state now: what it would cost beyond what its form allows, counted by the code
// that charges for it; most is what it may reserve at all. The error wraps ErrTooMuch if no
// block of the policy may cost as much, with the units of work that it took to find out, and
// ErrInvalid if the mutation is not well-formed.
func (s *State) Price(m Mutation, now aweigh.Instant) (units, most int64, err error) {
	s, err = s.Begin()
	if err != nil {
		return 0, 0, err
	}
	lim := s.epoch.Policy.Limits
	var c CheckedMutation
	if err := c.open(m.Encode(), lim); err != nil {
		return 0, 0, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if most = lim.BlockCost - c.allowed; most < 0 {
		return 0, 0, ErrTooMuch
	}
	x, err := s.trial(now, most)
	if err != nil {
		return 0, 0, err
	}
	var out Outcome
	if err := x.execute(&c, &out); err != nil {
		return 0, 0, err
	}
	units = most - x.purse.reserve
	if out.Code == Exceeded {
		return units, most, ErrTooMuch
	}
	return units, most, nil
}

// Foresee returns what would become of a Rejoining in the next block, and what its bundle must reserve. The error wraps
// ErrInvalid if it is not well-formed, or is the store's.
func (s *State) Foresee(m Mutation, now aweigh.Instant) (out Outcome, reserve int64, err error) {
	s, err = s.Begin()
	if err != nil {
		return out, 0, err
	}
	lim := s.epoch.Policy.Limits
	var c CheckedMutation
	if err := c.open(m.Encode(), lim); err != nil {
		return out, 0, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	most := max(0, lim.BlockCost-c.allowed)
	x, err := s.trial(now, most)
	if err != nil {
		return out, 0, err
	}
	err = x.execute(&c, &out)
	return out, most - x.purse.reserve, err
}

// trial is the execution of a mutation in the next block, without its effect, with so many units in reserve.
func (s *State) trial(now aweigh.Instant, reserve int64) (*execution, error) {
	s, err := s.Begin()
	if err != nil {
		return nil, err
	}
	x := newExecution(s, &Block{Header: Header{
		Scope: s.head.Scope, Height: s.head.Height + 1, Time: max(now, s.head.Time+1), Policy: s.epoch.Policy.Hash(),
	}})
	x.priced, x.purse.reserve = true, reserve
	return x, nil
}

// Plain reports whether a transaction costs no more than its form allows, whatever the
// state holds, apart from values of many KiB that a compare, a deletion or a read of one
// key meets, and from aliases: then it need not be priced before it is tried.
func (e *Epoch) Plain(t *Txn) bool {
	return !e.rules.Has(writeVerb) && t.OfKeys() && !e.Policy.asksOf(t)
}

// asksOf reports whether an operation of a transaction is about a key that an approval covers, whatever it does there:
// the motion that it opens costs more than its form allows.
func (p *Policy) asksOf(t *Txn) bool {
	for _, branch := range [][]Op{t.Success, t.Failure} {
		for i := range branch {
			op := &branch[i]
			if op.Txn != nil && p.asksOf(op.Txn) {
				return true
			}
			if slices.ContainsFunc(p.Approvals, func(a Approval) bool { return a.ofKeys() && meets(op, a.Prefix) }) {
				return true
			}
		}
	}
	return false
}

// OfKeys reports whether no operation and no compare is about a range of keys.
func (t *Txn) OfKeys() bool {
	for i := range t.Compare {
		if len(t.Compare[i].End) > 0 {
			return false
		}
	}
	for _, branch := range [][]Op{t.Success, t.Failure} {
		for i := range branch {
			if op := &branch[i]; len(op.End) > 0 || op.Txn != nil && !op.Txn.OfKeys() {
				return false
			}
		}
	}
	return true
}
