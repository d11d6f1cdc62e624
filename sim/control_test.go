package sim

import (
	"context"
	"slices"
	"testing"
	"time"
)

// controls are scenarios whose faulty anchors weigh more than the budget, or
// whose bounds are too low, and the invariants that they must break: a watch
// that never saw anything proves nothing.
var controls = []struct {
	name     string
	scenario Scenario
	breaks   []int
}{
	{"fork", Scenario{
		Network: Network{Anchors: 4},
		Cast:    []Role{{Play: []string{"fork"}, Anchors: []int{2, 3}}},
		Faults:  Faults{Timed: []Fault{{Kind: "partition", Groups: [][]int{{0}, {1}}}}},
		Load:    Load{Clients: 2, Writes: 10, Reads: 10, Keys: 1},
	}, []int{Agreement, Certificates, Ballots, Validity, Lineage, Identity, Durable, Linearizable}},
	{"forks that meet", Scenario{
		Network: Network{Anchors: 4},
		Cast:    []Role{{Play: []string{"fork"}, Anchors: []int{2, 3}}},
		Faults:  Faults{Timed: []Fault{{Kind: "partition", For: 2 * time.Second, Groups: [][]int{{0}, {1}}}}},
	}, []int{Agreement}},
	{"equivocation", Scenario{
		Network: Network{Anchors: 4}, Cast: []Role{{Play: []string{"equivocate"}, Anchors: []int{2, 3}}},
		Load: Load{Writes: 60},
	}, []int{Ballots, Honour, Sound}},
	{"stale reads", Scenario{
		Network: Network{Anchors: 7}, Cast: []Role{{Play: []string{"stale"}, Anchors: []int{3, 4, 5, 6}}},
		Faults: Faults{Timed: []Fault{{Kind: "partition", Groups: [][]int{{0}, {1, 2}}}}},
		Load:   Load{Clients: 3, Writes: 30, Reads: 60, Keys: 1},
	}, []int{Linearizable}},
	{"garbage", Scenario{
		Network: Network{Anchors: 4}, Cast: []Role{{Play: []string{"garbage"}, Anchors: []int{2, 3}}},
	}, []int{Acceptance}},
	{"forgetful disks", Scenario{
		Network: Network{Anchors: 3, Mode: "crash"}, Load: Load{Writes: 100},
		Faults: Faults{Timed: []Fault{{Kind: "forgetful", At: time.Second, For: 4 * time.Second, Nodes: []int{0, 1, 2}}}},
	}, []int{Durable}},
	{"visitors among liars", Scenario{
		Network: Network{Anchors: 4}, Cast: []Role{{Play: []string{"replay"}, Anchors: []int{2, 3}, Rate: Whole}}, Load: Load{Visits: 200, Under: []string{"/a/"}},
	}, []int{Referred}},
	{"too much waits", Scenario{
		Cast: []Role{{Play: []string{"flood"}, Weight: "budget"}}, Bounds: Bounds{Waiting: 100},
	}, []int{Bounded}},
}

// TestEveryInvariantCanBreak shows for each invariant a world in which it does.
func TestEveryInvariantCanBreak(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range controls {
		t.Run(c.name, func(t *testing.T) {
			for _, i := range c.breaks {
				c.scenario.Expect = append(c.scenario.Expect, Invariants[i].Name)
			}
			broken := make(map[string]bool)
			for seed := uint64(1); seed <= 40 && len(broken) < len(c.breaks); seed++ {
				c.scenario.Seed = seed
				r, err := Run(context.Background(), c.scenario, Options{})
				if err != nil {
					t.Fatal(err)
				}
				for _, b := range r.Broken {
					if slices.Contains(c.scenario.Expect, b.Invariant) {
						broken[b.Invariant] = true
					}
					seen[b.Invariant] = true
				}
				if r.Faulty > r.Budget && broken[Invariants[Agreement].Name] && r.Verdicts[Accountability].Checks > 0 && r.Verdicts[Accountability].Broken > 0 {
					t.Errorf("seed %d: agreement broke, and too few can be named: %v", seed, r.Broken)
				}
			}
			for _, i := range c.breaks {
				if !broken[Invariants[i].Name] {
					t.Errorf("%s did not break", Invariants[i].Name)
				}
			}
		})
	}
}

// TestWhoBrokeAgreementIsNamed takes the evidence away after a fork: then too few
// can be named, and accountability must break.
func TestWhoBrokeAgreementIsNamed(t *testing.T) {
	for _, taken := range []bool{false, true} {
		s := controls[0].scenario
		s.Expect = []string{Invariants[Agreement].Name, Invariants[Accountability].Name}
		w := newWorld(t, s)
		w.clientele()
		w.plant()
		w.Run(w.Scenario.Stop, nil)
		if taken {
			clear(w.watch.evidence)
		}
		w.audit()
		v := w.watch.verdicts
		if v[Agreement].Broken == 0 || v[Accountability].Checks != 1 || (v[Accountability].Broken > 0) != taken {
			t.Fatalf("evidence taken away: %v; agreement %+v, accountability %+v", taken, v[Agreement], v[Accountability])
		}
		if !taken && len(w.watch.proven) != 2 {
			t.Errorf("anchors %v are named, want the two that lie", w.watch.proven)
		}
	}
}

// TestAnotherRosterIsSeen lets the watch expect another policy than the nodes have.
func TestAnotherRosterIsSeen(t *testing.T) {
	w := newWorld(t, Scenario{Network: Network{Anchors: 4}})
	other := *w.epochs[0]
	other.Policy.Rules.Finalize.MinAnchors++
	w.epochs[0] = &other
	if w.audit(); w.watch.verdicts[Rosters].Broken != 4 {
		t.Fatalf("%d of 4 nodes seen with other rules", w.watch.verdicts[Rosters].Broken)
	}
}
