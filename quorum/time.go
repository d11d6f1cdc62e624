package quorum

import (
	"time"

	"github.com/aweigh/aweigh"
)

// skipAfter is how many views per anchor may pass without a vote of a leader before its views are given up at once.
const skipAfter = 4

// time runs the timers of the view and of the offers.
func (e *Engine) time(now aweigh.Instant, out *Output) {
	if !e.busy() {
		e.deadline, e.offer, e.lulls = 0, 0, 0
		return
	}
	r := e.round(e.view)
	if e.deadline == 0 {
		e.deadline = now.Add(e.patience(r))
	}
	if now >= e.deadline {
		e.nullify(r, out) // P15
	} else {
		out.Wake = e.deadline
	}
	if e.offer == 0 {
		e.offer = now.Add(e.cfg.Timing.Offer)
	} else if now >= e.offer {
		e.offer = now.Add(e.cfg.Timing.Offer)
		o := e.Holdings()
		out.Offer = &o
	}
	out.Wake = aweigh.Earliest(out.Wake, e.offer)
	for _, v := range e.slowly {
		out.Wake = aweigh.Earliest(out.Wake, e.rounds[v].slowAt)
	}
	if at := e.emptyBlockAt(); e.leads(r) && !r.asked && at > now {
		out.Wake = aweigh.Earliest(out.Wake, at)
	}
}

// busy reports whether there is a reason for timers to run (P18).
func (e *Engine) busy() bool {
	return len(e.heard) > 0 && (e.work || e.lacking() || !e.round(e.view).quiet())
}

// lacking reports whether this anchor, without work of its own, has a reason to propose an empty block when it leads: a
// notarized block is not final, or the view before was given up, and not for a reason that this anchor knew. Then
// another anchor has work. If this can be part of no proposal, as that of a bundle that has expired, the time of any
// block ends it.
func (e *Engine) lacking() bool {
	if e.Unfinalized() > e.final {
		return true
	}
	before := e.rounds[e.view-1]
	return before != nil && before.skipped() && before.obliged && e.leads(e.round(e.view))
}

// heardLately reports whether the leader of a view is within reach and has voted in recent views.
func (e *Engine) heardLately(r *round) bool {
	return len(e.heard) > 0 && (r.seat == e.seat || !e.away[r.seat] && e.heard[r.seat]+aweigh.View(e.cfg.Bounds.SkipAfter*len(e.heard)) >= r.view)
}

// link notes whether an anchor is within reach, and gives up at once a view whose leader has just disconnected.
func (e *Engine) link(l Link) {
	seat, ok := e.cfg.Weights.Seat(l.Anchor)
	if !ok {
		return
	}
	e.away[seat] = !l.Up
	if r := e.round(e.view); !l.Up && r.leader == l.Anchor && r.check == unchecked {
		e.deadline = min(e.deadline, e.entered)
	}
}

// patience returns how long the current view may take: longer while views fail (P19), less if its leader wasted its
// last views, and no time at all if the leader has been silent for many views. While the views of all leaders fail,
// the first effect outgrows the second: every failure counts there, and only those of one leader here.
func (e *Engine) patience(r *round) time.Duration {
	if !e.heardLately(r) {
		return 0
	}
	wasted, turn := e.wasted[r.seat], e.cfg.Bounds.FullTurn
	if r.seat == e.seat || wasted%turn == 0 {
		return doubled(e.cfg.Timing.View, e.fails+min(wasted/turn, 2), e.cfg.Timing.MaxView)
	}
	return e.usual() >> min(wasted, 3)
}

// usual returns how long a view may take by default.
func (e *Engine) usual() time.Duration {
	return doubled(e.cfg.Timing.View, e.fails, e.cfg.Timing.MaxView)
}

// fullTurn is how many views a leader wastes between two for which it gets the full time, which is longer each time:
// it may have recovered, and be far away.
const fullTurn = 8

// emptyBlockAt returns when this anchor, leading without work, proposes an empty block, which makes a notarized block
// final. The wait begins with the view. It is Timing.Settle, doubled for each empty block in a row, and at least twice
// as long as the last finalization took: with a shorter wait each empty block would require the next, and the scope
// would never come to rest (P18). After a view that this anchor led in vain, other anchors give it less time for the
// next: then the wait is at most Patience (P19).
func (e *Engine) emptyBlockAt() aweigh.Instant {
	t, most := e.cfg.Timing, e.Patience()
	wait := max(doubled(t.Settle, e.lulls-1, most), min(2*e.lag, t.MaxView/2))
	if e.wastedOwn() > 0 {
		wait = min(wait, most)
	}
	return e.entered.Add(wait)
}

// wastedOwn returns how many views this anchor has led in vain since its last block.
func (e *Engine) wastedOwn() int {
	if e.seat < 0 {
		return 0
	}
	return e.wasted[e.seat]
}

// emptyBlockDue reports whether that time has come.
func (e *Engine) emptyBlockDue(now aweigh.Instant) bool {
	return e.lacking() && now >= e.emptyBlockAt()
}

// doubled returns d·2ⁿ, at most limit.
func doubled(d time.Duration, n int, limit time.Duration) time.Duration {
	for ; n > 0 && d < limit; n-- {
		d *= 2
	}
	return min(d, limit)
}

// Holdings returns what this engine holds of its open views: enough for any other engine of the epoch to reach the
// same view, if that engine holds no more itself. The tip's certificate stands for what led to it, so below the tip
// only votes that may still finalize are of use; of the views that did not end, however many there are, the newest
// decide.
func (e *Engine) Holdings() Offer {
	o, w := Offer{View: e.view, Final: e.final}, &e.cfg.Weights
	unended, oldest := aweigh.View(0), e.view
	for i := len(e.order) - 1; i >= 0 && unended < e.cfg.Bounds.Ahead; i-- {
		if v := e.order[i]; v <= e.view {
			if oldest = v; !e.rounds[v].over() {
				unended++
			}
		}
	}
	for _, v := range e.order {
		if v > e.view {
			break
		}
		r := e.rounds[v]
		if v >= e.tip && v > e.final {
			r.offer(&o, Notarize, w, v >= oldest)
			r.offer(&o, Nullify, w, v >= oldest || e.cfg.Rules.Mode == Fast)
			if r.votes[Nullify] != nil {
				r.offerEvidence(&o)
			}
		}
		r.offer(&o, Finalize, w, v >= oldest)
	}
	if r := e.rounds[e.view]; r != nil && e.leads(r) && r.signed[e.vouch] {
		o.Propose = e.view
	}
	return o
}

// Patience returns how long this anchor, as the leader, can wait before it proposes and still be in time: half of the
// least time that others give it (see patience).
func (e *Engine) Patience() time.Duration {
	if n := e.wastedOwn(); n > 0 {
		return e.usual() >> min(n, 3) / 2
	}
	return min(e.cfg.Timing.View, e.cfg.Timing.MaxView) / 2
}
