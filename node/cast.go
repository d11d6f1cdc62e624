package node

import (
	"bytes"
	"errors"

	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/box"
)

// Casting says what became of a ballot that was handed in.
type Casting struct {
	Outcome box.Outcome
	Late    bool  // its motion is decided: it will be recorded, and changes nothing (P34)
	Err     error // why it was refused
}

// ErrContrary refuses a ballot in this node's own name that contradicts an earlier
// one: it would prove that the anchor lies (P33).
var ErrContrary = errors.New("node: this anchor has said the opposite on the motion, and cannot take it back: two ballots prove a lie, and cost all trust")

// cast takes a ballot that was verified: into the box or, if its motion is closed, among
// the late ones. The box takes those on a motion that is approved and waits. One in this node's own name must not contradict what is known.
func (m *Machine) cast(c votes.CheckedMotionBallot, own bool) Casting {
	b := c.Ballot()
	mo := m.Motion(b.Motion)
	late := m.isLate(b.Motion, mo)
	if own && m.contrary(b) {
		return Casting{Err: ErrContrary}
	}
	switch known, err := m.examine(b, mo); {
	case err != nil:
		return Casting{Err: err}
	case known:
		return Casting{Outcome: box.Repeated, Late: late}
	}
	m.fx.Sync = true // it is acknowledged, or passed on
	if mo.State == box.Closed {
		m.write(m.keepLate(b))
		return Casting{Outcome: box.Added, Late: true}
	}
	out, ops, err := m.polls.box.Add(c, mo)
	if err != nil {
		return Casting{Err: err}
	}
	m.write(ops...)
	if mo.State == box.Open {
		m.holdBoxed(b)
	}
	return Casting{Outcome: out, Late: late}
}

// isLate reports whether no ballot changes a motion any more: it is closed, or approved and waits for its turn.
func (m *Machine) isLate(id votes.MotionID, mo box.Motion) bool {
	if mo.State != box.Open {
		return mo.State == box.Closed
	}
	at, err := m.chain.state.ApprovedAt(id)
	must.OK(err, "reading when a motion was approved")
	return at != 0
}

// castUnchecked takes a ballot that nobody has verified, of one who may have no vote any
// more on what opens now, but on what opened in an epoch before. It is verified if it is
// not known and there is no other reason to refuse it.
func (m *Machine) castUnchecked(b votes.MotionBallot) Casting {
	mo := m.Motion(b.Motion)
	switch known, err := m.examine(b, mo); {
	case err != nil:
		return Casting{Err: err}
	case known:
		return Casting{Outcome: box.Repeated, Late: m.isLate(b.Motion, mo)}
	}
	c, err := votes.CheckMotionBallot(b, m.network(), m.id, mo.Voters, m.cfg.Network.verify)
	if err != nil {
		return Casting{Err: err}
	}
	return m.cast(c, false)
}

// examine says, without looking at the signature, whether a ballot may be taken; known
// is set if it was already.
func (m *Machine) examine(b votes.MotionBallot, mo box.Motion) (known bool, err error) {
	if mo.State == box.Closed {
		return m.examineLate(b, mo)
	}
	return m.polls.box.Examine(b, mo)
}

// contrary reports whether the voter is known to have said the opposite.
func (m *Machine) contrary(b votes.MotionBallot) bool {
	b.Choice = b.Choice.Other()
	return !m.lacks(b) || m.polls.box.Has(b.ID()) || m.polls.late.Has(b.ID())
}

// handIn takes ballots from this node's own clients, and passes on what is new.
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
	if len(fresh) > 0 {
		m.polls.soon(m.now, m.cfg.Bounds.MeetOften)
		m.passOn(fresh)
	}
}

// maxCastBytes bounds the ballots in one frame.
const maxCastBytes = 32 << 10

// passOn sends new ballots to all anchors. Whoever misses them gets them when boxes
// meet.
func (m *Machine) passOn(fresh [][]byte) {
	for len(fresh) > 0 {
		n, size := 0, 0
		for n < len(fresh) && (n == 0 || size+len(fresh[n]) <= m.cfg.Bounds.CastBytes) {
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
	id := b.ID()
	if d := m.polls.due[id]; d != nil {
		return bytes.Equal(d.Encode(), b.Encode())
	}
	if !m.polls.box.Has(id) {
		return false
	}
	raw, ok, err := box.Load(m.recent, m.id, id)
	must.OK(err, "reading the ballot box")
	return ok && bytes.Equal(raw, b.Encode())
}
