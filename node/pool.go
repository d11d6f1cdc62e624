package node

import (
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/scope"
)

// pool holds the bundles that wait to become part of a final block, in order of
// arrival, within a bound in bytes.
type pool struct {
	limit     int
	bytes     int
	mutations int
	entries   map[aweigh.Hash]*pooled
	order     []*pooled // entries in order; those with gone set are skipped
	gone      int
	waiting   int                         // entries in no open proposal
	local     int                         // those of them that were submitted here
	own       int                         // entries that were submitted here, whether a proposal holds them or not
	mine      map[aweigh.Hash]aweigh.Hash // mutations whose outcome is to be told, and the bundle that carried each here last
	told      told
	firsts    firsts
	keepAt    aweigh.Instant       // when to look what has waited for long, 0: nothing does
	kept      []aweigh.Hash        // bundles that are gone, and on disk still
	durable   map[aweigh.Hash]bool // mutations of the bundles that wait and are on disk
}

type pooled struct {
	bundle *scope.CheckedBundle
	local  bool        // submitted here
	scarce bool        // came from a peer that is no anchor: others may lack it
	view   aweigh.View // of an open proposal that holds it, 0 if none
	gone   bool
	came   aweigh.Instant
	kept   bool           // it is on disk
	since  aweigh.Instant // when it was sent last
	sent   int            // how often it was sent again
	wait   int            // doubles of the time until it is sent again
	around int            // peer that heard it last, of those who hear it in turn
}

func newPool(limit int) pool { return pool{limit: limit} }

// add takes a bundle, unless there is no room. One that is there stays. There is
// always room for one that a proposal waits for: others could fill the pools of
// all anchors with different bundles, and no proposal could be assembled.
func (p *pool) add(b *scope.CheckedBundle, local, scarce, wanted bool, now aweigh.Instant) error {
	if e := p.entries[b.ID()]; e != nil {
		if local {
			p.adopt(e)
		}
		return nil
	}
	if p.bytes+len(b.Raw()) > p.limit && !wanted {
		return ErrBusy
	}
	e := &pooled{bundle: b, local: local, scarce: scarce, came: now, since: now}
	if p.entries == nil {
		p.entries = make(map[aweigh.Hash]*pooled)
	}
	p.entries[b.ID()] = e
	p.order = append(p.order, e)
	p.bytes += len(b.Raw())
	p.mutations += len(b.Mutations())
	if local {
		p.own++
	}
	p.wait(e, +1)
	return nil
}

// adopt makes an entry that came from a peer one of this node's own clients, which
// have submitted it, too.
func (p *pool) adopt(e *pooled) {
	if e.local {
		return
	}
	e.local, e.scarce = true, false
	p.own++
	if e.view == 0 {
		p.local++
	}
}

// wait counts an entry among those that stand in no open proposal, or not.
func (p *pool) wait(e *pooled, by int) {
	p.waiting += by
	if e.local {
		p.local += by
	}
}

func (p *pool) get(id aweigh.Hash) *scope.CheckedBundle {
	if e := p.entries[id]; e != nil {
		return e.bundle
	}
	return nil
}

func (p *pool) remove(e *pooled) {
	if e.gone {
		return
	}
	e.gone = true
	p.gone++
	if e.kept {
		p.kept = append(p.kept, e.bundle.ID())
		for i := range e.bundle.Mutations() {
			delete(p.durable, e.bundle.Mutations()[i].ID)
		}
	}
	delete(p.entries, e.bundle.ID())
	p.bytes -= len(e.bundle.Raw())
	p.mutations -= len(e.bundle.Mutations())
	if e.local {
		p.own--
	}
	if e.view == 0 {
		p.wait(e, -1)
	}
	e.bundle = nil // its place in order may be kept for long
	if p.gone > 1024 && p.gone > len(p.order)/2 {
		live := make([]*pooled, 0, len(p.order)-p.gone) // not in place: expire is on its way through the old one
		for _, e := range p.order {
			if !e.gone {
				live = append(live, e)
			}
		}
		p.order, p.gone = live, 0
	}
}

// drop removes an entry whose mutations cannot be applied any more, or were applied by
// another bundle: nobody is told anything more of them.
func (p *pool) drop(e *pooled) {
	for i := range e.bundle.Mutations() {
		if id := e.bundle.Mutations()[i].ID; p.mine[id] == e.bundle.ID() {
			delete(p.mine, id)
		}
	}
	p.remove(e)
}

// hold marks the bundles of a block as part of an open proposal.
func (p *pool) hold(b *scope.Block) {
	for _, c := range b.Bundles {
		if e := p.entries[c.ID()]; e != nil {
			if e.view == 0 {
				p.wait(e, -1)
			}
			e.view = b.Header.View
		}
	}
}

// release lets bundles of proposals in the views from and to, that came to
// nothing, wait again.
func (p *pool) release(from, to aweigh.View) {
	for _, e := range p.order {
		if !e.gone && e.view != 0 && from <= e.view && e.view <= to {
			e.view = 0
			p.wait(e, +1)
		}
	}
}

// hurry lets what waits be sent again soon: somebody is back who may lack it.
func (p *pool) hurry() {
	for _, e := range p.order {
		e.wait = 0
	}
}

// expect notes that a mutation's outcome is to be told.
func (p *pool) expect(b *scope.CheckedBundle) {
	if p.mine == nil {
		p.mine = make(map[aweigh.Hash]aweigh.Hash)
	}
	for i := range b.Mutations() {
		p.mine[b.Mutations()[i].ID] = b.ID()
	}
}

// answer reports whether an outcome is to be told, once.
func (p *pool) answer(mutation aweigh.Hash) bool {
	if _, ok := p.mine[mutation]; !ok {
		return false
	}
	delete(p.mine, mutation)
	return true
}

// awaits reports whether the outcome of a mutation is to be told.
func (p *pool) awaits(mutation aweigh.Hash) bool {
	_, ok := p.mine[mutation]
	return ok
}

// applied removes the bundles of a final block, and what its time made too old.
func (p *pool) applied(b *scope.Block, time aweigh.Instant) {
	for _, c := range b.Bundles {
		if e := p.entries[c.ID()]; e != nil {
			p.remove(e)
		}
	}
	p.expire(time)
}

// expire removes what can no longer be applied. Its mutations stay unanswered:
// only the chain can tell whether another bundle carried them.
func (p *pool) expire(now aweigh.Instant) {
	for _, e := range p.order {
		if !e.gone && e.bundle.ValidUntil() < now {
			p.drop(e)
		}
		if !e.gone {
			break // in order of arrival, so mostly in order of expiry
		}
	}
}

// submit takes a bundle that somebody waits for.
func (m *Machine) submit(ev Submit) {
	b, fresh := ev.Bundle, false
	for i := range b.Mutations() {
		id := b.Mutations()[i].ID
		o, ok, err := m.chain.state.OutcomeIn(b.ID(), id)
		must.OK(err, "reading the outcome of a mutation")
		if ok { // a retry of something that was done: the first answer again
			outcome, ok := m.pool.told.all[id]
			if !ok {
				outcome = scope.Outcome{Mutation: id, Code: o.Code, Reason: o.Reason, Revision: o.Revision, Succeeded: o.Succeeded}
			}
			m.fx.Reply = append(m.fx.Reply, replyIn(b.ID(), o.Height, m.chain.epoch, &outcome))
			continue
		}
		fresh = true
	}
	if !fresh {
		return
	}
	if err := m.admit(b, ev.From); err != nil {
		for i := range b.Mutations() {
			// Of one that waits already, an earlier copy may still be applied.
			if id := b.Mutations()[i].ID; !m.pool.awaits(id) {
				m.fx.Reply = append(m.fx.Reply, Reply{Mutation: id, Refused: err})
			}
		}
		return
	}
	m.pool.expect(b)
	m.broadcastFrame(rawFrame(tagBundle, b.Raw()))
}

// admit puts a bundle into the pool. It came from a peer, or from this node's own
// clients, "".
func (m *Machine) admit(b *scope.CheckedBundle, from Peer) error {
	lim, head := m.chain.policy.Limits, m.chain.state.Head().Time
	switch at := max(m.now, head); {
	case b.Scope() != m.id:
		return errOtherScope
	case b.ValidUntil() > at.Add(lim.ValidFor+lim.Drift):
		return errTooLong
	case b.ValidUntil() < at:
		return &ExpiredError{Time: head}
	}
	if len(b.Raw()) > lim.BundleBytes { // it was checked under another policy
		return fmt.Errorf("%w: a bundle of %d bytes, at most %d are taken", scope.ErrInvalid, len(b.Raw()), lim.BundleBytes)
	}
	if b.Cost() > lim.BlockCost {
		return fmt.Errorf("%w: a bundle that costs up to %d units, at most %d are taken", scope.ErrInvalid, b.Cost(), lim.BlockCost)
	}
	if m.applied(b) {
		return nil // it came late, or again
	}
	local, scarce := from == "", from != "" && m.anchors[from] == (aweigh.AnchorID{})
	if err := m.pool.add(b, local, scarce, m.wants.lacks(b.ID()), m.now); err != nil {
		return err
	}
	m.wants.arrived(b.ID())
	return nil
}

// applied reports whether all mutations of a bundle are on record, or that it exceeded what it declares.
func (m *Machine) applied(b *scope.CheckedBundle) bool {
	for i := range b.Mutations() {
		_, ok, err := m.chain.state.OutcomeIn(b.ID(), b.Mutations()[i].ID)
		must.OK(err, "reading the outcome of a mutation")
		if !ok {
			return false
		}
	}
	return true
}

// Unproposed reports whether a bundle submitted here waits for a proposal.
func (m *Machine) Unproposed() bool { return m.pool.local > 0 }

// Waiting is how many bytes of mutations wait here.
func (m *Machine) Waiting() int { return m.pool.bytes }

// Cycle is how long the last block took to become final, within bounds.
func (m *Machine) Cycle() time.Duration { return m.cycle }

// Flying is how many mutations submitted here are to be answered yet.
func (m *Machine) Flying() int { return len(m.pool.mine) }

// maxPool bounds the mutations that wait, in bytes.
const maxPool = 64 << 20

// maxReoffer bounds the bundles that are sent again at a time.
const maxReoffer = 64

// passOnAfter is how long a mutation may wait before every anchor that holds it
// passes it on: some may lack it, and it may be their turn to lead (P18).
const passOnAfter = 4 * retryIn

// reofferBundles sends again what still waits (P17, P18), at growing intervals:
// when nothing is proposed for long, more of the same would not help. Where a
// bundle came from a client of this node everyone hears it again; others pass it
// to some peers in turn.
func (m *Machine) reofferBundles() {
	m.pool.expire(m.now)
	n := 0
	for _, e := range m.pool.order {
		wait := retryIn
		if !e.local {
			wait = passOnAfter
		}
		if e.gone || e.view != 0 || m.now.Sub(e.since) <= retryIn {
			continue
		}
		if m.applied(e.bundle) { // by another bundle, as when a client repeated a write after a restart
			m.pool.drop(e)
			continue
		}
		if m.now.Sub(e.since) <= wait<<min(e.wait, 4) {
			continue
		}
		f := rawFrame(tagBundle, e.bundle.Raw())
		if !e.local {
			m.sendAround(f, &e.around)
		} else if m.broadcastFrame(f); e.sent > 0 { // some anchor may be out of this node's reach, but not of others'
			m.fx.Gossip = append(m.fx.Gossip, f)
		}
		e.since = m.now
		e.sent++
		e.wait++
		if n++; n == m.cfg.Bounds.Reoffer {
			return
		}
	}
}

// refit drops the bundles that are not within the limits of another policy. Those who
// wait for what no other bundle holds are told so. What is valid for longer than the policy
// allows may be taken later, by others that have it, so of this nothing is told.
func (m *Machine) refit(lim scope.Limits) {
	type unfit struct {
		*pooled
		why error
	}
	p := &m.pool
	var all []unfit
	held := make(map[aweigh.Hash]bool)
	latest := max(m.now, m.chain.state.Head().Time).Add(lim.ValidFor + lim.Drift)
	for _, e := range p.order {
		if e.gone {
			continue
		}
		if e.bundle.ValidUntil() > latest {
			p.drop(e)
			continue
		}
		if _, err := verified(e.bundle.Raw(), lim); err != nil {
			all = append(all, unfit{e, err})
			continue
		}
		for i := range e.bundle.Mutations() {
			held[e.bundle.Mutations()[i].ID] = true
		}
	}
	for _, e := range all {
		for i := range e.bundle.Mutations() {
			if id := e.bundle.Mutations()[i].ID; !held[id] && p.answer(id) {
				m.fx.Reply = append(m.fx.Reply, Reply{Mutation: id, Refused: e.why})
			}
		}
		p.remove(e.pooled)
	}
}
