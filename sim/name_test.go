package sim

import (
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/sim/scenario"
)

// TestAliasesNameOneObjectWhileClientsQuarrel runs clients that bind, move and
// unbind the same aliases, in worlds that reach what there is to reach.
func TestAliasesNameOneObjectWhileClientsQuarrel(t *testing.T) {
	reached := make(map[string]uint64)
	for seed := uint64(1); seed <= testshort.Cases[uint64](2, 3, 4); seed++ {
		r := mustRun(t, scenario.Scenario{
			Seed: seed, Network: scenario.Network{Anchors: 4, Observers: 1, EpochBlocks: 20}, Faults: scenario.Faults{Loss: 20_000},
			Load: scenario.Load{Clients: 6, Writes: 10, Reads: 10, Names: 150}, Stop: 6 * time.Second, Heal: &scenario.Heal{},
		})
		for _, g := range r.Goals {
			reached[g.Name] += g.Count
		}
		if r.Failed() {
			t.Errorf("seed %d: %s", seed, r.Failure())
		}
	}
	if reached["further alias"] == 0 || reached["moved alias"] == 0 {
		t.Errorf("reached %v", reached)
	}
}

// TestAnotherObjectUnderAnAliasIsSeen changes earlier answers of nodes by hand.
func TestAnotherObjectUnderAnAliasIsSeen(t *testing.T) {
	w := newWorld(t, scenario.Scenario{Network: scenario.Network{Anchors: 4}, Load: scenario.Load{Names: 1}})
	w.writes(t, "a", 3, w.Nodes...)
	w.Run(time.Minute, nil)
	was := w.watch.verdicts[Identity].Broken
	height := w.Nodes[0].state().Height()
	w.watch.called[called{height, w.aliasName(2)}] = aweigh.NewUID(aweigh.Hash{1}, 0)
	if w.watch.names(w.Nodes[0]); was != 0 || w.watch.verdicts[Identity].Broken != 1 {
		t.Fatalf("%d breaches seen, and %d before", w.watch.verdicts[Identity].Broken, was)
	}
}
