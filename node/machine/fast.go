package machine

import (
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// placed returns the places of blocks that anchors name in their nullify ballots (P58), and asks for the blocks that
// are not here.
func (m *Machine) placed() (in []quorum.Input) {
	for _, v := range m.engine.Unplaced() {
		k := m.chain.candidates[v.Block]
		if k == nil {
			m.wantBlock(v.Block, m.leaderPeer(v.View))
			continue
		}
		if h := &k.block.Header; h.View == v.View && h.Proposer == v.Anchor {
			in = append(in, quorum.Proposal{Vote: v, Parent: h.Parent})
		}
	}
	return in
}

// vet checks the blocks up to one that no certificate proves to be valid: in mode fast a block may have to stand on
// one that only some anchors voted for, and whose leader may lie (P58). The error wraps scope.ErrInvalid if one is
// invalid; if it is so for good, the engine hears of it. A block that is early by this node's clock is not: an anchor
// whose clock is ahead may have voted for it. If such an anchor surely did, the block is taken at any time, as in mode
// bft where it is notarized: it may have set the scope's time already.
func (m *Machine) vet(h aweigh.Hash) error {
	if m.keyring.Rules().Mode != quorum.Fast {
		return nil
	}
	path, _, ok := m.chain.path(h)
	if !ok {
		return nil // after says what is missing
	}
	first := 0
	for i, k := range path {
		if m.engine.Certificate(quorum.Notarize, k.block.Header.View).Subject.Block == k.block.Hash() {
			first = i + 1
		}
	}
	for _, k := range path[first:] {
		if k.valid {
			continue
		}
		b := &k.block.Header
		state, _, ok := m.chain.after(b.Parent)
		err := fmt.Errorf("%w: the parent is invalid", scope.ErrInvalid)
		if ok {
			switch lim := m.chain.policy.Limits; {
			case b.Domain() != m.keyring.Domain() || m.engine.Leader(b.View) != b.Proposer:
				err = fmt.Errorf("%w: a block of another epoch or leader", scope.ErrInvalid)
			default:
				if err = state.CheckTime(b.Time, m.now, &lim); err == nil || m.engine.Honest(b.View, k.block.Hash()) {
					err = m.checkContent(state, k.block)
				}
			}
		}
		if err != nil {
			if invalid(err) {
				m.inputs = append(m.inputs, quorum.Verdict{View: b.View, Block: k.block.Hash()})
			}
			return err
		}
		k.valid = true
	}
	return nil
}

// named is what this anchor signs of a subject: its ballot to nullify a view names the block that it notarized there
// (P57). The engine may name one whose ballot was held while the anchor listened, and dropped at the end.
func (m *Machine) named(s quorum.Subject) quorum.Subject {
	if s.Kind == quorum.Nullify && m.keyring.Rules().Mode == quorum.Fast &&
		!m.guard.Knows(quorum.Subject{Kind: quorum.Notarize, View: s.View, Block: s.Block}) {
		s.Block = quorum.NoBlock
	}
	return s
}

// vetted is vet for a parent to build on: it reports whether all below is valid.
func (m *Machine) vetted(h aweigh.Hash) bool {
	err := m.vet(h)
	if err != nil && !invalid(err) && !unsettled(err) {
		must.OK(err, "holding a block against the state")
	}
	return err == nil
}

// left carries out what an engine says of views that nullify ballots ended.
func (m *Machine) left(out quorum.Output) {
	for _, g := range out.Grounds {
		m.ground(g)
	}
	for _, v := range out.Passed {
		m.passed(v)
	}
}

// ground stores the nullify ballots by which this node is in its view, in the place of a nullification, which mode fast
// has none of.
func (m *Machine) ground(g quorum.Ground) {
	s, all := quorum.Subject{Kind: quorum.Nullify, View: g.View}, make([]OfferedVote, len(g.Votes))
	for i, v := range g.Votes {
		all[i] = OfferedVote{Subject: v.Subject, Signature: v.Signature}
	}
	m.write(kv.Set(KeyCertificate(m.id, s), canon.Encode(all)))
	if !slices.Contains(m.kept, s) {
		m.kept = append(m.kept, s)
	}
}
