package node

import (
	"bytes"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/box"
	"github.com/aweigh/aweigh/votes/reconcile"
)

// polls is what a node knows of ballots on motions: its box (P30), and which of
// them the chain has yet to record.
type polls struct {
	box     *box.Box
	opening []kv.Op // what opening the box found to be over; written with the first step
	known   map[votes.MotionID]box.Motion
	due     map[aweigh.Hash]*dueBallot     // on motions that are on record, and not recorded themselves
	room    int                            // for so many
	idle    int                            // those of due in no open proposal
	rest    map[votes.MotionID]aweigh.Hash // open motions, and from which voter on the box may have what due lacks

	late     reconcile.Tree // ballots on closed motions, see late.go
	lateRest bool           // due may lack some
	meets
}

// dueBallot is a ballot for the next block.
type dueBallot struct {
	votes.MotionBallot
	view aweigh.View // of an open proposal that holds it, 0 if none
}

// maxDue bounds the ballots that are held ready for blocks. Those above it wait
// in the box, or with the late ones.
const maxDue = 20_000

// openBox reads the box, and what of it the chain has not recorded.
func (m *Machine) openBox() error {
	p := &m.polls
	p.known, p.due, p.room = make(map[votes.MotionID]box.Motion), make(map[aweigh.Hash]*dueBallot), maxDue
	p.rest, p.lateRest = make(map[votes.MotionID]aweigh.Hash), true
	b, over, err := box.New(m.id, m.id, box.Limits{}, m.store, m)
	if err != nil {
		return err
	}
	p.box = b
	err = m.chain.state.Motions(func(id votes.MotionID, open bool) bool {
		if open {
			p.rest[id] = aweigh.Hash{}
		} else { // as in a snapshot: what the box has on it comes late
			m.write(m.closed(id)...)
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

// Motion implements box.Motions: what is known of a motion as of the final state.
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
	must.OK(err, "reading the keys of those who may vote")
	known := box.Motion{State: box.Open, Voters: keys}
	if end != nil {
		known.State = box.Closed
	}
	m.polls.known[id] = known
	return known
}

// refill goes on to hold ready what there was no room for, and the chain lacks: on
// open motions, those first that end first, and then what came late.
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

// ready holds ready what the box has on an open motion, from a voter on.
func (m *Machine) ready(id votes.MotionID, from aweigh.Hash) {
	err := m.polls.box.BallotsFrom(m.recent, id, from, func(c votes.CheckedMotionBallot) bool {
		return m.holdBoxed(c.Ballot())
	})
	must.OK(err, "reading the ballot box")
}

// holdBoxed holds a ballot of the box ready, or notes that refill has to.
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

// hold holds one ballot ready, unless it is recorded. It reports false if there is no
// room for it.
func (m *Machine) hold(b votes.MotionBallot) bool {
	p, id := &m.polls, b.ID()
	if p.due[id] != nil || !m.lacks(b) {
		return true
	}
	if len(p.due) >= p.room {
		return false
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

// ballots are those for a block on top of a state: what is due, and what came
// before the motions that the block opens (P35).
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
			continue // it was an anchor when its ballot came, before the motion
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
		if size += len(raw); size > scope.MaxBallotBytes || motions > scope.MaxBallotMotions {
			break
		}
		raws = append(raws, raw)
	}
	return raws
}

// holdBallots marks the ballots of a block as part of an open proposal.
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

// ballotsOf are the names of the ballots on motions in a block that was checked, or is
// about to be.
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

// release lets those of proposals in the views from and to wait again.
func (p *polls) release(from, to aweigh.View) {
	for _, d := range p.due { // order-free: each for itself
		if d.view != 0 && from <= d.view && d.view <= to {
			d.view = 0
			p.idle++
		}
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

// polled takes note of what a final block did to motions and ballots.
func (m *Machine) polled(k *candidate) {
	p := &m.polls
	for _, id := range ballotsOf(k.block) {
		m.settle(id)
	}
	for _, id := range k.result.Motions {
		delete(p.known, id)
		mo := m.Motion(id)
		var ops []kv.Op
		var err error
		switch mo.State {
		case box.Open:
			if ops, err = p.box.Opened(m.recent, id, mo.Voters); err == nil {
				m.write(ops...)
				ops = nil
				m.ready(id, aweigh.Hash{})
			}
		case box.Closed:
			delete(p.rest, id)
			if late := m.closed(id); len(late) > 0 {
				m.write(late...)
				p.soon(m.now)
			}
			ops, err = p.box.Closed(m.recent, id)
		default: // forgotten
			for _, ballot := range p.dueOn(id) {
				m.settle(ballot)
			}
		}
		must.OK(err, "reading the ballot box")
		m.write(ops...)
	}
	if (len(p.rest) > 0 || p.lateRest) && len(p.due) < p.room/2 {
		must.OK(m.refill(), "reading the motions")
	}
}

// settle forgets a ballot that needs no block any more.
func (m *Machine) settle(id aweigh.Hash) {
	p := &m.polls
	if p.late.Remove(id) {
		m.write(kv.Del(keyLate(m.id, id)))
	}
	if d := p.due[id]; d != nil {
		if delete(p.due, id); d.view == 0 {
			p.idle--
		}
	}
}
