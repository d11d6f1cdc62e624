package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
)

// TestLeasesOverQuotaAreSeen gives the watch smaller quotas than the nodes have, or no quota where nodes have charged
// leases.
func TestLeasesOverQuotaAreSeen(t *testing.T) {
	testshort.Skip(t)
	s := scenario.Scenario{
		Network: scenario.Network{Anchors: 4, Authors: []string{"all who=any leases=3 rate=1000"}}, Load: scenario.Load{Acts: 200, Leases: 2},
	}
	for name, change := range map[string]func(*scope.Author){
		"a smaller quota":   func(a *scope.Author) { a.Quota.Leases = 1 },
		"without the bound": func(a *scope.Author) { a.Quota.Leases = 0 },
		"nothing":           func(*scope.Author) {},
	} {
		w := newWorld(t, s)
		w.startClients()
		w.Run(3*time.Second, nil)
		w.Genesis.Policy.Authors = slices.Clone(w.Genesis.Policy.Authors)
		change(&w.Genesis.Policy.Authors[0])
		w.Run(w.Scenario.Stop, nil)
		if seen := w.watch.verdicts[Access].Broken > 0; seen != (name == "a smaller quota" || name == "without the bound") {
			t.Errorf("%s: %v", name, w.watch.broken)
		}
		if name == "nothing" && (w.watch.goals["lease charged"] == 0 || w.watch.goals["lease over quota"] == 0) {
			t.Errorf("goals: %v", w.watch.goals)
		}
	}
}
