package machine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// MaxOpenBlocks is how many blocks may wait for finality before leaders propose only empty ones, so that memory stays
// bounded while finality fails. Leaders go on to propose because only a block above the open ones makes them final.
const MaxOpenBlocks = 64

// maxOpenEmpty bounds the open blocks, including the empty ones above MaxOpenBlocks. Each takes a good part of a
// view's time, so it takes hours to reach this bound.
const maxOpenEmpty = 1 << 14

const (
	// gatherMost bounds how long a leader waits for more to propose.
	gatherMost = 50 * time.Millisecond
	// gatherFew bounds how much of that time it waits when everything before is final. It then waits no longer than
	// the last block took.
	gatherFew = 20 * time.Millisecond
)

// gatherUntil returns until when a proposal waits for more mutations, 0 if it does not wait. Clients that learn that
// their mutations are final send more at about the same time, and a block of many mutations costs little more than one
// of few. So a leader waits while blocks that are not final hold mutations, and then for a moment while fewer
// mutations came back than those blocks held.
func (m *Machine) gatherUntil() aweigh.Instant {
	most := m.slotAt.Add(gatherMost)
	path, _, ok := m.chain.path(m.slot.Parent)
	due, err := m.chain.state.Due(m.now)
	must.OK(err, "reading the tally")
	if ok && m.crowded(path) && !m.keyring.Rules().Mode.OneRound() { // empty blocks gather nothing
		if until := m.slotAt.Add(m.engine.Patience()); m.now < until {
			return until
		}
		return 0
	}
	if !ok || due || m.now >= most {
		return 0
	}
	if slices.ContainsFunc(path, func(k *candidate) bool { return k.block.Len() > 0 }) {
		m.crowd = max(m.crowd, m.pool.mutations)
		return most
	}
	if until := aweigh.Earliest(most, m.finalAt.Add(m.cycle)); 8*m.pool.mutations < 7*m.crowd && m.now < until {
		return until
	}
	return 0
}

// build makes and sends this anchor's proposal for a view that it leads (P12). It returns false while the parent's
// content is missing.
func (m *Machine) build(slot quorum.Slot) bool {
	if m.Closed() {
		return true // no block is valid
	}
	mode := m.keyring.Rules().Mode
	if mode != quorum.BFT { // the parent may have been given up since
		if now, ok := m.engine.Slot(); ok && now.View == slot.View {
			slot = now
		}
	}
	if !m.vetted(slot.Parent) {
		return true // the view runs out
	}
	state, missing, ok := m.chain.after(slot.Parent)
	if !ok {
		if !missing.IsZero() {
			m.wantBlock(missing, m.leaderPeer(slot.ParentView))
		}
		return false
	}
	path, _, _ := m.chain.path(slot.Parent)
	if mode.OneRound() && m.premature(path) {
		return true // the view runs out
	}
	h, full, err := state.Claim(scope.Header{
		Epoch: m.chain.epoch, View: slot.View, Time: state.NextTime(m.now), Proposer: m.self,
	})
	must.OK(err, "claiming what a block shall say of the state")
	b := scope.NewBlock(h, nil, scope.Evidence{}) // the block ends the epoch, or waits with others for its end
	if full && !m.crowded(path) {
		bundles := m.pick(path, h.Time)
		b = scope.NewBlock(h, bundles, scope.Evidence{Proofs: m.proofs.fresh(m.chain.state, path), Attended: m.unrecorded(state), Ballots: m.ballots(state, bundles), Revocation: m.order.propose(m, state, h.Time)})
	}
	m.chain.add(b).valid = true
	if mode == quorum.Fast && slot.ParentView+1 < slot.View {
		m.broadcast(TagOffer, m.offer(m.engine.Holdings(), false)) // the ballots by which views are passed over
	}
	ballot, ok := m.vouch(quorum.Subject{Kind: mode.Vouch(), View: slot.View, Block: b.Hash()})
	if !ok {
		return true
	}
	msg := Proposal{Header: b.Header, Evidence: b.Evidence, ParentView: slot.ParentView, Proof: slot.Proof, Signature: ballot.Signature}
	for _, c := range b.Bundles {
		msg.Bundles = append(msg.Bundles, c.ID())
	}
	m.proposal, m.proposed = Tagged(TagProposal, msg), slot.View
	m.crowd = max(m.pool.mutations, m.crowd-(m.crowd+7)/8)
	m.handOut(b)
	m.broadcastFrame(m.proposal)
	m.carries(b)
	m.inputs = append(m.inputs, quorum.Proposal{Vote: ballot.Vote(), Parent: slot.Parent, ParentView: slot.ParentView})
	return true
}

// crowded reports whether so many blocks are open that leaders propose empty ones.
func (m *Machine) crowded(path []*candidate) bool { return len(path) >= m.cfg.Bounds.OpenBlocks }

// premature reports whether path has an open block whose time may be too far ahead of other anchors' clocks, and which
// may still be skipped (P15). A block that cannot be skipped has set the scope's time already.
func (m *Machine) premature(path []*candidate) (early bool) {
	most := m.now.Add(m.chain.policy.Limits.Drift - 1)
	parent := m.chain.state.Head().Time
	for _, k := range path {
		h := &k.block.Header
		early = (early || scope.Early(h.Time, parent, most)) && !m.engine.Stands(h.View)
		parent = h.Time
	}
	return early
}

// handOut sends bundles that came from peers that are no anchors, once, ahead of the proposal that names them. This
// anchor may be the only one that has them, and all others would ask for them before they vote. If there are more than
// Bounds.HandOut, it sends none: anchors that lack them ask.
func (m *Machine) handOut(b *scope.Block) {
	var scarce []*pooled
	for _, c := range b.Bundles {
		if e := m.pool.entries[c.ID()]; e != nil && e.scarce {
			scarce = append(scarce, e)
			e.scarce = false
		}
	}
	if len(scarce) > m.cfg.Bounds.HandOut {
		return
	}
	for _, e := range scarce {
		m.broadcastFrame(RawFrame(TagBundle, e.bundle.Raw()))
	}
}

// maxHandOut bounds the bundles that are sent ahead of a proposal.
const maxHandOut = 64

// propose takes a leader's announcement of a block.
func (m *Machine) propose(from Peer, p ProposalIn) {
	vote := p.ballot.Vote()
	v := vote.View
	if v < m.engine.Final() || m.engine.Leader(v) != vote.Anchor {
		return
	}
	m.certificates(from, p.Proof)
	m.inputs = append(m.inputs, quorum.Proposal{Vote: vote, Parent: p.Header.Parent, ParentView: p.ParentView})
	// The leader's signature covers the header alone, so only the leader's own frame is trusted for the names of the
	// bundles.
	if m.anchors[from] == vote.Anchor && v <= m.engine.View()+m.cfg.Bounds.Quorum.Ahead && m.chain.plausible(p.Header) && !m.proposedIn(v) {
		m.wants.assemble(m, p, from)
	}
}

// proposedIn reports whether a proposal of a view is known already. Of a leader that sends several, one is assembled;
// if another one is notarized, it is asked for by its hash.
func (m *Machine) proposedIn(v aweigh.View) bool {
	for _, h := range m.chain.order {
		if m.chain.candidates[h].block.Header.View == v {
			return true
		}
	}
	return slices.ContainsFunc(m.wants.parts, func(q *part) bool { return q.Header.View == v })
}

// retryChecks gives the engine its verdicts on proposals whose content has arrived.
func (m *Machine) retryChecks() {
	m.checks = slices.DeleteFunc(m.checks, func(p quorum.Proposal) bool {
		if p.Vote.View < m.engine.View() {
			return true // the view is over
		}
		k := m.chain.candidates[p.Vote.Block]
		if k == nil {
			return false
		}
		vetted := m.vet(p.Parent)
		if vetted != nil && !invalid(vetted) {
			if unsettled(vetted) {
				return false
			}
			must.OK(vetted, "holding a block against the state")
		}
		state, missing, ok := m.chain.after(p.Parent)
		if !ok && !missing.IsZero() {
			m.wantBlock(missing, m.leaderPeer(p.Vote.View))
			return false
		}
		err := fmt.Errorf("%w: the parent is invalid", scope.ErrInvalid)
		if ok && vetted == nil {
			if err = m.check(state, k.block, p); errors.Is(err, scope.ErrUnheard) {
				return false // the unknown may become known before the view runs out
			} else if !errors.Is(err, scope.ErrInvalid) {
				must.OK(err, "holding a block against the state")
			}
		}
		if k.valid = err == nil; k.valid {
			m.carries(k.block)
			m.chain.ahead = false
		} else {
			m.note(DroppedFrame(m.leaderPeer(p.Vote.View), err))
		}
		m.inputs = append(m.inputs, quorum.Verdict{View: p.Vote.View, Block: p.Vote.Block, Valid: err == nil})
		return true
	})
}

// invalid reports whether an error says that a block is invalid, for good.
func invalid(err error) bool { return errors.Is(err, scope.ErrInvalid) && !unsettled(err) }

// unsettled reports whether an error says that a block is not valid as yet: it is early by this node's clock, or obeys
// an order that this node has not heard of.
func unsettled(err error) bool {
	return errors.Is(err, scope.ErrUnheard) || errors.Is(err, scope.ErrEarly)
}

// check returns why a block is not valid on top of its parent's state, nil if it is valid (P13).
func (m *Machine) check(parent *scope.State, b *scope.Block, p quorum.Proposal) error {
	h, lim := b.Header, m.chain.policy.Limits
	switch {
	case h.Domain() != m.keyring.Domain():
		return fmt.Errorf("%w: a block of another scope or epoch", scope.ErrInvalid)
	case h.View != p.Vote.View || h.Proposer != p.Vote.Anchor || h.Parent != p.Parent:
		return fmt.Errorf("%w: a block for another slot", scope.ErrInvalid)
	}
	if err := parent.CheckTime(h.Time, m.now, &lim); err != nil {
		return err
	}
	return m.checkContent(parent, b)
}

// checkContent is check without the block's slot and time.
func (m *Machine) checkContent(parent *scope.State, b *scope.Block) error {
	h, lim := b.Header, m.chain.policy.Limits
	if err := b.Check(lim); err != nil {
		return err
	}
	if err := b.CheckProofs(m.keyring, m.term.Epoch); err != nil {
		return err
	}
	if err := parent.CheckHeader(h); err != nil {
		return err
	}
	if err := parent.CheckBallots(b, m.hasBallot); err != nil {
		return err
	}
	if err := parent.CheckRevocation(b, m.order.newest); err != nil {
		return err
	}
	if r := b.Revocation; r != nil {
		from, awaits, err := parent.Awaits(r)
		must.OK(err, "reading the genesis")
		if awaits && from > m.now.Add(lim.Drift) { // a scope whose time has run ahead does not shorten the notice
			return fmt.Errorf("%w: %w: a notice that ends in %v", scope.ErrInvalid, scope.ErrEarly, from.Sub(m.now))
		}
	}
	return parent.CheckAttended(b, m.keyring, m.knows)
}

// carries marks the bundles and ballots of a block as held by an open proposal.
func (m *Machine) carries(b *scope.Block) {
	m.pool.hold(b)
	m.polls.due.propose(ballotsOf(b), b.Header.View)
}

// release frees the bundles and ballots of proposals in the views from..to, which failed, so that they wait again.
func (m *Machine) release(from, to aweigh.View) {
	m.pool.release(from, to)
	m.polls.due.release(from, to)
}

// leaderPeer returns the peer of a view's leader, "" if this node is the leader.
func (m *Machine) leaderPeer(v aweigh.View) Peer {
	if leader := m.engine.Leader(v); leader != m.self {
		return m.term.peer(leader)
	}
	return ""
}
