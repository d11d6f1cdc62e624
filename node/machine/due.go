package machine

import (
	"bytes"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// dueBallot is a ballot for the next block.
type dueBallot struct {
	votes.MotionBallot
	view aweigh.View // view of the open proposal that holds it, 0 if there is none
}

// maxDue bounds the ballots that are held ready for blocks. Further ballots wait in the box, or with the late ballots.
const maxDue = 20_000

// refill holds further ballots ready, which the chain lacks and for which there was no room before: first those on
// open motions, in the order in which the motions end, then the late ballots.
func (m *Machine) refill() error {
	p := &m.polls
	err := m.chain.state.Motions(func(id votes.MotionID, open bool) bool {
		if from, ok := p.rest[id]; ok && open {
			delete(p.rest, id)
			m.ready(id, from)
		}
		return open && len(p.due) < p.room
	})
	if err != nil || !p.lateRest {
		return err
	}
	ops, err := m.recall()
	m.write(ops...)
	return err
}

// ready holds ready the ballots of the box on an open motion, beginning with the voter from.
func (m *Machine) ready(id votes.MotionID, from aweigh.Hash) {
	err := m.polls.box.BallotsFrom(m.recent, id, from, func(c votes.CheckedMotionBallot) bool {
		return m.holdBoxed(c.Ballot())
	})
	must.OK(err, "reading the ballot box")
}

// holdBoxed holds a ballot of the box ready. If there is no room it returns false and notes the motion for refill.
func (m *Machine) holdBoxed(b votes.MotionBallot) bool {
	if m.hold(b) {
		return true
	}
	rest := m.polls.rest
	if from, ok := rest[b.Motion]; !ok || bytes.Compare(b.Voter[:], from[:]) < 0 {
		rest[b.Motion] = b.Voter
	}
	return false
}

// hold holds one ballot ready, unless the chain has recorded it. It returns false if there is no room for it.
func (m *Machine) hold(b votes.MotionBallot) bool {
	p, id := &m.polls, b.ID()
	if p.due[id] != nil || !m.lacks(b) {
		return true
	}
	if len(p.due) >= p.room {
		return false
	}
	if p.due == nil {
		p.due = make(map[aweigh.Hash]*dueBallot)
	}
	p.due[id] = &dueBallot{MotionBallot: b}
	p.idle++
	return true
}

// lacks reports whether the chain has not recorded a ballot.
func (m *Machine) lacks(b votes.MotionBallot) bool {
	have, err := m.chain.state.HasBallot(b.MotionVote, b.Voter)
	must.OK(err, "reading a ballot")
	return !have
}

// ballots returns the encoded ballots for a block on top of s: the ballots that are due, and those that came before
// the motions that the block opens (P35).
func (m *Machine) ballots(s *scope.State, bundles []*scope.CheckedBundle) [][]byte {
	p := &m.polls
	all := make([]votes.MotionBallot, 0, min(len(p.due), 1024))
	for _, d := range p.due { // order-free: sorted below
		all = append(all, d.MotionBallot)
	}
	if p.box.Early() > 0 {
		for _, c := range bundles {
			for i := range c.Mutations() {
				id := c.Mutations()[i].ID
				if p.box.On(id) == 0 {
					continue
				}
				err := p.box.Ballots(m.recent, id, func(c votes.CheckedMotionBallot) bool {
					all = append(all, c.Ballot())
					return true
				})
				must.OK(err, "reading the ballot box")
			}
		}
	}
	slices.SortFunc(all, func(a, b votes.MotionBallot) int {
		if c := bytes.Compare(a.Motion[:], b.Motion[:]); c != 0 {
			return c
		}
		if c := bytes.Compare(a.Voter[:], b.Voter[:]); c != 0 {
			return c
		}
		return int(a.Choice) - int(b.Choice)
	})
	all = slices.CompactFunc(all, func(a, b votes.MotionBallot) bool { // a bundle may repeat what opened a motion
		return a.MotionVote == b.MotionVote && a.Voter == b.Voter
	})
	var raws [][]byte
	size, motions := 0, 0
	var last votes.MotionID
	var voters votes.KeySet
	for i := range all {
		b := &all[i]
		if i == 0 || b.Motion != all[i-1].Motion {
			var err error
			voters, err = s.Voters(b.Motion)
			must.OK(err, "reading who may vote")
		}
		if _, ok := voters.Key(b.Voter); !ok {
			continue // the voter was an anchor when its ballot came, before the motion
		}
		have, err := s.HasBallot(b.MotionVote, b.Voter)
		must.OK(err, "reading a ballot")
		if have {
			continue
		}
		raw := b.Encode()
		if b.Motion != last {
			motions, last = motions+1, b.Motion
		}
		if size += len(raw); size > s.Bounds().BallotBytes || motions > s.Bounds().BallotMotions {
			break
		}
		raws = append(raws, raw)
	}
	return raws
}

// holdBallots marks the ballots of a block as held by an open proposal.
func (m *Machine) holdBallots(b *scope.Block) {
	for _, id := range ballotsOf(b) {
		if d := m.polls.due[id]; d != nil {
			if d.view == 0 {
				m.polls.idle--
			}
			d.view = b.Header.View
		}
	}
}

// ballotsOf returns the IDs of the motion ballots in a block that was checked, or that is about to be checked.
func ballotsOf(b *scope.Block) (ids []aweigh.Hash) {
	for _, raw := range b.Ballots {
		v, err := votes.DecodeMotionBallot(raw)
		if err != nil {
			return ids
		}
		ids = append(ids, v.ID())
	}
	return ids
}

// release frees the ballots that proposals in the views from..to hold.
func (p *polls) release(from, to aweigh.View) {
	for _, d := range p.due { // order-free: each for itself
		if d.view != 0 && from <= d.view && d.view <= to {
			d.view = 0
			p.idle++
		}
	}
}

// dueOn returns the IDs of the ballots on a motion that wait for a block, in order.
func (p *polls) dueOn(motion votes.MotionID) (ids []aweigh.Hash) {
	for id, d := range p.due { // order-free: sorted below
		if d.Motion == motion {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b aweigh.Hash) int { return bytes.Compare(a[:], b[:]) })
	return ids
}

// settle forgets a ballot that needs no block any more.
func (m *Machine) settle(id aweigh.Hash) {
	p := &m.polls
	if p.late.Remove(id) {
		m.write(kv.Del(KeyLate(m.id, id)))
	}
	if d := p.due[id]; d != nil {
		if delete(p.due, id); d.view == 0 {
			p.idle--
		}
	}
}
