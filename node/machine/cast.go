package machine

import (
	"bytes"
	"errors"

	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/box"
)

// Casting is the result of handing in a ballot.
type Casting struct {
	Outcome  box.Outcome
	Contrary bool  // the voter is known to have voted the opposite, in the box or in a block (P33); own clients only
	Late     bool  // its motion is decided: the ballot will be recorded but changes nothing (P34)
	Err      error // why the ballot was refused
}

// ErrContrary refuses a ballot in this node's own name that contradicts an earlier one: the two would prove that the
// anchor lies (P33).
var ErrContrary = errors.New("node: this anchor has said the opposite on the motion, and cannot take it back: two ballots prove a lie, and cost all trust")

// cast takes a verified ballot. If the motion is closed, the ballot joins the late ballots; otherwise it goes into the
// box, as does a ballot on a motion that is approved and waits for its turn. A ballot in this node's own name must not
// contradict a known one.
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
	m.fx.Sync = true // the ballot will be acknowledged or passed on
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
		m.polls.due.holdBoxed(b)
	}
	return Casting{Outcome: out, Late: late}
}

// isLate reports whether ballots can no longer change a motion: it is closed, or it is approved and waits for its
// turn.
func (m *Machine) isLate(id votes.MotionID, mo box.Motion) bool {
	if mo.State != box.Open {
		return mo.State == box.Closed
	}
	at, err := m.chain.state.ApprovedAt(id)
	must.OK(err, "reading when a motion was approved")
	return at != 0
}

// castUnchecked takes a ballot that is not verified yet. Its voter may have no vote on motions that open now, but one
// on a motion that opened in an earlier epoch. castUnchecked verifies the ballot only if it is unknown and nothing
// else refuses it.
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

// examine reports, without checking the signature, whether a ballot may be taken; known is true if it was taken
// before.
func (m *Machine) examine(b votes.MotionBallot, mo box.Motion) (known bool, err error) {
	if mo.State == box.Closed {
		return m.examineLate(b, mo)
	}
	return m.polls.box.Examine(b, mo)
}

// contrary reports whether the opposite ballot of the same voter is known.
func (m *Machine) contrary(b votes.MotionBallot) bool {
	b.Choice = b.Choice.Other()
	return !m.lacks(b) || m.polls.box.Has(b.ID()) || m.polls.due.late.Has(b.ID())
}

// handIn takes ballots from this node's own clients and passes on the new ones.
func (m *Machine) handIn(ev HandIn) {
	reply := Reply{Read: ev.ID, Cast: make([]Casting, len(ev.Ballots))}
	var fresh [][]byte
	for i, c := range ev.Ballots {
		r := m.cast(c, ev.Own)
		if reply.Cast[i] = r; r.Err == nil && r.Outcome != box.Repeated {
			b := c.Ballot()
			fresh = append(fresh, b.Encode())
		}
		reply.Cast[i].Contrary = r.Err == nil && m.contrary(c.Ballot())
	}
	m.fx.Reply = append(m.fx.Reply, reply)
	if len(fresh) > 0 {
		m.polls.soon(m.now, m.cfg.Bounds.MeetOften)
		m.passOn(fresh)
	}
}

// maxCastBytes bounds the ballots in one frame.
const maxCastBytes = 32 << 10

// passOn sends new ballots to all anchors. An anchor that misses them receives them when ballot boxes are reconciled.
func (m *Machine) passOn(fresh [][]byte) {
	for len(fresh) > 0 {
		n, size := 0, 0
		for n < len(fresh) && (n == 0 || size+len(fresh[n]) <= m.cfg.Bounds.CastBytes) {
			size += len(fresh[n])
			n++
		}
		m.broadcast(TagCast, Cast{Ballots: fresh[:n]})
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

// heard notes a ballot from a peer that was refused.
func (m *Machine) heard(from Peer, c Casting) {
	if c.Err == nil {
		return
	}
	d := DroppedFrame(from, c.Err)
	if errors.Is(c.Err, votes.ErrNotInRoster) {
		d.Class = refusal.Stale // the author may have been a voter in the epoch that the ballot comes from
	}
	m.note(d)
}

// hasBallot reports whether this node has verified exactly this ballot.
func (m *Machine) hasBallot(b votes.MotionBallot) bool {
	id := b.ID()
	if due := m.polls.due.get(id); due != nil {
		return bytes.Equal(due.Encode(), b.Encode())
	}
	if !m.polls.box.Has(id) {
		return false
	}
	raw, ok, err := box.Load(m.recent, m.id, id)
	must.OK(err, "reading the ballot box")
	return ok && bytes.Equal(raw, b.Encode())
}
