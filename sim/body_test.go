package sim

import (
	"testing"
	"time"

	"github.com/aweigh/aweigh/sim/scenario"
)

// TestWhatANodeDiedBeforeTelling: of an epoch that a node began, and a block that it proposed, nothing else tells if it
// died in that step. The watch learns of both when the node starts again.
func TestWhatANodeDiedBeforeTelling(t *testing.T) {
	for name, n := range map[string]scenario.Network{ // order-free: each is checked alone
		"epochs of one anchor":        {Anchors: 1, EpochBlocks: 3},
		"own proposals in mode crash": {Anchors: 3, Mode: "crash"},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed <= 4; seed++ {
				w := newWorld(t, scenario.Scenario{Seed: seed, Network: n, Load: scenario.Load{Writes: 60}, Heal: &scenario.Heal{}})
				w.startClients()
				for _, n := range w.Nodes {
					n.Doomed = func(boundary int) bool {
						if boundary != 2 || !w.firing || w.chance.IntN(6) > 0 { // after the commit
							return false
						}
						w.at(200*time.Millisecond, n.Up)
						return true
					}
				}
				w.Run(w.Scenario.Stop, nil)
				w.heal()
				if x := w.startHealChecks(); x == nil || !w.Run(time.Minute, x.met) {
					t.Fatalf("seed %d: no progress after the crashes: %v", seed, w.watch.broken)
				}
				if w.audit(); len(w.watch.broken) > 0 {
					t.Fatalf("seed %d: %v", seed, w.watch.broken)
				}
			}
		})
	}
}
