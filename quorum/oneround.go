package quorum

import "github.com/aweigh/aweigh"

// Where nobody lies, one round of votes decides a view (P13): anchors vouch for
// the leader's block by their vote to finalize it. An anchor that voted so does
// not nullify the view any more (P7), so the votes of a view may be divided, with
// enough for neither certificate, though all who are left have voted. Then the
// view is over (P11), and since its block may be final, where more votes were cast
// than are known, the next leader builds on it (P12). As promises do in Paxos
// (Lamport, "The Part-Time Parliament", 1998), what may have been decided is
// carried on until it is.

// leave ends the current view if its votes are divided and its time is over: until
// then they may still become enough for a certificate, and best for a nullification,
// which passes over a block that others found bad. Views above in which others have
// voted, without a word of how they came there, end the views before them.
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

// divided reports whether anchors have spoken whose weight could have met the rules
// to finalize and to nullify, had they all said the one or the other.
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

// forgo nullifies what this anchor left without a vote, and nothing is certified of:
// if those who vouched for the block are gone, with its content, all others must
// have nullified the view before anyone can build past it.
func (e *Engine) forgo(out *Output) {
	for _, v := range e.order {
		if r := e.rounds[v]; v > e.final && v < e.view && !r.over() {
			e.nullify(r, out)
		}
	}
}

// base is the block of a view on which another may stand: one that is certified,
// or one that somebody vouched for where nobody lies, since it may be final for all
// that is known here.
func (e *Engine) base(r *round) (block aweigh.Hash, ok bool) {
	if c, ok := r.block(); ok || e.vouch == Notarize {
		return c.Subject.Block, ok
	}
	for i := range r.counts {
		if s := &r.counts[i].subject; s.Kind == Finalize {
			return s.Block, true
		}
	}
	return aweigh.Hash{}, false
}

// Stands reports whether the block of a view cannot be passed over any more, by the votes that are held here: this
// anchor voted to finalize it, or others of so much weight that the rest cannot nullify the view.
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

// Undecided is the highest view with a block that is not final and may become so, for
// all that is known here; the last final view if there is none. Where one round
// decides, it is what an anchor answers to a linearizable read (P23).
func (e *Engine) Undecided() aweigh.View {
	if e.vouch == Notarize {
		return e.tip
	}
	for i := len(e.order) - 1; i >= 0 && e.order[i] > e.final; i-- {
		r := e.rounds[e.order[i]]
		if _, ok := e.base(r); ok && !r.has(Nullify) {
			return r.view
		}
	}
	return e.final
}

// Decided reports whether all views up to one are final or nullified, so that no
// block of theirs becomes final that is not.
func (e *Engine) Decided(to aweigh.View) bool {
	for v := e.final + 1; v <= to; v++ {
		if r := e.rounds[v]; r == nil || !r.has(Nullify) {
			return false
		}
	}
	return true
}
