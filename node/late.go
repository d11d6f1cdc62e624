package node

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/votes"
)

// Ballots on motions that are closed have left the box. Until a block has recorded
// them as late (P34) they have records of their own, so that they survive a restart.

// keepLate makes a ballot that is held ready durable.
func (m *Machine) keepLate(id aweigh.Hash, d *dueBallot) {
	if !d.late {
		d.late = true
		m.write(kv.Set(keyLate(m.id, id), d.Encode()))
	}
}

// closed keeps what the chain lacks on a motion that is closed now.
func (m *Machine) closed(motion votes.MotionID) {
	m.ready(motion)
	for _, id := range m.polls.dueOn(motion) {
		m.keepLate(id, m.polls.due[id])
	}
}

// dueOn is the ballots on a motion that wait for a block, in order.
func (p *polls) dueOn(motion votes.MotionID) (ids []aweigh.Hash) {
	for id, d := range p.due { // order-free: sorted below
		if d.Motion == motion {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b aweigh.Hash) int { return bytes.Compare(a[:], b[:]) })
	return ids
}

// recall holds ready again what came late in an earlier life. What has been
// recorded since, or whose motion is forgotten, goes.
func (m *Machine) recall() (bad error) {
	prefix := record(m.id, 'l')
	err := m.store.Scan(prefix, kv.PrefixEnd(prefix), false, func(k, raw []byte) bool {
		var c votes.CheckedMotionBallot
		if c, bad = votes.StoredMotionBallot(raw); bad != nil {
			bad = fmt.Errorf("node: a late ballot, key %x: %w", k, bad)
			return false
		}
		b := c.Ballot()
		mo, _, err := m.chain.state.Motion(b.Motion)
		must.OK(err, "reading a motion")
		if mo != nil && m.hold(b) {
			m.polls.due[b.ID()].late = true
		} else {
			m.polls.opening = append(m.polls.opening, kv.Del(keyLate(m.id, b.ID())))
		}
		return true
	})
	if err != nil {
		return err
	}
	return bad
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
