package sim

import (
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/sim/scenario"
)

// TestGroupsOutliveTheirAnchors: of seven anchors, three die in turn. With four that weigh at a time the scope goes on;
// without standby it stops.
func TestGroupsOutliveTheirAnchors(t *testing.T) {
	testshort.Skip(t)
	for seed := uint64(1); seed <= uint64(testshort.Cases(1, 4, 20)); seed++ {
		for group, lasts := range map[string]bool{"4,replace=1": true, "4..5,replace=2": true, "": false, "7,replace=1": false} {
			s, err := scenario.FromLibrary("elastic")
			if err != nil {
				t.Fatal(err)
			}
			s.Seed, s.Network.Group, s.Shows = seed, group, nil
			r := mustRun(t, s)
			if why := r.Failure(); why != "" {
				t.Errorf("seed %d, group %q: %s", seed, group, why)
			}
			if at := last(r).At; (at > 26*time.Second) != lasts {
				t.Errorf("seed %d, group %q: the last epoch began after %v; the third anchor died after 22s", seed, group, at)
			}
		}
	}
}

// TestGroupsAreAsLargeAsTheLoadAsks: clients that write as fast as they can make a group grow, and never beyond what
// the policy allows; with less to do it shrinks, by one anchor
// in an epoch.
func TestGroupsAreAsLargeAsTheLoadAsks(t *testing.T) {
	testshort.Skip(t)
	r := mustRun(t, scenario.Scenario{
		Network: scenario.Network{Anchors: 9, Group: "4..7,load=3", EpochBlocks: 8, EpochTime: time.Second},
		Links:   scenario.Links{Model: "constant", Delay: 5 * time.Millisecond},
		Load:    scenario.Load{Clients: 12, Writes: 300, Reads: 1}, Stop: 20 * time.Second, Heal: &scenario.Heal{},
	})
	if why := r.Failure(); why != "" {
		t.Fatal(why)
	}
	most, before := 0, 4
	for _, e := range r.Epochs {
		if e.Heads > 7 || e.Heads < 4 || e.Heads < before-1 {
			t.Errorf("epoch %d: %d anchors weigh, after %d", e.Number, e.Heads, before)
		}
		most, before = max(most, e.Heads), e.Heads
	}
	if most < 6 {
		t.Errorf("at most %d anchors weighed in %d epochs", most, len(r.Epochs))
	}
}
