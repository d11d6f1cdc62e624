package scope

import (
	"errors"

	"github.com/aweigh/aweigh"
)

// exceeding names the record of a bundle of which a mutation cost more than declared.
func exceeding(bundle aweigh.Hash) aweigh.Hash {
	return aweigh.Sum([]byte("aweigh/exceeded/1"), bundle[:])
}

// bundle executes the mutations of a bundle. If one of them costs more than declared, that goes on record until all
// of them are void, and the mutations of the bundle that are not on record by then are never executed: the author got
// the answer that they changed nothing, and may have given up. Another bundle may carry it. A bundle is refused whole
// while one of its mutations is valid for longer than the policy allows, so that the record is no longer kept than
// others.
func (x *execution) bundle(c *CheckedBundle) error {
	x.purse.reserve = c.reserve
	id, first := exceeding(c.id), uint32(len(x.result.Outcomes))
	was, known, err := x.receipt(id)
	if err != nil {
		return err
	}
	var spent *Receipt
	if known {
		spent = &was
	}
	early := c.until.Sub(x.block.Header.Time) > x.policy.Limits.Patience(c.Patient())
	exceeded := false
	for i := range c.mutations {
		out, err := x.apply(&c.mutations[i], early, spent)
		if err != nil {
			return err
		}
		exceeded = exceeded || out.Code == Exceeded
		x.result.Outcomes = append(x.result.Outcomes, out)
	}
	if exceeded && !known {
		x.remember(id, c.until, Receipt{
			Code: Exceeded, Height: x.block.Header.Height, Index: first, Revision: x.next.head.Revision,
			Reason: reason(ErrTooMuch),
		})
	}
	return nil
}

// ErrPatient refuses a patient mutation that would open no motion (P49).
var ErrPatient = errors.New("scope: it waits for approval alone, and takes none")

// apply executes one mutation of a bundle, which is refused if the bundle is early; spent is the bundle's receipt, if
// it has one.
func (x *execution) apply(m *CheckedMutation, early bool, spent *Receipt) (Outcome, error) {
	out := Outcome{Mutation: m.ID, Revision: x.next.head.Revision}
	now := x.block.Header.Time
	switch {
	case m.Scope != x.next.head.Scope:
		out.Code = Refused
		return out, nil
	case m.ValidUntil < now:
		out.Code = Expired
		return out, nil
	case early:
		out.Code = Refused
		return out, nil
	}
	before, recorded, err := x.receipt(m.ID)
	switch {
	case err != nil:
		return out, err
	case recorded:
		out.Code, out.Reason, out.Revision, out.Succeeded = Duplicate, before.Reason, before.Revision, before.Succeeded
		if before.Code == Pending {
			out.Code = Pending
		}
		return out, nil
	case spent != nil:
		out.Code, out.Reason, out.Revision = Exceeded, spent.Reason, spent.Revision
		return out, nil
	}
	if err := x.execute(m, &out); err != nil || out.Code == Exceeded {
		return out, err
	}
	x.remember(m.ID, m.ValidUntil, Receipt{
		Code: out.Code, Succeeded: out.Succeeded, Height: x.block.Header.Height,
		Index: uint32(len(x.result.Outcomes)), Revision: out.Revision, Reason: out.Reason,
	})
	return out, nil
}
