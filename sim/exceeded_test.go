package sim

import (
	"testing"
	"time"
)

// TestExceededStaysUndone: liars send again the bundles that exceeded what they declare, when they would fit. Clients that
// were told that nothing was done never read what they asked for.
func TestExceededStaysUndone(t *testing.T) {
	reached := uint64(0)
	for seed := uint64(1); seed <= 3; seed++ {
		r := mustRun(t, Scenario{
			Seed: seed, Network: Network{Anchors: 5}, Cast: []Role{{Play: []string{"replay"}, Weight: "budget", Rate: Whole}},
			Load: Load{Clients: 4, Writes: 5, Reads: 80, Keys: 2, Dear: 40}, Stop: 12 * time.Second, Heal: &Heal{},
		})
		for _, g := range r.Goals {
			if g.Name == "exceeded" {
				reached += g.Count
			}
		}
		if r.Failed() {
			t.Errorf("seed %d: %s", seed, r.Failure())
		}
	}
	if reached == 0 {
		t.Error("no write exceeded")
	}
}
