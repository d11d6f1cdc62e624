package scope

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/votes"
)

// What a block carries of motions on keys shares one purse, of a block's cost, beside the cost that its
// bundles declare. A motion that does not fit stays open and waits for its turn, in the order in which the motions
// had their approvals. The first one of a block has the whole purse; what exceeds that is void.

// carryDue carries the motions that wait for their turn, until one does not fit. The block that ends an epoch carries
// none: what was decided holds from then on, and motions are judged by it.
func (x *execution) carryDue() error {
	if !x.block.Header.Next.IsZero() {
		return nil
	}
	for x.next.head.Docket.Due > 0 && x.carries > 0 {
		var id votes.MotionID
		err := x.scanMotionIndex(atDue, func(_ aweigh.Instant, first votes.MotionID, _ []byte) bool {
			id = first
			return false
		})
		if err != nil {
			return err
		}
		rec, err := x.mustMotion(id)
		if err != nil {
			return err
		}
		if waits, err := x.carry(&rec); waits || err != nil {
			return err
		}
	}
	return nil
}

// carry applies a motion that has the approvals, if all is still as it was when it
// opened; otherwise it is void (P32). So of two motions that conflict, one applies. It reports
// whether the motion waits, as the block has carried too much before.
func (x *execution) carry(rec *motionRecord) (waits bool, err error) {
	mo := &rec.Motion
	m := new(CheckedMutation)
	if err := m.open(mo.Mutation, MostLimits()); err != nil {
		return false, fmt.Errorf("%w: the mutation of motion %s: %w", ErrCorrupt, mo.ID().Short(), err)
	}
	rest, left, succeeded := x.purse, x.carries, false
	x.begin(m)
	from := len(x.changed)
	var failure error
	if m.Class == Govern {
		x.purse = purse{allowed: m.allowed} // its form allows enough
	} else {
		failure = x.begun(mo, m)
	}
	if failure == nil {
		succeeded, failure, err = x.enact(mo, m)
	}
	if err != nil {
		return false, err
	}
	if m.Class != Govern {
		x.carries = x.purse.reserve
		waits = x.purse.empty && left < x.policy.Limits.BlockCost
	}
	end := Ending{Fate: Carried, Revision: x.next.head.Revision, Succeeded: succeeded}
	if failure != nil {
		end = Ending{Fate: Void, Reason: reason(failure)}
	}
	x.begin(m)
	if x.purse = rest; waits {
		return true, nil
	}
	x.made = x.changed[from:]
	return false, x.close(rec, end)
}

// begun has what carries a motion pay for its form, as a bundle does before it is ordered, and for reading it.
func (x *execution) begun(mo *Motion, m *CheckedMutation) error {
	x.purse = purse{reserve: x.carries}
	failure := x.spend(m.allowed + lookCost(len(mo.Mutation)))
	x.purse.allowed = m.allowed
	return failure
}

// await makes a motion that has the approvals wait for its turn, and keeps it open until then. Its
// deadline has no effect any more.
func (x *execution) await(rec *motionRecord) error {
	id := rec.Motion.ID()
	before := x.linePlace(rec)
	line, _, err := x.r.Get(before)
	if err != nil {
		return err
	}
	for _, k := range [][]byte{before, x.space.motion(id)} {
		if err := x.dropRecord(k); err != nil {
			return err
		}
	}
	rec.Due = x.block.Header.Height
	x.setRecord(x.space.motion(id), rec.encode())
	x.setRecord(x.linePlace(rec), line)
	x.next.head.Docket.Due++
	return x.nextDeadline()
}

// linePlace is where the docket has an open motion.
func (x *execution) linePlace(rec *motionRecord) []byte {
	if rec.Due > 0 {
		return x.space.motionIndexKey(atDue, aweigh.Instant(rec.Due), rec.Motion.ID())
	}
	return x.space.motionIndexKey(atOpen, rec.Motion.Deadline, rec.Motion.ID())
}
