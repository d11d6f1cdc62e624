package quorum

import (
	"slices"

	"github.com/aweigh/aweigh"
)

// advance enters the view after the highest one known to be over (P11).
func (e *Engine) advance(now aweigh.Instant) {
	if e.vouch == Finalize {
		e.leave(now)
	}
	if e.ended < e.view {
		return
	}
	e.judge(e.round(e.ended))
	e.view = e.ended + 1
	e.entered, e.deadline = now, 0
	if e.view > e.cfg.Bounds.Ahead {
		e.close(min(e.tip, e.view-e.cfg.Bounds.Ahead)) // the tip's certificate stands for all before it
	}
}

// judge draws the lesson for timeouts from a view that ended (P19). A block that
// came after we had given the view up is no success: it cannot be finalized by
// us, and were it one, a network slower than the timeout would stay so for ever.
// Nor is it news of the network when a leader fails again that failed before, as
// long as others succeed.
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

// act does what the current state of the views calls for.
func (e *Engine) act(now aweigh.Instant, out *Output) {
	for _, v := range e.fresh { // P14
		if r := e.rounds[v]; r != nil && v >= e.floor && !r.signed[Nullify] && !r.signed[Finalize] {
			e.sign(r, Subject{Kind: Finalize, View: v, Block: r.cert(Notarize).Subject.Block}, out)
			e.pledged(r.cert(Notarize))
		}
	}
	e.fresh = e.fresh[:0]

	if e.vouch == Finalize {
		e.forgo(out)
	}
	r := e.round(e.view)
	if p := r.proposal; p != nil && r.check == unchecked && !r.signed[e.vouch] && e.linked(p) {
		r.check = checking
		out.Check = append(out.Check, *p)
	}
	if !r.signed[Nullify] && !r.signed[e.vouch] {
		switch r.check {
		case valid: // P13
			e.sign(r, Subject{Kind: e.vouch, View: e.view, Block: r.proposal.Vote.Block}, out)
		case invalid: // the leader is at fault: waiting for the timer would gain nothing
			e.nullify(r, out)
		}
	}
	if e.leads(r) && !r.asked && !r.signed[e.vouch] && !r.signed[Nullify] && (e.work || e.unsettled(now)) {
		if slot, ok := e.Slot(); ok {
			r.asked = true
			out.Build = &slot
		}
	}
}

func (e *Engine) sign(r *round, s Subject, out *Output) {
	if e.seat >= 0 {
		r.signed[s.Kind] = true
		out.Sign = append(out.Sign, s)
	}
}

// nullify gives the view up, unless this anchor did or may not (P7, P15).
func (e *Engine) nullify(r *round, out *Output) {
	if !r.signed[Nullify] && !r.signed[Finalize] {
		e.sign(r, Subject{Kind: Nullify, View: r.view}, out)
		if out.Build != nil && out.Build.View == r.view { // asked for a moment ago
			out.Build = nil
		}
	}
}

// leads reports whether this anchor leads the view.
func (e *Engine) leads(r *round) bool { return e.seat >= 0 && r.leader == e.cfg.Self }

// linked checks P12: the parent is notarized (or, where one round decides, vouched
// for) and every view between nullified. It goes by the parent's hash, which the
// block itself contains; the view that the messenger names beside it proves nothing.
func (e *Engine) linked(p *Proposal) bool {
	for v := p.Vote.View - 1; v > 0 && v >= e.final; v-- {
		r := e.rounds[v]
		if r == nil {
			return false
		}
		if base, ok := e.base(r); ok && base == p.Parent {
			return true
		}
		if !r.has(Nullify) {
			return false
		}
	}
	return e.final == 0 && p.Parent == e.cfg.Root
}

// Slot is where this anchor would propose now, if it leads the current view: the
// parent with its proof. Since the view began, more may have become known of those
// before.
func (e *Engine) Slot() (s Slot, ok bool) {
	s = Slot{View: e.view, Parent: e.cfg.Root}
	for v := e.view - 1; v > 0; v-- {
		r := e.rounds[v]
		if r == nil {
			return Slot{}, false
		}
		// A view that was nullified is passed over even if somebody vouched for its
		// block: nobody may be left who has it.
		c, certified := r.block()
		if base, ok := e.base(r); ok && (certified || !r.has(Nullify)) {
			if s.Parent, s.ParentView = base, v; certified {
				s.Proof = append(s.Proof, c)
			}
			return s, true
		}
		if !r.has(Nullify) {
			return Slot{}, false
		}
		s.Proof = append(s.Proof, r.cert(Nullify))
	}
	return s, true
}
