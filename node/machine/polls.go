package machine

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/box"
)

// polls is what a node knows of ballots on motions: its box (P30), and the ballots that the chain has yet to record.
type polls struct {
	box     *box.Box
	opening []kv.Op                       // deletes what was over when the box was opened; written with the first step
	known   map[votes.MotionID]box.Motion // motions looked up recently
	due     dueBallots
	reconciliations
}

// openBox opens the box, and holds ready those of its ballots that the chain has not recorded.
func (m *Machine) openBox() error {
	p := &m.polls
	p.due = newDueBallots(m.cfg.Bounds.Due, m.lacks)
	b, over, err := box.New(m.network(), m.id, m.cfg.Bounds.Box, m.store, m)
	if err != nil {
		return err
	}
	p.box = b
	err = m.chain.state.Motions(func(id votes.MotionID, open bool) bool {
		if open {
			p.due.backlog[id] = aweigh.Hash{}
		} else { // it may have closed elsewhere, as in a snapshot
			m.keepAsLate(id)
		}
		return true
	})
	if err != nil {
		return err
	}
	m.write(over...)
	if err := m.refill(); err != nil {
		return err
	}
	p.opening, m.fx.Write = m.fx.Write, nil
	m.recent.Reset()
	return nil
}

// Motion returns what the final state says of a motion. It implements box.Motions.
func (m *Machine) Motion(id votes.MotionID) box.Motion {
	if mo, ok := m.polls.known[id]; ok {
		return mo
	}
	mo, end, err := m.chain.state.Motion(id)
	must.OK(err, "reading a motion")
	if mo == nil {
		if was, err := m.history().Minutes(id); err == nil && was != nil { // it is over, and the state has forgotten it
			return box.Motion{State: box.Closed, Voters: votes.KeySet{}}
		}
		return box.Motion{State: box.Unknown, Voters: m.term.electors}
	}
	keys, err := mo.Keys()
	must.OK(err, "reading the keys of the voters")
	known := box.Motion{State: box.Open, Voters: keys}
	if end != nil {
		known.State = box.Closed
	}
	if m.polls.known == nil || len(m.polls.known) >= m.cfg.Bounds.Known {
		m.polls.known = make(map[votes.MotionID]box.Motion)
	}
	m.polls.known[id] = known
	return known
}

// maxKnown bounds polls.known. What is dropped from it is read again.
const maxKnown = 1024

// polled notes what a final block did to motions and ballots.
func (m *Machine) polled(k *candidate) {
	p := &m.polls
	for _, id := range ballotsOf(k.block) {
		m.settle(id)
	}
	for _, id := range k.result.Motions {
		delete(p.known, id)
		mo, end, err := m.chain.state.Motion(id)
		must.OK(err, "reading a motion")
		switch {
		case mo == nil:
			m.forgotten(id)
		case end == nil:
			m.opened(id)
		case m.closed(id):
			p.soon(m.now, m.cfg.Bounds.MeetOften)
		}
	}
	if p.due.lacksSome() {
		must.OK(m.refill(), "reading the motions")
	}
}

// opened notes that a motion has opened.
func (m *Machine) opened(id votes.MotionID) {
	ops, err := m.polls.box.Opened(m.recent, id, m.Motion(id).Voters)
	must.OK(err, "reading the ballot box")
	m.write(ops...)
	m.ready(id, aweigh.Hash{})
}

// dropFromBox takes the ballots on a motion out of the box: they can no longer count.
func (m *Machine) dropFromBox(id votes.MotionID) {
	m.polls.due.takeBacklog(id)
	ops, err := m.polls.box.Closed(m.recent, id)
	must.OK(err, "reading the ballot box")
	m.write(ops...)
}

// refill holds further ballots ready, which the chain lacks and for which there was no room before: first those on
// open motions, in the order in which the motions end, then the late ballots.
func (m *Machine) refill() error {
	due := &m.polls.due
	err := m.chain.state.Motions(func(id votes.MotionID, open bool) bool {
		if open {
			if from, ok := due.takeBacklog(id); ok {
				m.ready(id, from)
			}
		}
		return open && !due.full()
	})
	if err != nil || !due.lateBacklog {
		return err
	}
	ops, err := m.recall()
	m.write(ops...)
	return err
}

// ready holds ready the ballots of the box on an open motion, beginning with the voter from.
func (m *Machine) ready(id votes.MotionID, from aweigh.Hash) {
	err := m.polls.box.BallotsFrom(m.recent, id, from, func(c votes.CheckedMotionBallot) bool {
		return m.polls.due.holdBoxed(c.Ballot())
	})
	must.OK(err, "reading the ballot box")
}

// lacks reports whether the chain has not recorded a ballot.
func (m *Machine) lacks(b votes.MotionBallot) bool {
	have, err := m.chain.state.HasBallot(b.MotionVote, b.Voter)
	must.OK(err, "reading a ballot")
	return !have
}

// settle forgets a ballot that needs no block any more.
func (m *Machine) settle(id aweigh.Hash) {
	if m.polls.due.settle(id) {
		m.write(kv.Del(KeyLate(m.id, id)))
	}
}
