package quorum

import (
	"slices"

	"github.com/aweigh/aweigh"
)

// In mode Fast one round of votes decides as long as little weight is silent, although anchors may lie (P56 to P60). A
// block is final by its notarization alone if the notarization weighs enough. For that, a nullify ballot names the
// block that its anchor notarized in the view, and ballots of weight W − f replace the nullification: either they prove
// that no block of the view can be final, or they name the one that can, on which the next leader builds. Two ways to
// decide in one set of rules are those of fast Byzantine consensus (Martin and Alvisi, "Fast Byzantine Consensus",
// 2006); that two liars need not count where the leader is known to be one of them is the observation of Abraham et
// al., "Good-case Latency of Byzantine Broadcast", 2021, by which four anchors tolerate a liar and a silent one.

// FastBounds holds the bounds of mode Fast for the weights of one epoch.
type FastBounds struct {
	// Lying is f, the weight of the heaviest set of anchors that may lie together: at most Mode.FaultBudget, and
	// usually less, as anchors are not divisible.
	Lying uint64
	// Silent is p, the weight that may be silent while one round decides: p ≤ f, and 2p < W − 3f + 2w for the lightest
	// anchor's weight w.
	Silent uint64
	// Final is the least weight of a notarization that makes its block final: W − p, and no less than the rules to
	// notarize and to finalize ask for.
	Final uint64
	// Leave is the least weight of nullify ballots by which a view may be left: W − f, and no less than the rule to
	// nullify asks for.
	Leave uint64
}

// exactLying is the number of anchors up to which the heaviest set of liars is looked for among all sets.
const exactLying = 12

// FastBounds returns the bounds for weights; those of a mode other than Fast are zero.
func (r Rules) FastBounds(w Weights) (x FastBounds) {
	total := w.Total()
	if r.Mode != Fast || total == 0 {
		return FastBounds{}
	}
	x.Lying = w.heaviest(r.Mode.FaultBudget(total))
	least := total
	for s := range w.All() {
		least = min(least, s.Weight)
	}
	x.Silent = min(x.Lying, (total-3*x.Lying+2*least-1)/2)
	x.Final = max(total-x.Silent, r.Notarize.Threshold(total), r.Finalize.Threshold(total))
	x.Leave = max(total-x.Lying, r.Nullify.Threshold(total))
	return x
}

// heaviest returns the weight of the heaviest set of anchors that weighs at most a bound. Among many anchors it returns
// the bound, which is no less.
func (w Weights) heaviest(bound uint64) (most uint64) {
	if w.Len() > exactLying {
		return bound
	}
	for set := range uint32(1) << w.Len() {
		sum := uint64(0)
		for seat := range w.shares {
			if set>>seat&1 != 0 {
				sum += w.shares[seat].Weight
			}
		}
		if sum <= bound {
			most = max(most, sum)
		}
	}
	return most
}

// Decides reports whether a certificate makes its block final under these rules and weights, of which x are the bounds:
// a finalization, or in mode Fast a notarization that weighs enough. The certificate must have been verified.
func (r Rules) Decides(c Certificate, w Weights, x FastBounds) bool {
	if c.Subject.Kind != Notarize || r.Mode != Fast {
		return c.Subject.Kind == Finalize
	}
	t := c.Tally(w)
	return r.fastMet(x, t.Weight(), t.Len())
}

// fastMet reports whether a notarization of so much weight, of so many anchors, makes its block final.
func (r Rules) fastMet(x FastBounds, weight uint64, anchors int) bool {
	return x.Final > 0 && weight >= x.Final && uint32(anchors) >= max(r.Notarize.MinAnchors, r.Finalize.MinAnchors)
}

// evidenced is a block of a view for which this engine holds the leader's vote. Only such blocks can be named: what a
// liar makes up does not count.
type evidenced struct {
	vote   Vote // the leader's
	parent aweigh.Hash
	placed bool // parent is known
	bad    bool // the block is not valid
}

// spare is how many blocks of a view an engine keeps the leader's votes for that no ballot names. Two prove that it
// lies.
const spare = 4

// evidence keeps a leader's vote for one more block of its view. Honest anchors may name as many blocks as there are
// anchors, each of which may be the one that decides; what nothing names makes room for others.
func (r *round) evidence(v *Vote) {
	if v.Kind != Notarize || v.Anchor != r.leader || r.evidenceOf(v.Block) >= 0 {
		return
	}
	idle := -1
	n := 0
	for i := range r.evidenced {
		if b := r.evidenced[i].vote.Block; b != r.own && !r.named(b) {
			idle, n = i, n+1
		}
	}
	if n >= spare {
		r.evidenced = slices.Delete(r.evidenced, idle, idle+1)
	}
	r.evidenced = append(r.evidenced, evidenced{vote: *v})
}

// named reports whether a nullify ballot names a block.
func (r *round) named(block aweigh.Hash) bool {
	for i := range r.counts {
		if s := &r.counts[i].subject; s.Kind == Nullify && s.Block == block {
			return true
		}
	}
	return slices.ContainsFunc(r.seconds, func(v Vote) bool { return v.Block == block })
}

// evidenceOf returns the place of a block among those with evidence, -1 if it is none of them.
func (r *round) evidenceOf(block aweigh.Hash) int {
	return slices.IndexFunc(r.evidenced, func(x evidenced) bool { return x.vote.Block == block })
}

// placeEvidence notes the parent of a block with evidence.
func (r *round) placeEvidence(p *Proposal) {
	if at := r.evidenceOf(p.Vote.Block); at >= 0 {
		r.evidenced[at].parent, r.evidenced[at].placed = p.Parent, true
	}
}

// second keeps a nullify ballot of an anchor that signed another one before. The anchor lies, and others may hold this
// ballot alone, and have left the view by it.
func (r *round) second(v *Vote, seat int) {
	n := 0
	for i := range r.seconds {
		if x := &r.seconds[i]; x.Anchor == v.Anchor {
			if n++; x.Block == v.Block || n == spare {
				return
			}
		}
	}
	if r.held(Nullify, seat).Block != v.Block {
		r.seconds = append(r.seconds, *v)
	}
}

// names sums up the nullify ballots of a view, one of each anchor: the weight of those that name no block, and for each
// block with evidence the weight of those that name it; with and without the leader.
type names struct {
	none, noneLed uint64   // noneLed: without the leader
	by, byLed     []uint64 // of blocks, in the order of their evidence
	named         int      // blocks with a ballot
	leader        uint64   // its weight
}

// names counts of an anchor that signed several nullify ballots the one that names prefer, if there is one.
func (r *round) names(w *Weights, prefer aweigh.Hash) (x names) {
	x.leader, x.by, x.byLed = w.Of(r.leader), make([]uint64, len(r.evidenced)), make([]uint64, len(r.evidenced))
	chosen := make([]aweigh.Hash, w.Len())
	for seat := range chosen {
		if s := r.held(Nullify, seat); s.View != 0 && r.known(s.Block) {
			chosen[seat] = s.Block
		}
	}
	for i := range r.seconds {
		v := &r.seconds[i]
		if seat, ok := w.Seat(v.Anchor); ok && r.known(v.Block) && (v.Block == prefer || chosen[seat].IsZero()) {
			chosen[seat] = v.Block
		}
	}
	for seat, block := range chosen {
		weight, led := w.At(seat).Weight, w.At(seat).Weight
		if seat == r.seat {
			led = 0
		}
		if block == NoBlock {
			x.none, x.noneLed = x.none+weight, x.noneLed+led
		} else if i := r.evidenceOf(block); i >= 0 && !block.IsZero() {
			if x.by[i] == 0 {
				x.named++
			}
			x.by[i], x.byLed[i] = x.by[i]+weight, x.byLed[i]+led
		}
	}
	return x
}

// passed reports whether the nullify ballots held prove that no block of the view is final (P58): among ballots of
// weight V, which name one block at most, this one by less than V − p − f; or, if they name several, so that the leader
// lied and its ballot is left out, each by less than V − p − f and the leader's weight.
func (r *round) passed(f FastBounds, w *Weights) bool {
	x := r.names(w, NoBlock)
	most := uint64(0)
	for _, by := range x.by {
		most = max(most, by)
	}
	if x.none > f.Silent+f.Lying && x.none+most >= f.Leave {
		return true
	}
	if x.named < 2 {
		return false
	}
	all := x.noneLed
	for _, by := range x.byLed {
		all += by
	}
	if all < f.Leave {
		return false
	}
	for _, by := range x.byLed {
		if all-by+x.leader <= f.Silent+f.Lying {
			return false
		}
	}
	return true
}

// stands reports whether the nullify ballots held let the next leader build on a block (P58): they prove that no other
// block of the view is final. Ballots of weight W − f do that if they name no other. If they name several, so that the
// leader lied, those of other anchors that name this one must weigh more than p and the other liars. More ballots never
// prove less: what one anchor builds on, all others come to accept.
func (r *round) stands(block aweigh.Hash, f FastBounds, w *Weights) bool {
	at := r.evidenceOf(block)
	if at < 0 {
		return false
	}
	x := r.names(w, block)
	if x.by[at] == 0 {
		return false
	}
	if x.none+x.by[at] >= f.Leave {
		return true
	}
	all := x.noneLed
	for _, by := range x.byLed {
		all += by
	}
	return x.named > 1 && all >= f.Leave && x.byLed[at]+x.leader > f.Silent+f.Lying
}

// known reports whether a block can be named.
func (r *round) known(block aweigh.Hash) bool {
	return block == NoBlock || r.evidenceOf(block) >= 0
}

// leaveFast ends a view whose nullify ballots allow it (P57).
func (e *Engine) leaveFast(r *round, out *Output) {
	if r.view < e.floor || r.has(Finalize) || r.votes[Nullify] == nil {
		return
	}
	if !r.passes && r.passed(e.fast, &e.cfg.Weights) {
		r.passes = true
		out.Passed = append(out.Passed, r.view)
	}
	if r.passes || e.picked(r) != (aweigh.Hash{}) {
		if r.view == e.view && !r.passes { // the others may need this ballot to pass the view over
			e.nullify(r, out)
		}
		if !r.over() {
			r.ended = e.now
		}
		e.ended = max(e.ended, r.view)
	}
}

// mayStand reports whether a block without a certificate may be built on (P58). Its leader may lie: so it must stand
// where P12 allows it itself.
func (e *Engine) mayStand(r *round, block aweigh.Hash) bool {
	if e.cfg.Rules.Mode != Fast || r.votes[Nullify] == nil || !r.stands(block, e.fast, &e.cfg.Weights) {
		return false
	}
	x := &r.evidenced[r.evidenceOf(block)]
	return x.placed && !x.bad && e.linked(r.view, x.parent)
}

// ground hands out the nullify ballots of the views below one, by which this anchor is in that view or votes for a
// block of it, and the leaders' votes for the blocks that it notarized. If they were lost with a restart, they might be
// nowhere else: liars can sign what only one other anchor ever sees.
func (e *Engine) ground(below aweigh.View, out *Output) {
	if e.cfg.Rules.Mode != Fast || e.seat < 0 {
		return
	}
	for i := len(e.order) - 1; i >= 0 && e.order[i] > e.final; i-- {
		r := e.rounds[e.order[i]]
		if r.view >= below || r.votes[Nullify] == nil && (r.own.IsZero() || r.seat == e.seat) {
			continue
		}
		var o Offer
		r.offer(&o, Nullify, &e.cfg.Weights, true)
		r.offerEvidence(&o)
		o.Votes = slices.DeleteFunc(o.Votes, func(v Vote) bool { return v.Anchor == e.cfg.Self }) // they are on record
		if len(o.Votes) != r.grounds {
			r.grounds = len(o.Votes)
			out.Grounds = append(out.Grounds, Ground{r.view, o.Votes})
		}
	}
}

// Honest reports whether an anchor that does not lie voted for a block without a certificate: the nullify ballots that
// name it weigh more than f.
func (e *Engine) Honest(v aweigh.View, block aweigh.Hash) bool {
	r := e.rounds[v]
	if r == nil || e.cfg.Rules.Mode != Fast || r.evidenceOf(block) < 0 {
		return false
	}
	return r.names(&e.cfg.Weights, block).by[r.evidenceOf(block)] > e.fast.Lying
}

// picked returns a block of a view without a certificate on which the next block must stand, zero if there is none.
func (e *Engine) picked(r *round) (block aweigh.Hash) {
	for i := range r.evidenced {
		if b := r.evidenced[i].vote.Block; e.mayStand(r, b) {
			return b
		}
	}
	return block
}

// Unplaced returns votes of leaders for blocks that other anchors name in their nullify ballots, and whose parents are
// not known here: without the block, this view or a later one may not end. A Proposal with the parent answers it.
func (e *Engine) Unplaced() (votes []Vote) {
	if e.cfg.Rules.Mode != Fast {
		return nil
	}
	for i := len(e.order) - 1; i >= 0 && e.order[i] > e.final; i-- {
		r := e.rounds[e.order[i]]
		if _, ok := r.block(); ok || r.votes[Nullify] == nil {
			continue
		}
		for j := range r.evidenced {
			if x := &r.evidenced[j]; !x.placed && r.stands(x.vote.Block, e.fast, &e.cfg.Weights) {
				votes = append(votes, x.vote)
			}
		}
	}
	return votes
}

// slow signs finalize for a notarized block that one round may no longer decide, as in mode BFT (P60): at once if those
// that have not voted in its view and are within reach weigh too little, and else with the next offer.
func (e *Engine) slow(now aweigh.Instant, out *Output) {
	waits := e.slowly[:0]
	for _, v := range e.slowly {
		r := e.rounds[v]
		if r == nil || v < e.floor || r.has(Finalize) || r.signed[Nullify] || r.signed[Finalize] {
			continue
		}
		c := r.cert(Notarize)
		if now < r.slowAt && e.fastMay(r, c.Subject) {
			waits = append(waits, v)
			continue
		}
		e.sign(r, Subject{Kind: Finalize, View: v, Block: c.Subject.Block}, out)
		e.pledged(c)
	}
	e.slowly = waits
}

// fastMay reports whether more votes to notarize a block may come, so many that they decide.
func (e *Engine) fastMay(r *round, s Subject) bool {
	weight, anchors := uint64(0), 0
	for seat := range e.cfg.Weights.Len() {
		voted := r.held(Notarize, seat)
		if voted.Block == s.Block || voted.View == 0 && !r.hasVote(Nullify, seat) && !e.away[seat] {
			weight, anchors = weight+e.cfg.Weights.At(seat).Weight, anchors+1
		}
	}
	return e.cfg.Rules.fastMet(e.fast, weight, anchors)
}

// offerEvidence adds the leader's further votes to notarize, and liars' further votes to nullify. Other engines may
// hold others, and these may be what proves that a view may be left.
func (r *round) offerEvidence(o *Offer) {
	o.Votes = append(o.Votes, r.seconds...)
	for i := range r.evidenced {
		o.Votes = append(o.Votes, r.evidenced[i].vote)
	}
}
