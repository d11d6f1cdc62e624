package machine

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/box"
	"github.com/aweigh/aweigh/votes/reconcile"
)

// reconciliations holds the sessions that reconcile this node's ballot box with those of other nodes (P30). A node
// begins a session with each anchor that it connects to, and then, as long as there are ballots, one with each anchor
// in turn, less and less often while nothing is new. The node that begins also hands on its late ballots (P34), which
// wait for an anchor's block.
type reconciliations struct {
	mine, theirs map[Peer]*session // sessions that this node began, and those that the peer began
	at           aweigh.Instant    // when the next begins, 0: no need
	wait         time.Duration
	asked        int    // index of the peer that had the last turn
	begun        uint64 // how many sessions this node began
}

type session struct {
	*reconcile.Session
	until aweigh.Instant // the session is over if no message came until then
}

const (
	maxMeeting   = 64 << 10 // bytes of one message: its ballots are verified while consensus waits
	meetRounds   = 1 << 16
	meetPatience = 10 * time.Second
	meetOften    = 15 * time.Second
	meetSeldom   = 10 * time.Minute
	maxSessions  = 16 // sessions begun by peers that are no anchors
)

// side returns the box as it is now.
func (m *Machine) side() reconcile.Side {
	s := m.polls.box.Side(m.recent)
	s.Limits.Message, s.Limits.Rounds = maxMeeting, meetRounds
	return s
}

// meet begins a session with a peer that is an anchor, unless one is open.
func (m *Machine) meet(p Peer) {
	k := &m.polls.reconciliations
	if m.polls.none() || m.anchors[p] == (aweigh.AnchorID{}) || k.mine[p].open(m.now) {
		return
	}
	k.begun++
	var salt reconcile.Salt
	sum := aweigh.Sum([]byte("aweigh/meeting/1"), binary.BigEndian.AppendUint64(nil, m.cfg.Life), binary.BigEndian.AppendUint64(nil, k.begun), []byte(p))
	copy(salt[:], sum[:])
	s, out := reconcile.Initiate(m.withLate(m.side()), salt)
	if k.mine == nil {
		k.mine = make(map[Peer]*session)
	}
	k.mine[p] = &session{s, m.now.Add(m.cfg.Bounds.MeetPatience)}
	m.send(p, TagMeet, ReconcileMsg{Part: Begins, Message: out})
}

// none reports whether there are no ballots that other nodes may lack.
func (p *polls) none() bool { return p.box.Len() == 0 && p.due.late.Len() == 0 }

func (s *session) open(now aweigh.Instant) bool { return s != nil && now < s.until }

// part ends the sessions with a peer that is gone.
func (k *reconciliations) part(p Peer) {
	delete(k.mine, p)
	delete(k.theirs, p)
}

// meetAgain begins the next session in turn.
func (m *Machine) meetAgain() {
	k := &m.polls.reconciliations
	if m.polls.none() || len(m.peers) == 0 {
		k.at, k.wait = 0, 0
		return
	}
	if k.at == 0 {
		k.soon(m.now, m.cfg.Bounds.MeetOften)
	}
	if m.now < k.at {
		return
	}
	k.wait = min(2*k.wait, m.cfg.Bounds.MeetSeldom)
	k.at = m.now.Add(k.wait)
	if p := m.next(&k.asked); p != "" {
		m.meet(p)
	}
}

// soon advances the next session: there are ballots that other nodes may lack.
func (k *reconciliations) soon(now aweigh.Instant, often time.Duration) {
	k.wait = often
	k.at = aweigh.Earliest(k.at, now.Add(often))
}

// meeting takes a message of a session.
func (m *Machine) meeting(from Peer, in ReconcileMsg) {
	k := &m.polls.reconciliations
	var s *session
	answer := Answers
	switch in.Part {
	case Begins:
		s = m.respond(from)
	case GoesOn:
		s = k.theirs[from]
	case Answers:
		s, answer = k.mine[from], GoesOn
	}
	if !s.open(m.now) {
		return
	}
	out, items, done, err := s.Step(in.Message)
	switch {
	case err == nil:
	case refusal.Of(err) != refusal.Internal:
		k.end(from, in.Part)
		m.note(DroppedFrame(from, err))
		return
	default:
		must.OK(err, "reading the ballot box")
	}
	s.until = m.now.Add(m.cfg.Bounds.MeetPatience)
	for _, raw := range items {
		b, err := votes.DecodeMotionBallot(raw)
		if err == nil {
			c := m.castUnchecked(b)
			if err = c.Err; err == nil && c.Outcome != box.Repeated {
				k.soon(m.now, m.cfg.Bounds.MeetOften)
			}
		}
		if m.heard(from, Casting{Err: err}); errors.Is(err, votes.ErrMalformed) || errors.Is(err, votes.ErrForged) {
			k.end(from, in.Part) // a correct box sends no such ballot
			return
		}
	}
	if len(out) > 0 {
		m.send(from, TagMeet, ReconcileMsg{Part: answer, Message: out})
	}
	if done {
		k.end(from, in.Part)
	}
}

// respond opens this node's side of a session that a peer begins. It returns nil if there are too many sessions.
func (m *Machine) respond(p Peer) *session {
	k := &m.polls.reconciliations
	for q, s := range k.theirs { // order-free: a filter
		if !s.open(m.now) {
			delete(k.theirs, q)
		}
	}
	if nonMembers := m.nonMemberSessions(); k.theirs[p] == nil && m.anchors[p] == (aweigh.AnchorID{}) && nonMembers >= m.cfg.Bounds.Sessions {
		return nil
	}
	if k.theirs == nil {
		k.theirs = make(map[Peer]*session)
	}
	k.theirs[p] = &session{reconcile.Respond(m.side()), m.now.Add(m.cfg.Bounds.MeetPatience)}
	return k.theirs[p]
}

// nonMemberSessions returns the number of open sessions that were begun by peers that are no anchors.
func (m *Machine) nonMemberSessions() (n int) {
	for p := range m.polls.theirs { // order-free: counted
		if m.anchors[p] == (aweigh.AnchorID{}) {
			n++
		}
	}
	return n
}

// end ends the session in which a peer has the given part.
func (k *reconciliations) end(p Peer, part ReconcileStep) {
	if part == Answers {
		delete(k.mine, p)
	} else {
		delete(k.theirs, p)
	}
}
