package machine

import (
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/scope"
)

// pool holds the bundles that wait to become part of a final block, in order of arrival. Its size in bytes is bounded.
type pool struct {
	limit     int
	bytes     int
	mutations int
	entries   map[aweigh.Hash]*pooled
	order     []*pooled // entries in order; those with gone set are skipped
	gone      int
	waiting   int                         // entries in no open proposal
	local     int                         // how many of waiting were submitted here
	own       int                         // entries that were submitted here, whether a proposal holds them or not
	mine      map[aweigh.Hash]aweigh.Hash // mutations that a request waits for, and the bundle that carried each last
	outcomes  outcomeCache
	firsts    lastFirst
	keepAt    aweigh.Instant       // when to look for bundles that have waited for long, 0: there are none
	kept      []aweigh.Hash        // bundles that are gone but still on disk
	durable   map[aweigh.Hash]bool // mutations of the bundles that wait and are on disk
	paced     map[string]int64     // mutations, by the entry of the policy's authors that counts them at its rate
	grants    map[aweigh.Hash]*grants
	patient   map[aweigh.Hash]int // bytes of patient bundles, by the author that they act for

	shares shares

	patientAll   int // bytes of all patient bundles
	applications int // bundles with applications to become an anchor
}

type pooled struct {
	bundle   *scope.CheckedBundle
	from     Peer        // the peer that sent it first; "": submitted here
	local    bool        // submitted here
	stranger bool        // its author was no anchor when it came
	scarce   bool        // came from a peer that is no anchor: other anchors may lack it
	view     aweigh.View // view of the open proposal that holds it, 0 if there is none
	gone     bool
	came     aweigh.Instant
	kept     bool           // it is on disk
	since    aweigh.Instant // when it was sent last
	sent     int            // how often it was sent again
	wait     int            // how often the time until it is sent again has doubled
	patience aweigh.Hash    // for whom it is counted as patient; zero: for none
	grants   aweigh.Hash    // see grantsOf
	around   int            // index of the peer that received it last, when it is sent to some peers in turn
	paced    map[string]int64
	applies  bool // it has an application
}

func newPool(limit int) pool { return pool{limit: limit} }

// add takes a bundle, or returns ErrBusy if there is no room. A bundle that is there already stays. There is always
// room for a bundle that a proposal waits for: otherwise an attacker could fill the pools of all anchors with
// different bundles, and no proposal could be assembled.
func (p *pool) add(b *scope.CheckedBundle, from Peer, stranger, scarce, wanted bool, now aweigh.Instant) error {
	local := from == ""
	if e := p.entries[b.ID()]; e != nil {
		if local {
			p.adopt(e)
		}
		return nil
	}
	if p.bytes+len(b.Raw()) > p.limit && !wanted {
		return ErrBusy
	}
	e := &pooled{
		bundle: b, from: from, local: local, stranger: stranger, scarce: scarce, came: now, since: now, patience: patientAuthor(b), grants: grantsOf(b),
	}
	p.countPatient(e, +1)
	p.shares.count(e, +1)
	p.countGrants(e, +1)
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

// adopt marks an entry that came from a peer as this node's own, because a client of this node has submitted it too.
func (p *pool) adopt(e *pooled) {
	if e.local {
		return
	}
	p.shares.count(e, -1)
	e.from, e.local, e.scarce = "", true, false
	p.own++
	if e.view == 0 {
		p.local++
	}
}

// wait adds by, which is 1 or -1, to the counts of entries that no open proposal holds.
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
	p.shares.count(e, -1)
	p.bytes -= len(e.bundle.Raw())
	p.mutations -= len(e.bundle.Mutations())
	if e.local {
		p.own--
	}
	if e.view == 0 {
		p.wait(e, -1)
	}
	p.pace(e, e.paced, -1)
	p.countPatient(e, -1)
	p.countGrants(e, -1)
	if e.applies {
		p.applications--
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

// drop removes an entry whose mutations can no longer be applied, or were applied by another bundle. Nothing more is
// reported of them.
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

// release frees the bundles of proposals in the views from..to, which failed, so that they wait again.
func (p *pool) release(from, to aweigh.View) {
	for _, e := range p.order {
		if !e.gone && e.view != 0 && from <= e.view && e.view <= to {
			e.view = 0
			p.wait(e, +1)
		}
	}
}

// hurry resets the intervals of repetition: a peer is back that may lack what waits.
func (p *pool) hurry() {
	for _, e := range p.order {
		e.wait = 0
	}
}

// expect notes that requests wait for the outcomes of a bundle's mutations.
func (p *pool) expect(b *scope.CheckedBundle) {
	if p.mine == nil {
		p.mine = make(map[aweigh.Hash]aweigh.Hash)
	}
	for i := range b.Mutations() {
		p.mine[b.Mutations()[i].ID] = b.ID()
	}
}

// answer reports whether a request waits for the outcome of a mutation, and forgets it.
func (p *pool) answer(mutation aweigh.Hash) bool {
	if _, ok := p.mine[mutation]; !ok {
		return false
	}
	delete(p.mine, mutation)
	return true
}

// awaits reports whether a request waits for the outcome of a mutation.
func (p *pool) awaits(mutation aweigh.Hash) bool {
	_, ok := p.mine[mutation]
	return ok
}

// awaitsAny reports whether a request waits for the outcome of any mutation of a bundle.
func (p *pool) awaitsAny(b *scope.CheckedBundle) bool {
	return slices.ContainsFunc(b.Mutations(), func(m scope.CheckedMutation) bool { return p.awaits(m.ID) })
}

// applied removes the bundles of a final block, and those that are expired at the block's time.
func (p *pool) applied(b *scope.Block, time aweigh.Instant) {
	for _, c := range b.Bundles {
		if e := p.entries[c.ID()]; e != nil {
			p.remove(e)
		}
	}
	p.expire(time)
}

// expire removes bundles that are too old to be applied. Their mutations are not answered: only the chain shows
// whether another bundle carried them.
func (p *pool) expire(now aweigh.Instant) {
	for _, e := range p.order {
		if !e.gone && e.bundle.ValidUntil() < now {
			p.drop(e)
		}
		if !e.gone && e.patience.IsZero() {
			break // in order of arrival, so mostly in order of expiry
		}
	}
}

// submit takes a bundle whose outcomes a request waits for.
func (m *Machine) submit(ev Submit) {
	b, fresh := ev.Bundle, false
	for i := range b.Mutations() {
		id := b.Mutations()[i].ID
		o, ok, err := m.chain.state.OutcomeIn(b.ID(), id)
		must.OK(err, "reading the outcome of a mutation")
		if ok { // it was applied before: the first answer again
			outcome, ok := m.pool.outcomes.all[id]
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
	if ev.Again { // it was checked under the limits of another epoch
		if _, err := verified(b.Raw(), m.chain.policy.Limits); err != nil {
			return
		}
	}
	if err := m.admit(b, ev.From); err != nil {
		for i := range b.Mutations() {
			// If a request waits for the mutation already, an earlier copy may still be applied.
			if id := b.Mutations()[i].ID; !ev.Again && !m.pool.awaits(id) {
				m.fx.Reply = append(m.fx.Reply, Reply{Mutation: id, Refused: err})
			}
		}
		return
	}
	m.pool.expect(b)
	if e := m.pool.entries[b.ID()]; ev.Again && e != nil {
		e.since = 0 // it is sent again in its turn
		return
	}
	m.broadcastFrame(RawFrame(TagBundle, b.Raw()))
}

// Unproposed reports whether a bundle submitted here waits for a proposal.
func (m *Machine) Unproposed() bool { return m.pool.local > 0 }

// Waiting returns the size of the bundles that wait here, in bytes.
func (m *Machine) Waiting() int { return m.pool.bytes }

// Cycle returns how long the last block took to become final, between 0 and gatherFew.
func (m *Machine) Cycle() time.Duration { return m.cycle }

// Flying returns the number of mutations submitted here that have not been answered.
func (m *Machine) Flying() int { return len(m.pool.mine) }

// maxPool bounds the mutations that wait, in bytes.
const maxPool = 64 << 20

// maxReoffer bounds the bundles that are sent again at one time.
const maxReoffer = 64

// passOnAfter is how long a mutation may wait before every anchor that holds it passes it on: the anchor that leads
// next may lack it (P18).
const passOnAfter = 4 * retryIn

// reofferBundles sends again what still waits (P17, P18). The intervals grow: if nothing is proposed for long, more
// repetition does not help. A bundle of this node's clients is sent to all anchors, any other to some peers in turn.
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
		// Other anchors applied it in another bundle, as when a client repeated a write after a restart. Or no anchor
		// accepts it now, because this node's clock was ahead when it did.
		if m.applied(e.bundle) || e.bundle.ValidUntil() > m.latest(&m.chain.policy.Limits, e.bundle) {
			m.pool.drop(e)
			continue
		}
		if m.now.Sub(e.since) <= wait<<min(e.wait, 4) {
			continue
		}
		f := RawFrame(TagBundle, e.bundle.Raw())
		if !e.local {
			m.sendAround(f, &e.around)
		} else if m.broadcastFrame(f); e.sent > 0 { // an anchor out of this node's reach may be within that of others
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

// refit drops the bundles that an epoch which begins does not take: those of authors that its policy does not list, and
// if its limits are others, those that are not within them. A request for a mutation that no other bundle holds is
// refused. A bundle that is valid for longer than the policy allows may be taken later by anchors that have it, so its
// mutations are not answered.
func (m *Machine) refit(lim scope.Limits, changed bool) {
	p := &m.pool
	var all []unfit
	held := make(map[aweigh.Hash]bool)
	for _, e := range p.order {
		if e.gone {
			continue
		}
		if changed && e.bundle.ValidUntil() > m.latest(&lim, e.bundle) {
			p.drop(e)
			continue
		}
		err := m.chain.terms.ForbidsAll(e.bundle)
		if err == nil && changed {
			_, err = verified(e.bundle.Raw(), lim)
		}
		if err != nil {
			all = append(all, unfit{e, err})
			continue
		}
		for i := range e.bundle.Mutations() {
			held[e.bundle.Mutations()[i].ID] = true
		}
	}
	m.refuse(all, held)
}

// refuseAll removes all entries, for one reason.
func (m *Machine) refuseAll(why error) {
	var all []unfit
	for _, e := range m.pool.order {
		if !e.gone {
			all = append(all, unfit{e, why})
		}
	}
	m.refuse(all, nil)
}

// unfit is an entry that no block can carry out any more.
type unfit struct {
	*pooled
	why error
}

// refuse removes entries, and answers the requests for their mutations that no other entry holds.
func (m *Machine) refuse(all []unfit, held map[aweigh.Hash]bool) {
	for _, e := range all {
		for i := range e.bundle.Mutations() {
			if id := e.bundle.Mutations()[i].ID; !held[id] && m.pool.answer(id) {
				m.fx.Reply = append(m.fx.Reply, Reply{Mutation: id, Refused: e.why})
			}
		}
		m.pool.remove(e.pooled)
	}
}
