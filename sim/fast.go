package sim

import (
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
		return weight >= rules.FastBounds(w).Final
	}
	return false
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
