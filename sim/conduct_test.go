package sim

import (
	"testing"
	"time"

	"github.com/aweigh/aweigh/quorum"
)

// deceived runs a world, and lets its watch count wrongly from an instant on: it must
// take what the nodes do for a breach.
func deceived(t *testing.T, s Scenario, invariant int, at time.Duration, deceive func(*World)) {
	t.Helper()
	w := newWorld(t, s)
	w.clientele()
	w.At(at, func() { deceive(w) })
	w.Run(w.Scenario.Stop, nil)
	if broken := w.watch.broken; len(broken) == 0 || broken[0].Invariant != Invariants[invariant].Name {
		t.Errorf("broken: %v", broken)
	}
}

func TestWrongStandingsAreSeen(t *testing.T) {
	s := Scenario{Network: Network{Anchors: 4, EpochBlocks: 12, Whole: 1}, Load: Load{Writes: 80}}
	first := func(w *World) *deeds { return w.watch.conduct.of(w.epochs[0].Roster.Anchors[0].Key.ID()) }
	for name, c := range map[string]struct {
		invariant int
		deceive   func(*World)
	}{
		"ballots in time": {Standings, func(w *World) { first(w).timely = 1 }},
		"views led":       {Standings, func(w *World) { first(w).idle += 1000 }},
		"who rests":       {Standings, func(w *World) { *first(w) = deeds{timely: first(w).timely, idle: 4} }},
		"blocks":          {Ending, func(w *World) { w.watch.conduct.blocks += 12 }},
		"proofs of fault": {Ending, func(w *World) { w.watch.conduct.proven(w.epochs[0].Roster.Anchors[0].Key.ID()) }},
	} {
		t.Run(name, func(t *testing.T) { deceived(t, s, c.invariant, time.Second, c.deceive) })
	}
}

func TestVotesAgainstTheRulesAreSeen(t *testing.T) {
	s := Scenario{Network: Network{Anchors: 4}, Load: Load{Writes: 80}}
	deceived(t, s, Ballots, time.Second, func(w *World) { clear(w.watch.headers) })
	deceived(t, s, Ballots, time.Second, func(w *World) {
		for s := range w.watch.ballots {
			if s.Kind == quorum.Notarize {
				delete(w.watch.ballots, s)
			}
		}
	})
}

func TestWrongDecisionsAreSeen(t *testing.T) {
	s := Scenario{Network: Network{Anchors: 4}, Load: Load{Acts: 120}}
	deceived(t, s, Access, 3*time.Second, func(w *World) { w.watch.decree.users++ })
	deceived(t, s, Access, 3*time.Second, func(w *World) { clear(w.watch.decree.objects) })
}
