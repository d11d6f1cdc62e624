package sim

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
	"github.com/aweigh/aweigh/votes"
)

// controls are scenarios whose faulty anchors weigh more than the budget, or
// whose bounds are too low, and the invariants that they must break: a watch
// that never reports a breach proves nothing.
var controls = []struct {
	name     string
	scenario scenario.Scenario
	breaks   []int
}{
	{"fork", scenario.Scenario{
		Network: scenario.Network{Anchors: 4},
		Roles:   []scenario.Role{{Attacks: []string{"fork"}, Anchors: []int{2, 3}}},
		Faults:  scenario.Faults{Timed: []scenario.Fault{{Kind: "partition", Groups: [][]int{{0}, {1}}}}},
		Load:    scenario.Load{Clients: 2, Writes: 10, Reads: 10, Keys: 1},
	}, []int{Agreement, Certificates, Ballots, Validity, Lineage, Identity, Durable, Linearizable}},
	{"forks that meet", scenario.Scenario{
		Network: scenario.Network{Anchors: 4},
		Roles:   []scenario.Role{{Attacks: []string{"fork"}, Anchors: []int{2, 3}}},
		Faults:  scenario.Faults{Timed: []scenario.Fault{{Kind: "partition", For: 2 * time.Second, Groups: [][]int{{0}, {1}}}}},
	}, []int{Agreement}},
	{"equivocation", scenario.Scenario{
		Network: scenario.Network{Anchors: 4}, Roles: []scenario.Role{{Attacks: []string{"equivocate"}, Anchors: []int{2, 3}}},
		Load: scenario.Load{Writes: 60},
	}, []int{Ballots, Honour, Sound}},
	{"stale reads", scenario.Scenario{
		Network: scenario.Network{Anchors: 7}, Roles: []scenario.Role{{Attacks: []string{"stale"}, Anchors: []int{3, 4, 5, 6}}},
		Faults: scenario.Faults{Timed: []scenario.Fault{{Kind: "partition", Groups: [][]int{{0}, {1, 2}}}}},
		Load:   scenario.Load{Clients: 3, Writes: 30, Reads: 60, Keys: 1},
	}, []int{Linearizable}},
	{"garbage", scenario.Scenario{
		Network: scenario.Network{Anchors: 4}, Roles: []scenario.Role{{Attacks: []string{"garbage"}, Anchors: []int{2, 3}}},
	}, []int{Acceptance}},
	{"forgetful disks", scenario.Scenario{
		Network: scenario.Network{Anchors: 3, Mode: "crash"}, Load: scenario.Load{Writes: 100},
		Faults: scenario.Faults{Timed: []scenario.Fault{{Kind: "forgetful", At: time.Second, For: 4 * time.Second, Nodes: []int{0, 1, 2}}}},
	}, []int{Durable}},
	{"visitors among liars", scenario.Scenario{
		Network: scenario.Network{Anchors: 4}, Roles: []scenario.Role{{Attacks: []string{"replay"}, Anchors: []int{2, 3}, Rate: scenario.Whole}}, Load: scenario.Load{Visits: 200, Under: []string{"/a/"}},
	}, []int{Referred}},
	{"too much waits", scenario.Scenario{
		Roles: []scenario.Role{{Attacks: []string{"flood"}, Weight: "budget"}}, Bounds: scenario.Bounds{Waiting: 100},
	}, []int{Bounded}},
}

// TestEveryInvariantCanBreak shows for each invariant a world in which it does.
func TestEveryInvariantCanBreak(t *testing.T) {
	for _, c := range controls {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "forgetful disks" || c.name == "visitors among liars" { // they take longer than all others together
				testshort.Skip(t)
			}
			for _, i := range c.breaks {
				c.scenario.Expect = append(c.scenario.Expect, scenario.Invariants[i].Name)
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
				}
				if r.Faulty > r.Budget && broken[scenario.Invariants[Agreement].Name] && r.Verdicts[Accountability].Checks > 0 && r.Verdicts[Accountability].Broken > 0 {
					t.Errorf("seed %d: agreement broke, and too few can be named: %v", seed, r.Broken)
				}
			}
			for _, i := range c.breaks {
				if !broken[scenario.Invariants[i].Name] {
					t.Errorf("%s did not break", scenario.Invariants[i].Name)
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
		s.Expect = []string{scenario.Invariants[Agreement].Name, scenario.Invariants[Accountability].Name}
		w := newWorld(t, s)
		w.startClients()
		w.scheduleFaults()
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

// TestAnotherRosterIsSeen: the watch expects another policy than the nodes have.
func TestAnotherRosterIsSeen(t *testing.T) {
	w := newWorld(t, scenario.Scenario{Network: scenario.Network{Anchors: 4}})
	other := *w.epochs[0]
	other.Policy.Rules.Finalize.MinAnchors++
	w.epochs[0] = &other
	if w.audit(); w.watch.verdicts[Rosters].Broken != 4 {
		t.Fatalf("%d of 4 nodes seen with other rules", w.watch.verdicts[Rosters].Broken)
	}
}

// TestARefusalWithoutAClassIsSeen shows the watch errors without a class, for which an honest node and one that lies
// refuse a liar's frame.
func TestARefusalWithoutAClassIsSeen(t *testing.T) {
	w := newWorld(t, scenario.Scenario{Network: scenario.Network{Anchors: 4}, Roles: []scenario.Role{{Attacks: []string{"garbage"}, Anchors: []int{3}}}})
	honest, liar := w.Nodes[0], w.Nodes[3]
	broken := func() uint64 { return w.watch.verdicts[Classified].Broken }
	for _, err := range []error{machine.ErrFrame, scope.ErrInvalid, votes.ErrForged} {
		w.watch.refused(liar, honest, &frame{raw: []byte("?")}, err)
		w.watch.noted(honest, machine.DroppedFrame(liar.Peer, err))
	}
	unlisted := errors.New("unlisted")
	w.watch.refused(honest, liar, &frame{raw: []byte("?")}, unlisted)
	w.watch.noted(liar, machine.DroppedFrame(honest.Peer, unlisted))
	if v := w.watch.verdicts[Classified]; v.Broken != 0 || v.Checks != 6 {
		t.Fatalf("six refusals of known classes: %+v", v)
	}
	w.watch.refused(liar, honest, &frame{raw: []byte("?")}, unlisted)
	if broken() != 1 {
		t.Error("the checks of a frame fail without a class, and the watch does not see it")
	}
	w.watch.noted(honest, machine.DroppedFrame(liar.Peer, unlisted))
	if broken() != 2 {
		t.Error("the machine refuses content without a class, and the watch does not see it")
	}
}
