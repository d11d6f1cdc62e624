package quorum

import "github.com/aweigh/aweigh"

// Where no anchor lies, one round of votes decides a view (P13): anchors vouch for the leader's block by their vote to
// finalize it. An anchor that has voted so does not nullify the view any more (P7). So the votes of a view may be
// divided, with enough for neither certificate, although all remaining anchors have voted. Then the view is over
// (P11). Its block may be final, because there may be votes that are not known; so the next leader builds on it (P12).
// In the same way as promises in Paxos (Lamport, "The Part-Time Parliament", 1998), what may have been decided is
// carried on until it is decided.

// leave ends the current view if its votes are divided and its time is over. Until then there may still be enough for
// a certificate, preferably for a nullification, which skips a block that other anchors found invalid. If others have
// voted in higher views, without a certificate that shows how they got there, the views before those end, too.
func (e *Engine) leave(now aweigh.Instant) {
	for i := len(e.order) - 1; i >= 0 && e.order[i] >= e.view; i-- {
		v := e.order[i]
		if r := e.rounds[v]; r.over() || !r.divided(e.cfg.Rules, e.cfg.Weights.Total()) {
			continue
		}
		if v > e.view {
			e.ended = max(e.ended, v-1)
		} else if e.deadline != 0 && now >= e.deadline {
			e.ended = max(e.ended, v)
		}
		return
	}
}

// divided reports whether the anchors that voted have enough weight to meet both the rule to finalize and the rule to
// nullify, had all of them voted the same.
func (r *round) divided(rules Rules, total uint64) bool {
	weight, anchors := uint64(0), 0
	for i := range r.counts {
		if k := r.counts[i].subject.Kind; k == Finalize || k == Nullify {
			weight += r.counts[i].weight
			anchors += r.counts[i].anchors
		}
	}
	return rules.Finalize.Met(weight, total, anchors) && rules.Nullify.Met(weight, total, anchors)
}

// forgo nullifies views that this anchor left without a vote and that have no certificate. If the anchors that vouched
// for the block are gone, and its content with them, all others must nullify the view before any leader can build past
// it.
func (e *Engine) forgo(out *Output) {
	for _, v := range e.order {
		if r := e.rounds[v]; v > e.final && v < e.view && !r.over() {
			e.nullify(r, out)
		}
	}
}

// base returns the block of a view on which another block may stand: a certified block, or, where no anchor lies, one
// that an anchor vouched for, since it may be final as far as this engine knows.
func (e *Engine) base(r *round) (block aweigh.Hash, ok bool) {
	if c, ok := r.block(); ok || e.vouch == Notarize {
		if picked := e.picked(r); !ok && !picked.IsZero() {
			return picked, true
		}
		return c.Subject.Block, ok
	}
	for i := range r.counts {
		if s := &r.counts[i].subject; s.Kind == Finalize {
			return s.Block, true
		}
	}
	return aweigh.Hash{}, false
}

// Stands reports whether the block of a view can no longer be skipped, according to the votes that are held here: this
// anchor voted to finalize it, or others did with so much weight that the rest cannot nullify the view.
func (e *Engine) Stands(v aweigh.View) bool {
	r := e.rounds[v]
	if r == nil {
		return false
	}
	if r.signed[Finalize] || r.has(Finalize) {
		return true
	}
	total, anchors := e.cfg.Weights.Total(), e.cfg.Weights.Len()
	for i := range r.counts {
		if c := &r.counts[i]; c.subject.Kind == Finalize && !e.cfg.Rules.Nullify.Met(total-c.weight, total, anchors-c.anchors) {
			return true
		}
	}
	return false
}

// Unfinalized returns the highest view with a block that is not final but may become so, as far as this engine knows;
// if there is none, the last final view. Where one round decides, an anchor answers a linearizable read with it (P23).
func (e *Engine) Unfinalized() aweigh.View {
	if e.cfg.Rules.Mode == BFT {
		return e.tip
	}
	for i := len(e.order) - 1; i >= 0 && e.order[i] > e.final; i-- {
		r := e.rounds[e.order[i]]
		if _, ok := e.base(r); (ok || !r.own.IsZero()) && !r.skipped() {
			return r.view
		}
	}
	return e.final
}

// Decided reports whether all views up to one are final or nullified, so that no further block of theirs can become
// final.
func (e *Engine) Decided(to aweigh.View) bool {
	for v := e.final + 1; v <= to; v++ {
		if r := e.rounds[v]; r == nil || !r.skipped() {
			return false
		}
	}
	return true
}
