package referral

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/trust"
)

// LeastTrust is the trust below which an anchor is asked after all others.
const LeastTrust = trust.MaxScore / 10

// Preference is why an anchor of a scope is asked before or after another one: how far it is, how much trust it has
// earned, and how often it failed.
type Preference struct {
	Anchor *scope.Anchor
	Trust  trust.Score   // when the epoch began
	Took   time.Duration // of its answers, smoothed; 0: none is known
	Fails  int           // since its last answer
}

// prefers returns what the scope knows of an anchor.
func (f *Scope) prefers(a *scope.Anchor) Preference {
	m := f.seen[a.Key.ID()]
	return Preference{Anchor: a, Trust: a.Score, Took: m.took, Fails: m.fails}
}

// failed is by how many classes of latency a failure makes an anchor look farther away: as if it took a second.
const failed = 10

// Class is the anchor's distance: 1 for answers within a millisecond or if none is known, and 1 more for each doubling;
// each failure in a row counts as a second does.
func (p *Preference) Class() int {
	return 1 + bits.Len64(uint64(p.Took/time.Millisecond)) + failed*min(p.Fails, 16)
}

// Cost is by what anchors are ranked, the lowest first, and alike by the time of their answers: the distance, times 20
// for an anchor without trust down to 10 for one with full trust.
func (p *Preference) Cost() int64 {
	return int64(p.Class()) * (20 - int64(min(p.Trust, trust.MaxScore)/(trust.MaxScore/10)))
}

// Last reports whether the anchor has too little trust to be asked before others.
func (p *Preference) Last() bool { return p.Trust < LeastTrust }

// order returns the anchors with weight in the order in which they are asked.
func (f *Scope) order() (all []Preference) {
	for i := range f.epoch.Roster.Anchors {
		if a := &f.epoch.Roster.Anchors[i]; f.epoch.Roster.Weights.Of(a.Key.ID()) > 0 {
			all = append(all, f.prefers(a))
		}
	}
	slices.SortStableFunc(all, func(a, b Preference) int {
		switch {
		case a.Last() == b.Last():
			return cmp.Or(cmp.Compare(a.Cost(), b.Cost()), cmp.Compare(a.Took, b.Took))
		case a.Last():
			return 1
		}
		return -1
	})
	return all
}

// Asked is one question of an inquiry to one anchor.
type Asked struct {
	Why    Preference
	Answer time.Duration // that its answer took, or its failure
	Err    error         // nil: it answered, and that counts; ErrOutrun: not in time
	round  int
}

// Asked returns which anchors were asked, in order, and why in that one. It is empty if the answer was in the cache.
func (q *Inquiry) Asked() []Asked { return q.trail }

// noted notes the answer to a query.
func (q *Inquiry) noted(x Query, took time.Duration, err error) {
	for i := range q.trail {
		if t := &q.trail[i]; t.round == x.round && t.Why.Anchor == x.Anchor {
			t.Answer, t.Err = took, err
		}
	}
}

// outvotes notes that an anchor's answer differs from the one that counts.
func (q *Inquiry) outvotes(id aweigh.AnchorID) {
	for i := range q.trail {
		if t := &q.trail[i]; t.round == q.round && t.Why.Anchor.Key.ID() == id {
			t.Err = errDiffer
		}
	}
}
