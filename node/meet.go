package node

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/box"
	"github.com/aweigh/aweigh/votes/reconcile"
)

// meets are the sessions in which this node's ballot box and others' become one
// (P30). Who meets an anchor begins one, and then, as long as there are ballots,
// one with each anchor in turn, more and more seldom while nothing is new. Who begins
// hands on the late ballots as well (P34): they wait for an anchor's block.
type meets struct {
	mine, theirs map[Peer]*session // by who began
	at           aweigh.Instant    // when the next begins, 0: no need
	wait         time.Duration
	asked        int    // peer of the last turn
	begun        uint64 // sessions
}

type session struct {
	*reconcile.Session
	until aweigh.Instant // without a word until then, it is over
}

const (
	maxMeeting   = 64 << 10 // bytes of one message: its ballots are verified while consensus waits
	meetRounds   = 1 << 16
	meetPatience = 10 * time.Second
	meetOften    = 15 * time.Second
	meetSeldom   = 10 * time.Minute
	maxSessions  = 16 // that peers began which are no anchors
)

// side is the box as it is now.
func (m *Machine) side() reconcile.Side {
	s := m.polls.box.Side(m.recent)
	s.Limits.Message, s.Limits.Rounds = maxMeeting, meetRounds
	return s
}

// meet begins a session with a peer.
func (m *Machine) meet(p Peer) {
	k := &m.polls.meets
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
	m.send(p, tagMeet, Meeting{Part: Begins, Message: out})
}

// none reports whether there are no ballots that others may lack.
func (p *polls) none() bool { return p.box.Len() == 0 && p.late.Len() == 0 }

func (s *session) open(now aweigh.Instant) bool { return s != nil && now < s.until }

// part ends the sessions with a peer that is gone.
func (k *meets) part(p Peer) {
	delete(k.mine, p)
	delete(k.theirs, p)
}

// meetAgain begins the next session in turn.
func (m *Machine) meetAgain() {
	k := &m.polls.meets
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

// soon lets the next session begin before long: there is what others may lack.
func (k *meets) soon(now aweigh.Instant, often time.Duration) {
	k.wait = often
	k.at = aweigh.Earliest(k.at, now.Add(often))
}

// meeting takes a message of a session.
func (m *Machine) meeting(from Peer, in Meeting) {
	k := &m.polls.meets
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
	case errors.Is(err, reconcile.ErrProtocol) || errors.Is(err, reconcile.ErrTopic) || errors.Is(err, reconcile.ErrLimit):
		k.end(from, in.Part)
		m.note(dropped(from, err))
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
			k.end(from, in.Part) // no box gives such
			return
		}
	}
	if len(out) > 0 {
		m.send(from, tagMeet, Meeting{Part: answer, Message: out})
	}
	if done {
		k.end(from, in.Part)
	}
}

// respond begins the part of one who was asked.
func (m *Machine) respond(p Peer) *session {
	k := &m.polls.meets
	for q, s := range k.theirs { // order-free: a filter
		if !s.open(m.now) {
			delete(k.theirs, q)
		}
	}
	if strangers := m.strangersMeet(); k.theirs[p] == nil && m.anchors[p] == (aweigh.AnchorID{}) && strangers >= m.cfg.Bounds.Sessions {
		return nil
	}
	if k.theirs == nil {
		k.theirs = make(map[Peer]*session)
	}
	k.theirs[p] = &session{reconcile.Respond(m.side()), m.now.Add(m.cfg.Bounds.MeetPatience)}
	return k.theirs[p]
}

// strangersMeet is how many sessions peers have begun that are no anchors.
func (m *Machine) strangersMeet() (n int) {
	for p := range m.polls.theirs { // order-free: counted
		if m.anchors[p] == (aweigh.AnchorID{}) {
			n++
		}
	}
	return n
}

// end ends the session in which a peer has a part.
func (k *meets) end(p Peer, part MeetingPart) {
	if part == Answers {
		delete(k.mine, p)
	} else {
		delete(k.theirs, p)
	}
}
