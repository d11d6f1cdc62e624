package node

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/box"
)

// Ballots on motions that are closed have left the box. Until a block has recorded
// them as late (P34) they have records of their own, so that they survive a restart.

// keepLate makes a late ballot durable, and holds it ready if there is room. It gives
// the writes.
func (m *Machine) keepLate(b votes.MotionBallot) kv.Op {
	id := b.ID()
	m.hold(b)
	if d := m.polls.due[id]; d != nil {
		d.late = true
	}
	return kv.Set(keyLate(m.id, id), b.Encode())
}

// lacks reports whether the chain has not recorded a ballot.
func (m *Machine) lacks(b votes.MotionBallot) bool {
	have, err := m.chain.state.HasBallot(b.MotionVote, b.Voter)
	must.OK(err, "reading a ballot")
	return !have
}

// closed keeps what the box has and the chain lacks on a motion that is closed. It
// gives the writes; those of the box come after them.
func (m *Machine) closed(motion votes.MotionID) (ops []kv.Op) {
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
	return ops
}

// recall holds ready again what came late before, as far as there is room. It gives
// the writes that take away what has been recorded since, or whose motion is forgotten.
func (m *Machine) recall() (ops []kv.Op, bad error) {
	prefix := record(m.id, 'l')
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
			ops = append(ops, kv.Del(keyLate(m.id, b.ID())))
			return true
		}
		m.hold(b)
		if d := m.polls.due[b.ID()]; d != nil {
			d.late = true
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	return ops, bad
}

// settle forgets a due ballot that needs no block any more.
func (m *Machine) settle(id aweigh.Hash) {
	d := m.polls.due[id]
	if d == nil {
		return
	}
	if d.late {
		m.write(kv.Del(keyLate(m.id, id)))
	}
	if delete(m.polls.due, id); d.view == 0 {
		m.polls.idle--
	}
}
