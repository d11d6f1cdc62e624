package sim

import (
	"maps"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// decides reports whether signatures of so much weight on a subject make its block final in an epoch: votes to finalize
// it, or in mode fast enough votes to notarize it.
func decides(e *scope.Epoch, s quorum.Subject, weight uint64) bool {
	rules, w := e.Policy.Rules, e.Roster.Weights
	switch {
	case s.Kind == quorum.Finalize:
		return weight >= rules.Finalize.Threshold(w.Total())
	case s.Kind == quorum.Notarize && rules.Mode == quorum.Fast:
		return weight >= oneRound(rules, w)
	}
	return false
}

// oneRound is the least weight of a notarization that makes its block final in mode fast (P56), reckoned apart from
// quorum.FastBounds: by the sums that sets of anchors weigh.
func oneRound(rules quorum.Rules, w quorum.Weights) uint64 {
	total, least := w.Total(), w.Total()
	budget, sums := (total-1)/3, map[uint64]bool{0: true}
	lying := budget
	for s := range w.All() {
		least = min(least, s.Weight)
	}
	if w.Len() <= 12 { // among more anchors, the budget counts
		lying = 0
		for s := range w.All() {
			for _, sum := range slices.Sorted(maps.Keys(sums)) {
				if sum += s.Weight; sum <= budget {
					sums[sum], lying = true, max(lying, sum)
				}
			}
		}
	}
	silent := min(lying, (total-3*lying+2*least-1)/2)
	return max(total-silent, rules.Notarize.Threshold(total), rules.Finalize.Threshold(total))
}

// decider returns the kind of a certificate that shows that a block is final: what it says, where the mode takes it.
func (w *World) decider(h scope.Header, c quorum.Certificate) quorum.Kind {
	if int(h.Epoch) >= len(w.epochs) {
		return quorum.Finalize
	}
	e := w.epochs[h.Epoch]
	if t := c.Tally(e.Roster.Weights); decides(e, c.Subject, t.Weight()) {
		return c.Subject.Kind
	}
	return quorum.Finalize
}

// attends returns the kind of votes by which anchors attend blocks.
func (w *World) attends() quorum.Kind { return w.rules.Mode.Attends() }

// giveUp returns the subject of a member's ballot to nullify a view. In mode fast it names any block, or none.
func (l *liar) giveUp(v aweigh.View) quorum.Subject {
	s := quorum.Subject{Kind: quorum.Nullify, View: v}
	if l.w.rules.Mode != quorum.Fast {
		return s
	}
	s.Block = quorum.NoBlock
	if two, ok := l.twoFor[v]; ok && l.rand.IntN(2) == 0 {
		s.Block = two[l.rand.IntN(len(two))]
	} else if b := l.w.watch.proposals[place{l.domain().Epoch, v}]; !b.IsZero() && l.rand.IntN(2) == 0 {
		s.Block = b
	}
	return s
}
