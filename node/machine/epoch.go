package machine

import (
	"bytes"
	"fmt"
	"math"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// begin sets the machine up for epoch e: the epoch of the state at the start, or the epoch that has just begun. The
// new engine and guard know nothing yet.
func (m *Machine) begin(e *scope.Epoch) error {
	t, err := m.cfg.Network.term(e)
	if err != nil {
		return fmt.Errorf("node: epoch %d: %w", e.Number, err)
	}
	m.term, m.roster, m.anchors, m.keyring = t, e.Roster, t.Anchors, t.keyring
	m.pool.outcomes.anchors = t.authors
	m.self, m.guard = aweigh.AnchorID{}, nil
	if key := m.cfg.Key; key != nil {
		if _, seated := m.roster.Seat(key.Public().ID()); seated {
			m.self = key.Public().ID()
			if m.guard, err = votes.OpenGuard(*key, m.keyring.Domain(), m.store); err != nil {
				return err
			}
		}
	}
	m.peers = t.others(m.self)
	m.engine = quorum.NewEngine(quorum.Config{
		Self: m.self, Weights: m.roster.Weights, Leaders: e.Leaders(), Rules: m.keyring.Rules(),
		Seed: e.Seed(), Root: e.Root, Timing: m.cfg.Timing, Bounds: m.cfg.Bounds.Quorum,
	})
	m.attends = attends{}
	return nil
}

// succeed leaves an epoch whose last block became final and enters the next (P25). Messages of the old epoch do not
// count in the new one.
func (m *Machine) succeed(e *scope.Epoch) {
	m.chain.abandon(m)
	if m.guard != nil {
		m.write(m.guard.Forget()...)
	}
	limits := m.chain.policy.Limits
	// In an earlier life, this anchor may have signed in the next epoch already. To have heard a quorum in only one
	// epoch of this life does not rule that out (P9), so the anchor listens in two.
	listen := startupBarrier{wanted: m.listen.wanted}
	if m.guard != nil && m.listen.over && !m.guard.Lost() {
		listen.times = m.listen.times
		listen.over = listen.times > 1
	}
	must.OK(m.begin(e), "beginning an epoch")
	must.OK(m.chain.enter(), "reading the epoch")
	m.refit(m.chain.policy.Limits, m.chain.policy.Limits != limits)

	m.listen = listen
	m.reportedLost = false
	clear(m.silent)
	m.wants, m.checks, m.inputs = wants{}, nil, m.inputs[:0]
	m.slot, m.proposal, m.proposed = nil, nil, 0
	m.told, m.engineWake, m.pollAt = false, 0, 0
	m.reads.restart()
	m.known = m.chain.state.Height() // announced blocks above it will never be applied
	m.sync.over = m.sync.over || m.fetched
	m.proofs.succeed(m)
	for _, p := range m.peers {
		if m.away[p] {
			m.inputs = append(m.inputs, quorum.Link{Anchor: m.anchors[p], Up: false})
		}
	}
	if e.Home != nil {
		m.refuseAll(scope.ErrElsewhere)
	}
	m.turned = true
	m.note(EpochBegan{Epoch: e, Seated: m.guard != nil})
}

// abandon drops the candidates that can no longer become final because their epoch is over.
func (c *chain) abandon(m *Machine) {
	c.goal = quorum.Certificate{}
	c.drop(m, math.MaxUint64)
}

// early holds frames of the next epoch that came before it began here.
type early struct {
	frames []earlyIn
	bytes  map[Peer]int
}

type earlyIn struct {
	from  Peer
	frame []byte
}

const (
	maxEarly      = 64 << 10 // bytes of one frame that is kept
	maxEarlyBytes = 64 << 10 // from one anchor
)

// keep holds a frame until the next epoch begins.
func (y *early) keep(from Peer, f []byte, most int) {
	if y.bytes[from]+len(f) > most {
		return
	}
	if y.bytes == nil {
		y.bytes = make(map[Peer]int)
	}
	y.bytes[from] += len(f)
	y.frames = append(y.frames, earlyIn{from, f})
}

// replay handles the frames that came too early, now that they can be verified.
func (m *Machine) replay() {
	frames := m.early.frames
	m.early = early{}
	for _, f := range frames {
		m.tooEarly(f.from, f.frame)
	}
}

// tooEarly keeps a frame of the next epoch, or handles it if that epoch has begun since the frame was checked.
func (m *Machine) tooEarly(from Peer, f []byte) {
	msg, err := m.Checker().Check(from, f)
	_, still := msg.(earlyFrame)
	if o, offer := msg.(offerIn); offer && o.early != nil {
		still = true
	}
	if still {
		m.early.keep(from, f, m.cfg.Bounds.EarlyBytes)
	} else if err == nil {
		m.arrived(from, msg)
	}
}

// Delegations returns the delegations that the scope has made.
func (m *Machine) Delegations() []scope.Delegation { return m.chain.state.Given() }

// Territory returns which keys are the scope's own, and which came home.
func (m *Machine) Territory() scope.Territory { return m.chain.state.Territory() }

// Closed reports whether the scope has gone back to the one above: it takes no more blocks.
func (m *Machine) Closed() bool { return m.term.Epoch.Home != nil }

// Epoch returns the epoch that the machine is in.
func (m *Machine) Epoch() *scope.Epoch { return m.term.Epoch }

// EpochView returns what goroutines around the machine need to know of the epoch: its roster and a Checker.
func (m *Machine) EpochView() *EpochView { return m.term }

// attends holds the finalize ballots that this node knows, by view and by seat in the roster; of several ballots only
// the first. Ballots on recent blocks may still be reconciled (P27).
type attends map[aweigh.View][]attended

// attended is one ballot of attends. Its view and its anchor follow from its place; it is zero if there is no ballot.
type attended struct {
	block     aweigh.Hash
	signature quorum.Signature
}

// knows reports whether this node has verified a finalize vote.
func (m *Machine) knows(v quorum.Vote) bool {
	seat, ok := m.roster.Seat(v.Anchor)
	if !ok || m.attends[v.View] == nil {
		return false
	}
	a := &m.attends[v.View][seat]
	return a.block == v.Block && bytes.Equal(a.signature.Bytes, v.Bytes)
}

// attend keeps a finalize ballot.
func (m *Machine) attend(v *quorum.Vote) {
	if v.Kind != m.keyring.Rules().Mode.Attends() || v.View > m.engine.View()+m.cfg.Bounds.Quorum.Ahead || v.View+maxAttends <= m.engine.View() {
		return
	}
	seat, ok := m.roster.Seat(v.Anchor)
	if !ok {
		return
	}
	if m.attends[v.View] == nil {
		m.attends[v.View] = make([]attended, len(m.roster.Anchors))
	}
	if a := &m.attends[v.View][seat]; a.block.IsZero() {
		*a = attended{v.Block, v.Signature}
	}
}

// maxAttends is for how many past views ballots are kept; it is more than the chain can record.
const maxAttends = 256

// unrecorded returns the ballots to reconcile in a block on top of s.
func (m *Machine) unrecorded(s *scope.State) (all []scope.Attended) {
	size, most := 0, s.Bounds().AttendedBytes
	err := s.Open(func(at aweigh.Height, subject quorum.Subject, lacks func(aweigh.AnchorID) bool) {
		a := scope.Attended{Height: at}
		for _, v := range m.attends[subject.View] {
			s := v.signature
			if v.block == subject.Block && lacks(s.Anchor) && size+len(s.Bytes) <= most {
				a.Signatures = append(a.Signatures, s)
				size += len(s.Bytes)
			}
		}
		if len(a.Signatures) > 0 {
			all = append(all, a)
		}
	})
	must.OK(err, "reading the tally")
	return all
}

// partake signs that a block is final if this anchor has not signed that yet: an anchor on probation, whose vote the
// engine does not ask for, or an anchor that came late. The ballot changes no outcome.
func (m *Machine) partake(h *scope.Header, hash aweigh.Hash) {
	s := quorum.Subject{Kind: m.keyring.Rules().Mode.Attends(), View: h.View, Block: hash}
	if m.fetched || !m.speaks() || h.View < m.listen.since || !m.guard.May(s) {
		return
	}
	b, ops, err := m.guard.Sign(s)
	must.OK(err, "signing what the guard said it may")
	if len(ops) == 0 {
		return // it was signed before
	}
	m.write(ops...)
	m.fx.Sync = true
	m.signed[s.Kind]++
	v := b.Vote()
	m.attend(&v)
	m.broadcastFrame(RawFrame(TagBallot, b.Encode()))
}
