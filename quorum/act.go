package quorum

import (
	"slices"

	"github.com/aweigh/aweigh"
)

// advance enters the view after the highest one known to be over (P11).
func (e *Engine) advance(now aweigh.Instant, out *Output) {
	switch e.cfg.Rules.Mode {
	case Crash:
		e.leave(now)
	case Fast:
		e.leaveFast(e.round(e.view), out)
	}
	if e.ended < e.view {
		return
	}
	e.ground(e.ended+1, out)
	e.judge(e.round(e.ended))
	e.view = e.ended + 1
	e.entered, e.deadline = now, 0
	if e.view > e.cfg.Bounds.Ahead {
		e.close(min(e.tip, e.view-e.cfg.Bounds.Ahead)) // the tip's certificate stands for all before it
	}
}

// judge adapts the timeouts to a view that ended (P19). A block that came after this anchor had given the view up is
// no success: this anchor cannot finalize it, and if it counted as a success, a network slower than the timeout would
// stay so forever. A repeated failure of one leader is no evidence about the network either, as long as others
// succeed.
func (e *Engine) judge(r *round) {
	heard := e.heardLately(r)
	switch {
	case r.has(Finalize) || r.has(Notarize) && !r.signed[Nullify]:
		e.fails = max(0, e.fails-1)
		e.lulls++
	case heard && (e.wasted[r.seat] == 0 || !slices.Contains(e.wasted, 0)) && e.usual() < e.cfg.Timing.MaxView:
		e.fails++
	}
	if e.work {
		e.lulls = 0
	}
	if _, gave := e.base(r); gave {
		e.wasted[r.seat] = 0
	} else if heard {
		e.wasted[r.seat]++
	}
}

// act does what the state of the views requires.
func (e *Engine) act(now aweigh.Instant, out *Output) {
	for _, v := range e.fresh { // P14
		r := e.rounds[v]
		if e.cfg.Rules.Mode == Fast {
			if r != nil {
				r.slowAt = now.Add(e.cfg.Timing.Offer)
				e.slowly = append(e.slowly, v)
			}
			continue
		}
		if r != nil && v >= e.floor && !r.signed[Nullify] && !r.signed[Finalize] {
			e.sign(r, Subject{Kind: Finalize, View: v, Block: r.cert(Notarize).Subject.Block}, out)
			e.pledged(r.cert(Notarize))
		}
	}
	e.fresh = e.fresh[:0]
	e.slow(now, out)

	if e.vouch == Finalize {
		e.forgo(out)
	}
	r := e.round(e.view)
	if p := r.proposal; p != nil && r.check == unchecked && !r.signed[e.vouch] && e.linked(p.Vote.View, p.Parent) {
		r.check = checking
		out.Check = append(out.Check, *p)
	}
	if !r.signed[Nullify] && !r.signed[e.vouch] {
		switch r.check {
		case valid: // P13
			e.sign(r, Subject{Kind: e.vouch, View: e.view, Block: r.proposal.Vote.Block}, out)
		case invalid: // the leader is at fault: nothing is gained by waiting for the timer
			e.nullify(r, out)
		}
	}
	if e.leads(r) && !r.asked && !r.signed[e.vouch] && !r.signed[Nullify] && (e.work || e.emptyBlockDue(now)) {
		if slot, ok := e.Slot(); ok {
			r.asked = true
			out.Build = &slot
		}
	}
}

func (e *Engine) sign(r *round, s Subject, out *Output) {
	if e.seat >= 0 {
		r.signed[s.Kind] = true
		if s.Kind == Notarize {
			r.own = s.Block
			e.ground(s.View+1, out)
		}
		out.Sign = append(out.Sign, s)
	}
}

// nullify gives the view up, unless this anchor has done so or may not (P7, P15).
func (e *Engine) nullify(r *round, out *Output) {
	if !r.signed[Nullify] && !r.signed[Finalize] {
		r.obliged = !e.work && e.Unfinalized() <= e.final
		s := Subject{Kind: Nullify, View: r.view}
		if e.cfg.Rules.Mode == Fast {
			if s.Block = r.own; s.Block.IsZero() {
				s.Block = NoBlock
			}
		}
		e.sign(r, s, out)
		if out.Build != nil && out.Build.View == r.view { // asked for a moment ago
			out.Build = nil
		}
	}
}

// leads reports whether this anchor leads the view.
func (e *Engine) leads(r *round) bool { return e.seat >= 0 && r.leader == e.cfg.Self }

// linked checks P12: the parent is notarized (or, where one round decides, vouched for) and every view between is
// nullified. It uses the parent's hash, which the block itself contains; the parent's view, which the sender adds,
// proves nothing.
func (e *Engine) linked(view aweigh.View, parent aweigh.Hash) bool {
	for v := view - 1; v > 0 && v >= e.final; v-- {
		r := e.rounds[v]
		if r == nil {
			return false
		}
		if base, ok := e.base(r); ok && base == parent || e.mayStand(r, parent) {
			return true
		}
		if !r.skipped() {
			return false
		}
	}
	return e.final == 0 && parent == e.cfg.Root
}

// Slot returns where this anchor would propose now: the parent with its proof. ok is false if it does not lead the
// current view. More may have become known of earlier views since the view began.
func (e *Engine) Slot() (s Slot, ok bool) {
	s = Slot{View: e.view, Parent: e.cfg.Root}
	for v := e.view - 1; v > 0; v-- {
		r := e.rounds[v]
		if r == nil {
			return Slot{}, false
		}
		// A view that was nullified is skipped even if an anchor vouched for its block: it may be that no remaining
		// anchor has the block.
		c, certified := r.block()
		if base, ok := e.base(r); ok && (certified || !r.skipped()) {
			if s.Parent, s.ParentView = base, v; certified {
				s.Proof = append(s.Proof, c)
			}
			return s, true
		}
		if !r.skipped() {
			return Slot{}, false
		}
		if r.has(Nullify) {
			s.Proof = append(s.Proof, r.cert(Nullify))
		}
	}
	return s, true
}
