package node

import (
	"errors"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// certified keeps what lets this node enter a view, so that after a restart it
// can still show how it came there.
func (m *Machine) certified(c quorum.Certificate) {
	switch c.Subject.Kind {
	case quorum.Notarize:
		m.keepCertificate(c)
		if k := m.chain.candidates[c.Subject.Block]; k != nil {
			m.carries(k.block) // the view may have been nullified before
		}
	case quorum.Nullify:
		m.keepCertificate(c)
		if v := c.Subject.View; m.engine.Certificate(quorum.Notarize, v).IsZero() {
			m.release(v, v)
		}
		m.note(Nullified{View: c.Subject.View, Leader: m.engine.Leader(c.Subject.View)})
	}
	m.witness(c)
}

func (m *Machine) keepCertificate(c quorum.Certificate) {
	m.write(kv.Set(keyCertificate(m.id, c.Subject), canon.Encode(c)))
	m.kept = append(m.kept, c.Subject)
}

// sign asks the guard, and sends the ballot with this step's effects.
func (m *Machine) sign(s quorum.Subject) {
	if b, ok := m.vouch(s); ok {
		m.broadcastFrame(rawFrame(tagBallot, b.Encode()))
		v := b.Vote()
		m.attend(&v)
		m.inputs = append(m.inputs, v)
	}
}

// vouch asks the guard, and makes durable with this step what it signed.
func (m *Machine) vouch(s quorum.Subject) (votes.Ballot, bool) {
	if m.guard == nil {
		return votes.Ballot{}, false
	}
	if !m.listen.over && !m.guard.Lost() {
		m.listen.hold(s, m.cfg.Bounds.Held)
		return votes.Ballot{}, false
	}
	if s.View < m.listen.since && !m.forgone(s) {
		return votes.Ballot{}, false
	}
	b, ops, err := m.guard.Sign(s)
	if err != nil {
		m.lost(err)
		return b, false
	}
	m.signed[s.Kind]++
	m.write(ops...)
	m.fx.Sync = true
	if s.Kind == m.keyring.Rules().Mode.Vouch() {
		m.chain.keep(m, s.Block)
	}
	return b, true
}

// forgone reports whether a subject gives up a view where one round decides. All who
// are left may have to, in views that others have left long ago; an anchor that forgot
// what it voted for there is one that lies (0015), and nobody may in that mode.
func (m *Machine) forgone(s quorum.Subject) bool {
	return s.Kind == quorum.Nullify && s.View > m.engine.Final() && m.keyring.Rules().Mode.OneRound()
}

// lost handles a guard that refuses: it lost its record (P9), or this code is
// wrong, and then it must stop.
func (m *Machine) lost(err error) {
	must.Hold(errors.Is(err, votes.ErrLostState), "the signing guard refused: %v", err)
	if !m.reportedLost {
		m.reportedLost = true
		m.note(LostState{View: m.engine.View()})
	}
}

// witness looks for this anchor's own signature where the guard does not know
// of it (P9).
func (m *Machine) witness(c quorum.Certificate) {
	if m.guard == nil || m.guard.Knows(c.Subject) {
		return
	}
	for _, s := range c.Signatures {
		if s.Anchor == m.self {
			m.witnessed(m.keyring.Ballot(quorum.Vote{Subject: c.Subject, Signature: s}))
		}
	}
}

func (m *Machine) witnessed(b votes.Ballot) {
	checked, err := m.keyring.Check(b)
	if err != nil {
		return
	}
	ops, lost := m.guard.Witness(checked)
	m.write(ops...)
	m.fx.Sync = m.fx.Sync || len(ops) > 0
	if lost && !m.reportedLost {
		m.reportedLost = true
		m.note(LostState{View: b.Subject.View})
	}
}

func (m *Machine) ballot(b *ballotIn) {
	v := b.ballot.Vote()
	if v.Anchor == m.self && m.guard != nil && !m.guard.Knows(v.Subject) {
		m.witnessed(b.ballot.Ballot())
	}
	m.attend(&v)
	m.inputs = append(m.inputs, b.input)
}

// certificate takes a certificate from another node: at once if the engine
// holds one for the same subject, otherwise if it verifies.
func (m *Machine) certificate(c quorum.Certificate) bool {
	s := c.Subject
	if have := m.engine.Certificate(s.Kind, s.View); !have.IsZero() {
		return have.Subject == s
	}
	if s.View < m.engine.Final() {
		return false
	}
	if err := m.keyring.CheckCertificate(c); err != nil {
		return false
	}
	m.inputs = append(m.inputs, c)
	return true
}

// certificates takes those that came with a message, up to the first bad one.
func (m *Machine) certificates(from Peer, certs []quorum.Certificate) {
	for _, c := range certs {
		if c.Subject.View >= m.engine.Final() && !m.certificate(c) {
			m.note(Dropped{From: from, Class: Forged, Why: "a certificate that does not hold: " + c.Subject.String()})
			return
		}
		m.witness(c)
	}
}
