package sim

import (
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/sim/scenario"
)

// TestExceededStaysUndone: liars send again the bundles that exceeded what they declare, when they would fit. Clients
// that got the answer that nothing was done never read their writes.
func TestExceededStaysUndone(t *testing.T) {
	testshort.SkipUnlessLong(t)
	reached := uint64(0)
	for seed := uint64(1); seed <= 3; seed++ {
		r := mustRun(t, scenario.Scenario{
			Seed: seed, Network: scenario.Network{Anchors: 5}, Roles: []scenario.Role{{Attacks: []string{"replay"}, Weight: "budget", Rate: scenario.Whole}},
			Load: scenario.Load{Clients: 4, Writes: 5, Reads: 80, Keys: 2, Dear: 40}, Stop: 12 * time.Second, Heal: &scenario.Heal{},
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
