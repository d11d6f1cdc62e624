package machine

import (
	"errors"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// certified stores the certificates by which this node entered a view, so that it can still prove after a restart why
// it is in that view.
func (m *Machine) certified(c quorum.Certificate) {
	switch c.Subject.Kind {
	case quorum.Notarize:
		m.keepCertificate(c)
		if k := m.chain.candidates[c.Subject.Block]; k != nil {
			m.carries(k.block) // the view may have been nullified before
		}
	case quorum.Nullify:
		m.keepCertificate(c)
		m.passed(c.Subject.View)
	}
	m.witness(c)
}

func (m *Machine) keepCertificate(c quorum.Certificate) {
	m.write(kv.Set(KeyCertificate(m.id, c.Subject), canon.Encode(c)))
	m.kept = append(m.kept, c.Subject)
}

// passed notes that nullify ballots ended a view without a block.
func (m *Machine) passed(v aweigh.View) {
	if m.engine.Certificate(quorum.Notarize, v).IsZero() {
		m.release(v, v)
	}
	m.note(Nullified{View: v, Leader: m.engine.Leader(v)})
}

// sign asks the guard for a ballot on s and broadcasts the ballot with the effects of this step.
func (m *Machine) sign(s quorum.Subject) {
	if b, ok := m.vouch(s); ok {
		m.broadcastFrame(RawFrame(TagBallot, b.Encode()))
		v := b.Vote()
		m.attend(&v)
		m.inputs = append(m.inputs, v)
	}
}

// vouch asks the guard for a ballot on s and writes the guard's record of it with this step. It returns false if there
// is no ballot: this node is no anchor, it still listens (then it holds s until it may sign), or the guard refused.
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
	b, ops, err := m.guard.Sign(m.named(s))
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

// forgone reports whether s nullifies a view that is not final, in a mode where one round decides. An anchor may have
// to sign such a ballot for a view before listen.since: the remaining anchors may all be needed to nullify views that
// the others left long ago. An anchor that forgot its vote in such a view counts as a liar (0015), and that mode
// tolerates no liar.
func (m *Machine) forgone(s quorum.Subject) bool {
	return s.Kind == quorum.Nullify && s.View > m.engine.Final() && m.keyring.Rules().Mode.OneRound()
}

// lost handles an error of the guard. Either the guard lost its record (P9), or this code is wrong; then the process
// must stop.
func (m *Machine) lost(err error) {
	must.Hold(errors.Is(err, votes.ErrLostState), "the signing guard refused: %v", err)
	if !m.reportedLost {
		m.reportedLost = true
		m.note(LostState{View: m.engine.View()})
	}
}

// witness looks in a certificate for this anchor's own signature on a subject that the guard does not know (P9).
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

// certificate takes a certificate from another node: at once if the engine holds one for the same subject, otherwise
// if it verifies. It reports whether the certificate holds and is not below the newest final view.
func (m *Machine) certificate(c quorum.Certificate) bool {
	s := c.Subject
	decides := m.keyring.Decides(c) && m.engine.Certificate(quorum.Finalize, s.View).IsZero()
	if have := m.engine.Certificate(s.Kind, s.View); !have.IsZero() && (have.Subject.Block != s.Block || !decides) {
		return have.Subject.Block == s.Block
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

// certificates takes the certificates of a message, up to the first that does not verify.
func (m *Machine) certificates(from Peer, certs []quorum.Certificate) {
	for _, c := range certs {
		if c.Subject.View >= m.engine.Final() && !m.certificate(c) {
			m.note(Dropped{From: from, Class: refusal.Forged, Why: "a certificate that does not hold: " + c.Subject.String()})
			return
		}
		m.witness(c)
	}
}
