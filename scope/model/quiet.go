package model

import (
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// warmth is how much of a scope changes.
type warmth struct {
	changes uint64         // in the epoch so far
	at      aweigh.Instant // when the last epoch ended in which half of the rate of a busy prefix was reached
}

// cools counts the changes of a block, and checks, where a node says at the end of an epoch that the scope is quiet,
// that it can be. What else may keep a scope from that is left to nodes.
func (m *Model) cools(changes uint64) {
	x := m.block
	e, now, w := x.told.Epoch, x.Header.Time, &m.warmth
	if x.Header.Next.IsZero() || x.Header.Epoch != e.Number {
		w.changes += changes
		return
	}
	t := &e.Policy.Topology
	took := now.Sub(e.Time)
	if x.told.Quiet && (t.Fold != scope.ConductAct || m.genesis.Notice() == 0 || len(m.view.given) > 0 || w.reaches(t, took) ||
		now.Sub(max(w.at, m.genesis.Time)) < t.Quiet) {
		x.differ = append(x.differ, fmt.Sprintf("it is quiet after %d changes in %v, the last epoch that was not having ended at %d", w.changes, took, w.at))
	}
	if w.changes += changes; t.Fold == scope.ConductOff || w.reaches(t, took) {
		w.at = now
	}
	w.changes = 0
}

// reaches reports whether the changes are half of what is busy in so long, or more.
func (w *warmth) reaches(t *scope.Topology, took time.Duration) bool {
	return 2*w.changes >= max(uint64(t.Rate)*uint64(max(took, time.Second)/time.Millisecond)/1000, 1)
}
