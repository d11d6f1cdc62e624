package machine

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/box"
	"github.com/aweigh/aweigh/votes/reconcile"
)

// Ballots on motions that are closed have left the box. Until a block has recorded
// them as late (P34) they have records of their own, so that they survive a restart;
// dueBallots.late names them.

// examineLate reports, without checking the signature, whether a ballot on a closed motion may be recorded as late;
// known is true if it is on record, or held here already.
func (m *Machine) examineLate(b votes.MotionBallot, mo box.Motion) (known bool, err error) {
	if err := b.Admissible(m.network(), m.id); err != nil {
		return false, err
	}
	if _, voter := mo.Voters.Key(b.Voter); !voter {
		return false, fmt.Errorf("%w: %s may not vote on motion %s", votes.ErrNotInRoster, b.Voter.Short(), b.Motion.Short())
	}
	return m.polls.due.late.Has(b.ID()) || !m.lacks(b), nil
}

// keepLate holds a late ballot ready if there is room. It returns the write that makes the ballot durable.
func (m *Machine) keepLate(b votes.MotionBallot) kv.Op {
	m.polls.due.holdLate(b)
	return kv.Set(KeyLate(m.id, b.ID()), b.Encode())
}

// keepAsLate keeps as late ballots those ballots of the box on a closed motion that the chain lacks. It reports
// whether there are any.
func (m *Machine) keepAsLate(motion votes.MotionID) bool {
	var ops []kv.Op
	voters := m.Motion(motion).Voters
	err := box.Ballots(m.recent, m.id, motion, func(c votes.CheckedMotionBallot) bool {
		if b := c.Ballot(); m.lacks(b) {
			if _, may := voters.Key(b.Voter); may {
				ops = append(ops, m.keepLate(b))
			}
		}
		return true
	})
	must.OK(err, "reading the ballot box")
	m.write(ops...)
	return len(ops) > 0
}

// closed notes that a motion has closed, and reports whether there are late ballots on it.
func (m *Machine) closed(motion votes.MotionID) bool {
	late := m.keepAsLate(motion)
	m.dropFromBox(motion)
	return late
}

// forgotten notes that the state has forgotten a motion, so that late ballots on it can no longer be recorded.
func (m *Machine) forgotten(motion votes.MotionID) {
	for _, id := range m.polls.due.on(motion) {
		m.settle(id)
	}
	m.dropFromBox(motion)
}

// recall holds ready the late ballots of earlier steps, as far as there is room. It returns the writes that delete
// those that have been recorded since, or whose motion is forgotten.
func (m *Machine) recall() (ops []kv.Op, bad error) {
	due := &m.polls.due
	due.lateBacklog = false
	prefix := Record(m.id, 'l')
	err := m.recent.Scan(prefix, kv.PrefixEnd(prefix), false, func(k, raw []byte) bool {
		var c votes.CheckedMotionBallot
		if c, bad = votes.StoredMotionBallot(raw); bad != nil {
			bad = fmt.Errorf("node: a late ballot, key %x: %w", k, bad)
			return false
		}
		b := c.Ballot()
		mo, _, err := m.chain.state.Motion(b.Motion)
		must.OK(err, "reading a motion")
		if mo == nil || !m.lacks(b) {
			due.late.Remove(b.ID())
			ops = append(ops, kv.Del(KeyLate(m.id, b.ID())))
		} else {
			due.holdLate(b)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	return ops, bad
}

// withLate returns a copy of s that has the late ballots as well.
func (m *Machine) withLate(s reconcile.Side) reconcile.Side {
	boxed, all := s.Load, s.Set.Tree()
	m.polls.due.late.Snapshot().All(aweigh.Hash{}, func(id aweigh.Hash) bool {
		all.Add(id)
		return true
	})
	s.Set = all.Snapshot()
	s.Load = func(id aweigh.Hash) ([]byte, bool, error) {
		raw, ok, err := boxed(id)
		if err == nil && !ok {
			raw, ok, err = m.recent.Get(KeyLate(m.id, id))
		}
		return raw, ok, err
	}
	return s
}
