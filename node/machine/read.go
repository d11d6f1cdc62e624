package machine

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/quorum"
)

// reads holds the linearizable reads that are not answered (P23). All reads that wait when a round starts share it;
// later ones share the next round.
type reads struct {
	waiting []uint64 // for the next round
	round   uint64   // differs from the rounds of earlier lives: answers to those may still be on their way
	asked   []uint64 // reads that share the current round
	at      aweigh.Instant
	answers quorum.Tally
	target  aweigh.Height            // the highest height proven so far
	end     aweigh.View              // the highest view reported as unfinalized so far
	now     aweigh.Instant           // the latest clock of the anchors that answered so far
	claims  []claim                  // of the anchors that answered so far
	doubted map[aweigh.AnchorID]bool // anchors whose claims kept the last round from an answer; others are asked first
	ready   []pendingRead            // rounds with enough answers, which wait until the state is new enough
	held    int                      // reads in waiting, asked and ready
}

// maxReads bounds the reads that wait at one time.
const maxReads = 1 << 16

func (r *reads) add(m *Machine, id uint64) {
	if r.held >= m.cfg.Bounds.Reads {
		m.fx.Reply = append(m.fx.Reply, Reply{Read: id, Refused: ErrBusy})
		return
	}
	r.held++
	r.waiting = append(r.waiting, id)
}

// claim is the view that an anchor reported as unfinalized.
type claim struct {
	anchor aweigh.AnchorID
	view   aweigh.View
}

type pendingRead struct {
	ids    []uint64
	claims []claim
	at     aweigh.Height
	end    aweigh.View    // of this epoch: all views up to it must be decided
	now    aweigh.Instant // the latest clock of the anchors that answered
	until  aweigh.Instant // when the read asks again: other anchors may have ended the view without a block
}

// needed returns the weight R of answers that a read needs: R + F − W > f, so that at least one honest anchor that
// answers signed every block that was final before.
func (m *Machine) needed() uint64 {
	return ReadWeight(m.keyring.Rules(), m.roster.Weights.Total(), m.keyring.FastBounds())
}

// ReadWeight returns the weight of answers that a linearizable read needs. In mode fast a block may be final by W − p
// alone.
func ReadWeight(rules quorum.Rules, total uint64, x quorum.FastBounds) uint64 {
	least := rules.Finalize.Threshold(total)
	if rules.Mode == quorum.Fast {
		least = min(least, x.Final)
	}
	return total + rules.Mode.FaultBudget(total) - least + 1
}

// pledge returns this anchor's own answer: the header of the highest block for which it signed finalize, or of its
// final block if that is higher. ok is false while it lacks the content that it would have to name. Where one round
// may decide, no certificate proves the former; so the answer has the final block, and the highest view that may have
// another final block.
func (m *Machine) pledge() (a Answer, ok bool) {
	if m.engine.Final() > m.chain.view() {
		return a, false // a block is final, but not here yet
	}
	if m.keyring.Rules().Mode != quorum.BFT {
		a = Answer{Header: m.chain.head, Certificate: m.finality, Epoch: m.term.Epoch.Number}
		if v := m.engine.Unfinalized(); v > m.engine.Final() {
			a.Unfinalized = v
		}
		return a, true
	}
	if c := m.engine.Pledge(); c.Subject.View > m.chain.view() {
		k := m.chain.candidates[c.Subject.Block]
		if k == nil {
			m.wantBlock(c.Subject.Block, m.leaderPeer(c.Subject.View))
			return a, false
		}
		return Answer{Header: k.block.Header, Certificate: c}, true
	}
	a = Answer{Header: m.chain.head, Certificate: m.finality}
	if m.finality.IsZero() { // a block above made an epoch's last block final: a node not in this epoch has to catch up
		a.Epoch = m.term.Epoch.Number
	}
	return a, true
}

// answer sends this anchor's pledge to a peer that asked for it. An anchor that has no pledge yet does not answer; it
// will be asked again.
func (m *Machine) answer(to Peer, ask Ask) {
	if !m.speaks() {
		return
	}
	if a, ok := m.pledge(); ok {
		a.Round, a.Now = ask.Round, m.now
		m.send(to, TagAnswer, a)
	}
}

// start begins a round if reads wait and none is under way.
func (r *reads) start(m *Machine) {
	if len(r.asked) > 0 || len(r.waiting) == 0 {
		return
	}
	r.asked, r.waiting = r.waiting, nil
	r.round++
	r.answers, r.target, r.end, r.now, r.claims = quorum.Tally{}, m.chain.state.Height(), 0, 0, nil
	r.repeat(m)
}

func (r *reads) repeat(m *Machine) {
	r.at = m.now.Add(retryIn)
	m.broadcast(TagAsk, Ask{Round: r.round})
	if m.speaks() {
		if a, ok := m.pledge(); ok {
			r.count(m, m.self, a)
		}
	}
}

func (r *reads) due(m *Machine) {
	if r.at != 0 && m.now >= r.at {
		r.doubted = nil // those that are not doubted did not suffice
		r.repeat(m)
	}
	left := r.ready[:0]
	for _, p := range r.ready {
		if m.decided(p.end) || m.now < p.until {
			left = append(left, p)
		} else {
			r.waiting = append(r.waiting, p.ids...)
			r.doubt(m, p.claims)
		}
	}
	r.ready = left
}

// doubt leaves anchors out of the next round that reported views which are not decided, if the others suffice. Where
// anchors may lie, one could report views that never come.
func (r *reads) doubt(m *Machine, claims []claim) {
	if m.keyring.Rules().Mode != quorum.Fast {
		return
	}
	r.doubted = make(map[aweigh.AnchorID]bool)
	for _, c := range claims {
		if !m.decided(c.view) {
			r.doubted[c.anchor] = true
		}
	}
}

// wake returns when due next has something to do, 0 if never.
func (r *reads) wake(m *Machine) aweigh.Instant {
	at := r.at
	for i := range r.ready {
		if p := &r.ready[i]; !m.decided(p.end) {
			at = aweigh.Earliest(at, p.until)
		}
	}
	return at
}

// answered takes an anchor's answer if the block that it names is proven.
func (r *reads) answered(m *Machine, from Peer, a Answer) {
	anchor, ok := m.anchors[from]
	if !ok || a.Round != r.round || len(r.asked) == 0 {
		return
	}
	h := a.Header
	if max(a.Epoch, h.Epoch) > m.term.Epoch.Number { // this node cannot verify it yet
		m.sync.want(m, from)
		return
	}
	if h.Height > m.chain.state.Height() {
		s := a.Certificate.Subject
		if s.Kind != quorum.Notarize && s.Kind != quorum.Finalize || s.Block != h.Hash() || s.View != h.View ||
			h.Domain() != m.keyring.Domain() || !m.certificate(a.Certificate) {
			d := Dropped{From: from, Class: refusal.Forged, Why: "a read's answer without proof"}
			if h.Epoch < m.term.Epoch.Number || s.View < m.engine.Final() { // its epoch or view is over
				d.Class = refusal.Stale
			}
			m.note(d)
			return
		}
		if m.chain.candidates[s.Block] == nil {
			m.sync.want(m, from)
		}
	}
	r.count(m, anchor, a)
}

// all returns the reads that wait, grouped by round.
func (r *reads) all() [][]uint64 {
	var all [][]uint64
	for _, p := range r.ready {
		all = append(all, p.ids)
	}
	return append(all, r.asked, r.waiting)
}

// restart begins all rounds again in another epoch: the anchors that answered may have been the last to learn of it,
// and only the anchors of the new roster know what it decided.
func (r *reads) restart() {
	for _, p := range r.ready {
		r.waiting = append(r.waiting, p.ids...)
	}
	r.waiting = append(r.waiting, r.asked...)
	r.ready, r.asked, r.at = nil, nil, 0
}

func (r *reads) count(m *Machine, anchor aweigh.AnchorID, a Answer) {
	if len(r.asked) == 0 || r.doubted[anchor] || !r.answers.Add(m.roster.Weights, anchor) {
		return
	}
	r.target, r.now = max(r.target, a.Header.Height), max(r.now, a.Now)
	if a.Epoch == m.term.Epoch.Number && m.keyring.Rules().Mode != quorum.BFT { // else only certificates count
		r.end = max(r.end, a.Unfinalized)
		r.claims = append(r.claims, claim{anchor, a.Unfinalized})
	}
	if r.answers.Weight() >= m.needed() {
		r.ready = append(r.ready, pendingRead{ids: r.asked, claims: r.claims, at: r.target, end: r.end, now: r.now, until: m.now.Add(retryIn)})
		r.asked, r.at = nil, 0
	}
}

// decided reports whether everything that may have become final in the views up to end is final here, or can never
// become final.
func (m *Machine) decided(end aweigh.View) bool {
	return end <= m.chain.view() || m.engine.Final() <= m.chain.view() && m.engine.Decided(end)
}

// serve answers the reads for which the state is new enough, and starts the next round.
func (r *reads) serve(m *Machine) {
	r.start(m)
	head := m.chain.state.Height()
	left := r.ready[:0]
	for _, p := range r.ready {
		if p.at > head || !m.decided(p.end) {
			left = append(left, p)
			continue
		}
		r.held -= len(p.ids)
		for _, id := range p.ids {
			m.fx.Reply = append(m.fx.Reply, Reply{Read: id, Height: head, Now: max(p.now, m.now)})
		}
	}
	r.ready = left
	r.start(m)
}
