package quorum

import (
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
)

// open reports whether votes and proposals of a view are still needed.
func (e *Engine) open(v aweigh.View) bool {
	return v >= max(e.floor, 1) && v <= e.view+e.cfg.Bounds.Ahead
}

func (e *Engine) propose(p Proposal, out *Output) {
	v := &p.Vote
	seat, ok := e.cfg.Weights.Seat(v.Anchor)
	if !ok || v.Kind != e.vouch || e.Leader(v.View) != v.Anchor {
		return
	}
	e.vote(v, out)
	if r := e.rounds[v.View]; r != nil && r.proposal == nil && r.held(e.vouch, seat) == v.Subject {
		r.proposal = &p
	}
	if r := e.rounds[v.View]; r != nil {
		r.placeEvidence(&p)
	}
}

func (e *Engine) verdict(in Verdict) {
	r := e.rounds[in.View]
	if r == nil {
		return
	}
	if r.proposal != nil && r.proposal.Vote.Block == in.Block && r.check <= checking {
		r.check = invalid
		if in.Valid {
			r.check = valid
		}
	} else if at := r.evidenceOf(in.Block); at >= 0 && !in.Valid {
		r.evidenced[at].bad = true // a verdict on a block to vote for may be of its time alone
	}
}

func (e *Engine) vote(v *Vote, out *Output) {
	seat, ok := e.cfg.Weights.Seat(v.Anchor)
	if !ok || !e.cfg.Rules.Allows(v.Subject) || !e.open(v.View) {
		return
	}
	if v.Kind == Notarize && e.vouch != Notarize { // of a program before this one, whose leader may have proposed so
		if seat == e.seat {
			e.round(v.View).asked = true
		}
		return
	}
	r := e.round(v.View)
	e.heard[seat] = max(e.heard[seat], v.View)
	if seat == e.seat { // whatever the way by which it came back to us
		r.signed[v.Kind] = true
		r.asked = r.asked || v.Kind == e.vouch
		if v.Kind == Notarize {
			r.own = v.Block
		}
	}
	if f, ok := r.fault(v, seat, e.cfg.Weights.Len()); ok {
		out.Faults = append(out.Faults, f)
	}
	if e.cfg.Rules.Mode == Fast {
		e.voteFast(r, v, seat, out)
		return
	}
	if r.add(v, seat, &e.cfg.Weights, e.cfg.Rules.For(v.Kind)) && !r.has(v.Kind) {
		e.certificate(r.certificate(v.Subject, &e.cfg.Weights), out)
	}
}

// voteFast counts a vote in mode Fast.
func (e *Engine) voteFast(r *round, v *Vote, seat int, out *Output) {
	r.evidence(v)
	if v.Kind == Nullify && r.hasVote(Nullify, seat) {
		r.second(v, seat)
	}
	met := r.add(v, seat, &e.cfg.Weights, e.cfg.Rules.For(v.Kind))
	switch v.Kind {
	case Notarize:
		if c := r.counts[r.place(&v.Subject)-1]; met && (!r.has(Notarize) || !r.has(Finalize) && e.cfg.Rules.fastMet(e.fast, c.weight, c.anchors)) {
			e.certificate(r.certificate(v.Subject, &e.cfg.Weights), out)
		}
		e.leaveFast(r, out) // the leader's vote may be what a ballot lacked
	case Nullify:
		e.leaveFast(r, out)
	case Finalize:
		if met && !r.has(Finalize) {
			e.certificate(r.certificate(v.Subject, &e.cfg.Weights), out)
		}
	}
}

func (e *Engine) certificate(c Certificate, out *Output) {
	s := c.Subject
	decides := e.cfg.Rules.Decides(c, e.cfg.Weights, e.fast)
	if !e.cfg.Rules.Allows(s) || s.View < e.final || s.View < e.floor && !decides || s.Kind == Notarize && e.vouch != Notarize {
		return
	}
	if s.Kind == Nullify && e.cfg.Rules.Mode == Fast {
		return // ballots take its place
	}
	r := e.round(s.View)
	if r.has(s.Kind) {
		must.Hold(r.cert(s.Kind).Subject == s || s.Kind == Finalize && r.cert(s.Kind).Subject.Block == s.Block,
			"view %d: two blocks certified: more than the fault budget lies", s.View)
		if !decides || r.has(Finalize) {
			return
		}
	}
	if !r.over() {
		r.ended = e.now
	}
	for _, sig := range c.Signatures { // an anchor that also signed a conflicting vote is at fault
		if seat, ok := e.cfg.Weights.Seat(sig.Anchor); ok {
			if f, ok := r.fault(&Vote{s, sig}, seat, e.cfg.Weights.Len()); ok {
				out.Faults = append(out.Faults, f)
			}
		}
	}
	fresh := !r.has(s.Kind)
	r.certs[s.Kind] = &c
	if decides {
		r.certs[Finalize] = &c
	}
	out.Certified = append(out.Certified, c)
	must.Hold(!r.has(Finalize) || !r.skipped(), "view %d: finalized and nullified: more than the fault budget lies", s.View)
	must.Hold(!r.has(Finalize) || !r.has(Notarize) || r.cert(Finalize).Subject.Block == r.cert(Notarize).Subject.Block,
		"view %d: two blocks certified: more than the fault budget lies", s.View)

	e.ended = max(e.ended, s.View)
	if s.Kind != Nullify {
		e.tip = max(e.tip, s.View)
	}
	switch {
	case !decides && s.Kind == Notarize && fresh:
		e.fresh = append(e.fresh, s.View)
	case decides && s.View > e.final:
		e.final = s.View
		if r.ended != 0 { // and not in an earlier life
			e.lag = e.now.Sub(r.ended)
		}
		out.Final = append(out.Final, c)
		e.close(s.View)
	}
}

// close forgets the views below floor, except the last final one, for good.
func (e *Engine) close(floor aweigh.View) {
	if floor <= e.floor {
		return
	}
	e.floor = floor
	e.order = slices.DeleteFunc(e.order, func(v aweigh.View) bool {
		gone := v < floor && v != e.final
		if gone {
			delete(e.rounds, v)
		}
		return gone
	})
}
