package node

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/box"
)

// polls is what a node knows of ballots on motions: its box (P30), and which of
// them the chain has yet to record.
type polls struct {
	box     *box.Box
	opening []kv.Op // what opening the box found to be over; written with the first step
	known   map[votes.MotionID]box.Motion
	due     map[aweigh.Hash]*dueBallot // on motions that are on record, and not recorded themselves
	idle    int                        // those of due in no open proposal
	more    bool                       // the box has more of these than due has room for
	meets
}

// dueBallot is a ballot for the next block.
type dueBallot struct {
	votes.MotionBallot
	view aweigh.View // of an open proposal that holds it, 0 if none
	late bool        // it has a record of its own, see keepLate
}

// maxDue bounds the ballots that are held ready for blocks. Those above it wait
// in the box.
const maxDue = 20_000

// Casting says what became of a ballot that was handed in.
type Casting struct {
	Outcome box.Outcome
	Late    bool  // its motion is closed: it will be recorded, and changes nothing (P34)
	Err     error // why it was refused
}

// ErrContrary refuses a ballot in this node's own name that contradicts an earlier
// one: it would prove that the anchor lies (P33).
var ErrContrary = errors.New("node: this anchor has said the opposite on the motion, and cannot take it back: two ballots prove a lie, and cost all trust")

// openBox reads the box, and what of it the chain has not recorded.
func (m *Machine) openBox() (err error) {
	p := &m.polls
	p.known, p.due = make(map[votes.MotionID]box.Motion), make(map[aweigh.Hash]*dueBallot)
	p.box, p.opening, err = box.New(m.id, m.id, box.Limits{}, m.store, m)
	if err != nil {
		return err
	}
	// What it held on motions that closed elsewhere, as in a snapshot, comes late.
	var late []kv.Op
	err = m.chain.state.Motions(func(id votes.MotionID, open bool) bool {
		if !open {
			late = append(late, m.closed(id)...)
		}
		return true
	})
	if err != nil {
		return err
	}
	if err := m.refill(); err != nil {
		return err
	}
	p.opening = append(append(late, p.opening...), m.fx.Write...) // written with the first step
	m.fx.Write = nil
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

// refill holds ready what the box has on open motions and the chain lacks.
func (m *Machine) refill() error {
	p := &m.polls
	p.more = false
	err := m.chain.state.Motions(func(id votes.MotionID, open bool) bool {
		if open {
			m.ready(id)
		}
		return open && !p.more
	})
	if err != nil {
		return err
	}
	ops, err := m.recall()
	m.write(ops...)
	return err
}

// ready holds ready what the box has on a motion.
func (m *Machine) ready(id votes.MotionID) {
	err := m.polls.box.Ballots(m.recent, id, func(c votes.CheckedMotionBallot) bool {
		m.hold(c.Ballot())
		return !m.polls.more
	})
	must.OK(err, "reading the ballot box")
}

// hold holds one ballot ready, unless it is recorded.
func (m *Machine) hold(b votes.MotionBallot) bool {
	p := &m.polls
	id := b.ID()
	if p.due[id] != nil {
		return false
	}
	have, err := m.chain.state.HasBallot(b.MotionVote, b.Voter)
	must.OK(err, "reading a ballot")
	if have {
		return false
	}
	if len(p.due) >= maxDue {
		p.more = true
		return false
	}
	p.due[id] = &dueBallot{MotionBallot: b}
	p.idle++
	return true
}

// cast puts a ballot into the box, or holds it ready if it comes late. It passes
// on what is new.
func (m *Machine) cast(c votes.CheckedMotionBallot, own bool) Casting {
	p, b := &m.polls, c.Ballot()
	mo := m.Motion(b.Motion)
	if own && m.contrary(b) {
		return Casting{Err: ErrContrary}
	}
	if mo.State == box.Closed {
		if _, voter := mo.Voters.Key(b.Voter); !voter {
			return Casting{Err: fmt.Errorf("%w: %s may not vote on motion %s", votes.ErrStranger, b.Voter.Short(), b.Motion.Short())}
		}
		if d := p.due[b.ID()]; d != nil && d.late || !m.lacks(b) {
			return Casting{Outcome: box.Repeated, Late: true}
		}
		m.write(m.keepLate(b))
		m.fx.Sync = true
		return Casting{Outcome: box.Added, Late: true}
	}
	out, ops, err := p.box.Add(c, mo)
	if err != nil {
		return Casting{Err: err}
	}
	if len(ops) > 0 {
		m.write(ops...)
		m.fx.Sync = true // it is acknowledged, or passed on
		if mo.State == box.Open {
			m.hold(b)
		}
	}
	return Casting{Outcome: out}
}

// contrary reports whether the voter is known to have said the opposite.
func (m *Machine) contrary(b votes.MotionBallot) bool {
	b.Choice = b.Choice.Other()
	have, err := m.chain.state.HasBallot(b.MotionVote, b.Voter)
	must.OK(err, "reading a ballot")
	return have || m.polls.box.Has(b.ID()) || m.polls.due[b.ID()] != nil
}

// handIn takes ballots from this node's own clients.
func (m *Machine) handIn(ev HandIn) {
	reply := Reply{Read: ev.ID, Cast: make([]Casting, len(ev.Ballots))}
	var fresh [][]byte
	for i, c := range ev.Ballots {
		r := m.cast(c, ev.Own)
		if reply.Cast[i] = r; r.Err == nil && r.Outcome != box.Repeated {
			b := c.Ballot()
			fresh = append(fresh, b.Encode())
		}
	}
	m.fx.Reply = append(m.fx.Reply, reply)
	m.passOn(fresh)
}

// maxCastBytes bounds the ballots in one frame.
const maxCastBytes = 32 << 10

// passOn sends new ballots to all anchors. Whoever misses them gets them when boxes
// meet.
func (m *Machine) passOn(fresh [][]byte) {
	for len(fresh) > 0 {
		n, size := 0, 0
		for n < len(fresh) && (n == 0 || size+len(fresh[n]) <= maxCastBytes) {
			size += len(fresh[n])
			n++
		}
		m.broadcast(tagCast, Cast{Ballots: fresh[:n]})
		fresh = fresh[n:]
	}
}

// castBy takes ballots from a peer.
func (m *Machine) castBy(from Peer, in castIn) {
	for _, c := range in.checked {
		m.heard(from, m.cast(c, false))
	}
	for _, b := range in.others {
		m.heard(from, m.castUnchecked(b))
	}
}

// castUnchecked verifies a ballot of one who may have no vote any more on what
// opens now, but on what opened in an epoch before.
func (m *Machine) castUnchecked(b votes.MotionBallot) Casting {
	mo := m.Motion(b.Motion)
	if mo.State != box.Closed {
		if known, err := m.polls.box.Examine(b, mo); err != nil {
			return Casting{Err: err}
		} else if known {
			return Casting{Outcome: box.Repeated}
		}
	}
	c, err := votes.CheckMotionBallot(b, m.id, m.id, mo.Voters, m.cfg.Network.verify)
	if err != nil {
		return Casting{Err: err}
	}
	return m.cast(c, false)
}

// heard counts what a peer sent that is of no use.
func (m *Machine) heard(from Peer, c Casting) {
	if c.Err == nil {
		return
	}
	d := dropped(from, c.Err)
	if errors.Is(c.Err, votes.ErrStranger) {
		d.Class = Stale // it may have been a voter where this comes from, in another epoch
	}
	m.note(d)
}

// hasBallot reports whether a ballot was verified here.
func (m *Machine) hasBallot(b votes.MotionBallot) bool {
	p := &m.polls
	if d := p.due[b.ID()]; d != nil && bytes.Equal(d.Encode(), b.Encode()) {
		return true
	}
	if !p.box.Has(b.ID()) {
		return false
	}
	same := false
	err := p.box.Ballots(m.recent, b.Motion, func(c votes.CheckedMotionBallot) bool {
		have := c.Ballot()
		same = same || bytes.Equal(have.Encode(), b.Encode())
		return !same
	})
	must.OK(err, "reading the ballot box")
	return same
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
	m.eachDue(b, func(_ aweigh.Hash, d *dueBallot) {
		if d.view == 0 {
			m.polls.idle--
		}
		d.view = b.Header.View
	})
}

func (m *Machine) eachDue(b *scope.Block, do func(aweigh.Hash, *dueBallot)) {
	if len(m.polls.due) == 0 {
		return
	}
	for _, raw := range b.Ballots {
		v, err := votes.DecodeMotionBallot(raw)
		if err != nil {
			return // a block is checked before it counts
		}
		if d := m.polls.due[v.ID()]; d != nil {
			do(v.ID(), d)
		}
	}
}

// releaseBallots lets those of proposals in the views from and to wait again.
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
	m.eachDue(k.block, func(id aweigh.Hash, _ *dueBallot) { m.settle(id) })
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
				m.ready(id)
			}
		case box.Closed:
			m.write(m.closed(id)...)
			ops, err = p.box.Closed(m.recent, id)
		default: // forgotten
			for _, ballot := range p.dueOn(id) {
				m.settle(ballot)
			}
		}
		must.OK(err, "reading the ballot box")
		m.write(ops...)
	}
	if p.more && len(p.due) < maxDue/2 {
		must.OK(m.refill(), "reading the motions")
	}
}

// reelect takes over who may vote in another epoch.
func (p *polls) reelect() { clear(p.known) }
