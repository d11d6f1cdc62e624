package sim

import (
	"testing"
	"time"

	"github.com/aweigh/aweigh/quorum/monitor"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
)

// deceived runs a world whose watch counts wrongly from an instant on: the watch must
// report a breach.
func deceived(t *testing.T, s scenario.Scenario, invariant int, at time.Duration, deceive func(*World)) {
	t.Helper()
	w := newWorld(t, s)
	w.startClients()
	w.at(at, func() { deceive(w) })
	w.Run(w.Scenario.Stop, nil)
	if broken := w.watch.broken; len(broken) == 0 || broken[0].Invariant != scenario.Invariants[invariant].Name {
		t.Errorf("broken: %v", broken)
	}
}

func TestWrongStandingsAreSeen(t *testing.T) {
	s := scenario.Scenario{Network: scenario.Network{Anchors: 4, EpochBlocks: 12, Whole: 1}, Load: scenario.Load{Writes: 80}}
	first := func(w *World) *conductCounts { return w.watch.conduct.of(w.epochs[0].Roster.Anchors[0].Key.ID()) }
	for name, c := range map[string]struct {
		invariant int
		deceive   func(*World)
	}{
		"ballots in time": {Standings, func(w *World) { first(w).timely = 1 }},
		"views led":       {Standings, func(w *World) { first(w).nullified += 1000 }},
		"who leads":       {Standings, func(w *World) { *first(w) = conductCounts{timely: first(w).timely, nullified: 4} }},
		"blocks":          {Ending, func(w *World) { w.watch.conduct.blocks += 12 }},
		"proofs of fault": {Ending, func(w *World) { w.watch.conduct.proven(w.epochs[0].Roster.Anchors[0].Key.ID()) }},
	} {
		t.Run(name, func(t *testing.T) { deceived(t, s, c.invariant, time.Second, c.deceive) })
	}
}

func TestVotesAgainstTheRulesAreSeen(t *testing.T) {
	s := scenario.Scenario{Network: scenario.Network{Anchors: 4}, Load: scenario.Load{Writes: 80}}
	again := func(w *World) *monitor.Epoch {
		e := w.epochs[0]
		return monitor.New(monitor.Config{Weights: e.Roster.Weights, Rules: e.Policy.Rules, Root: e.Root})
	}
	for name, deceive := range map[string]func(*World){
		"votes of all are forgotten": func(w *World) { w.watch.follower.epochs[0] = again(w) },
		"one has not listened":       func(w *World) { w.watch.follower.epochs[0].Restart(w.Nodes[1].key.Public().ID()) },
		"one closed its views":       func(w *World) { w.watch.follower.epochs[0].Close(w.Nodes[1].key.Public().ID(), 1000) },
		"one is in a later epoch":    func(w *World) { w.watch.follower.epochs[0].Leave(w.Nodes[1].key.Public().ID()) },
	} {
		t.Run(name, func(t *testing.T) { deceived(t, s, Ballots, time.Second, deceive) })
	}
}

func TestWrongDecisionsAreSeen(t *testing.T) {
	s := scenario.Scenario{Network: scenario.Network{Anchors: 4}, Load: scenario.Load{Acts: 120}}
	other := func(change func(e *scope.Epoch)) func(w *World) {
		return func(w *World) {
			e := *w.epochs[0]
			change(&e)
			w.epochs[0] = &e
		}
	}
	deceived(t, s, Access, 3*time.Second, other(func(e *scope.Epoch) { e.Policy.Actions = nil }))
	deceived(t, s, Access, 3*time.Second, other(func(e *scope.Epoch) { e.Roster.Anchors = nil }))
}
