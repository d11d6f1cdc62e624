package sweep

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/sim/scenario"
)

// large is a scenario of which little matters.
func large() scenario.Scenario {
	s := scenario.Scenario{
		Name: "large", Seed: 9, Stop: 20 * time.Second, Heal: &scenario.Heal{Within: time.Minute},
		Network: scenario.Network{Anchors: 13, Observers: 2, Trust: make([]scenario.Share, 13)},
		Links:   scenario.Links{Model: "lognormal", Delay: 3 * time.Millisecond, Spread: time.Millisecond},
		Roles: []scenario.Role{
			{Attacks: []string{"mute"}, Anchors: []int{0}},
			{Attacks: []string{"delay", "equivocate", "flood"}, Anchors: []int{2, 8, 11}, Victims: []int{1, 3}, From: time.Second},
		},
		Faults: scenario.Faults{Loss: scenario.Whole / 10, Crash: scenario.Whole / 1000, Timed: []scenario.Fault{
			{Kind: "cut", At: time.Second, For: 3 * time.Second, Nodes: []int{4, 13}},
			{Kind: "crash", At: 7 * time.Second, For: 4 * time.Second, Nodes: []int{8, 5, 14}},
			{Kind: "partition", At: 2 * time.Second, Groups: [][]int{{1, 2}, {3, 4, 5}}},
		}},
		Load: scenario.Load{Clients: 5, Writes: 90, Give: 2 * time.Second},
	}
	for i := range s.Network.Trust {
		s.Network.Trust[i] = scenario.Share(100_000 + 1000*i)
	}
	return s
}

// forks is a failure that needs one equivocator, a crash of the anchor whose
// trust is 105,000 while it lies, two anchors besides, and eleven writes.
func forks(_ context.Context, s scenario.Scenario) (string, bool) {
	full := s.WithDefaults()
	crash := false
	for _, f := range s.Faults.Timed {
		for _, n := range f.Nodes {
			crash = crash || f.Kind == "crash" && n < len(s.Network.Trust) && s.Network.Trust[n] == 105_000
		}
	}
	lies := slices.ContainsFunc(s.Roles, func(r scenario.Role) bool { return slices.Contains(r.Attacks, "equivocate") })
	switch {
	case full.Network.Anchors < 4:
		return "agreement, beyond the fault budget", lies
	case lies && crash && full.Load.Writes >= 11:
		return "agreement", true
	}
	return "no progress", s.Heal != nil
}

func TestShrinkLeavesWhatAFailureNeeds(t *testing.T) {
	before := large()
	tried := 0
	s, err := Shrink(t.Context(), before, forks, func(n int, best scenario.Scenario) {
		if way, ok := forks(t.Context(), best); !ok || way != "agreement" || best.Check() != nil {
			t.Errorf("after %d tries the best fails by %q: %s", n, way, best.Encode())
		}
		tried = n
	})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(before, large()) {
		t.Error("the scenario given was changed")
	}
	if tried > shrinkTries {
		t.Errorf("%d tries", tried)
	}
	want := scenario.Scenario{
		Name: "large", Seed: 9, Stop: 100 * time.Millisecond, Links: scenario.Links{Model: "constant"},
		Network: scenario.Network{Anchors: 4, Trust: s.Network.Trust},
		Roles:   s.Roles,
		Faults:  scenario.Faults{Timed: []scenario.Fault{{Kind: "crash", Nodes: []int{slices.Index(s.Network.Trust, 105_000)}}}},
		Load:    scenario.Load{Clients: 1, Writes: 11, Reads: 1, Keys: 1},
	}
	if !bytes.Equal(s.Encode(), want.Encode()) || len(s.Roles) != 1 || !slices.Equal(s.Roles[0].Attacks, []string{"equivocate"}) || len(s.Roles[0].Anchors) > 1 {
		t.Errorf("after %d tries:\n%s\nwant\n%s", tried, s.Encode(), want.Encode())
	}
	again, err := Shrink(t.Context(), large(), forks, nil)
	if err != nil || !reflect.DeepEqual(again, s) {
		t.Errorf("the second time: %v\n%s", err, again.Encode())
	}
}

func TestShrinkKeepsTheHealingThatFails(t *testing.T) {
	s, err := Shrink(t.Context(), large(), func(_ context.Context, s scenario.Scenario) (string, bool) { return "no progress", s.Heal != nil }, nil)
	want := scenario.Scenario{
		Name: "large", Seed: 9, Stop: 100 * time.Millisecond, Heal: &scenario.Heal{}, Links: scenario.Links{Model: "constant"},
		Network: scenario.Network{Anchors: 1}, Load: scenario.Load{Clients: 1, Writes: 1, Reads: 1, Keys: 1},
	}
	if err != nil || !bytes.Equal(s.Encode(), want.Encode()) {
		t.Errorf("%v\n%s\nwant\n%s", err, s.Encode(), want.Encode())
	}
}

func TestShrinkTakesAtMostSoManyTries(t *testing.T) {
	tried := 0
	_, err := Shrink(t.Context(), large(), func(_ context.Context, s scenario.Scenario) (string, bool) {
		tried++
		return "always, but never less", reflect.DeepEqual(s, large())
	}, nil)
	if err != nil || tried > 1+shrinkTries {
		t.Errorf("%d tries, %v", tried, err)
	}
}

func TestShrinkRefusesWhatPasses(t *testing.T) {
	_, err := Shrink(t.Context(), large(), func(context.Context, scenario.Scenario) (string, bool) { return "", false }, nil)
	if !errors.Is(err, ErrPasses) {
		t.Error(err)
	}
}

func TestStoppedShrinkKeepsTheBest(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	s, err := Shrink(ctx, large(), forks, func(tried int, best scenario.Scenario) {
		if len(best.Roles) == 1 {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) || len(s.Roles) != 1 || s.Network.Anchors != 13 {
		t.Errorf("%v\n%s", err, s.Encode())
	}
}

func TestNodesThatStayKeepTheirParts(t *testing.T) {
	s := without(large(), 5, 4) // 5 to 8
	if s.Network.Anchors != 9 || s.Network.Observers != 2 || len(s.Network.Trust) != 9 || s.Network.Trust[5] != 109_000 {
		t.Errorf("network %+v", s.Network)
	}
	if got := s.Roles[1].Anchors; !slices.Equal(got, []int{2, 7}) {
		t.Errorf("liars %v", got)
	}
	if f := s.Faults.Timed; !slices.Equal(f[0].Nodes, []int{4, 9}) || !slices.Equal(f[1].Nodes, []int{10}) || !reflect.DeepEqual(f[2].Groups, [][]int{{1, 2}, {3, 4}}) {
		t.Errorf("faults %+v", f)
	}
	if s := without(large(), 0, 1); len(s.Roles) != 1 {
		t.Errorf("cast %+v", s.Roles)
	}
	if s := without(large(), 0, 13); !reflect.DeepEqual(s, large()) {
		t.Errorf("without any anchor: %s", s.Encode())
	}
	if s := without(large(), 13, 2); s.Network.Observers != 0 || len(s.Network.Trust) != 13 || !slices.Equal(s.Faults.Timed[1].Nodes, []int{8, 5}) {
		t.Errorf("without observers: %s", s.Encode())
	}
}

func TestFailuresBeyondTheBudgetAreOthers(t *testing.T) {
	breach := []sim.Breach{{Invariant: "durable"}, {Invariant: "agreement"}}
	for _, c := range []struct {
		r     sim.Result
		way   string
		fails bool
	}{
		{sim.Result{}, "no progress", false},
		{sim.Result{Healed: sim.Healing{Possible: true}}, "no progress", true},
		{sim.Result{Broken: breach}, "durable", true},
		{sim.Result{Broken: breach, Faulty: 3, Budget: 2}, "durable, beyond the fault budget", true},
		{sim.Result{Broken: breach, Faulty: 3, Budget: 2, Scenario: scenario.Scenario{Expect: []string{"agreement"}}}, "agreement, beyond the fault budget", true},
		{sim.Result{Broken: breach, Faulty: 3, Budget: 2, Scenario: scenario.Scenario{Expect: []string{"agreement", "durable"}}}, "agreement, beyond the fault budget", true},
		{sim.Result{Broken: breach[:1], Faulty: 3, Budget: 2, Scenario: scenario.Scenario{Expect: []string{"agreement", "durable"}}}, "durable, beyond the fault budget", true},
		{sim.Result{Broken: breach, Faulty: 3, Budget: 2, Scenario: scenario.Scenario{Expect: []string{"honour"}}}, "", false},
	} {
		if way, fails := wayOf(&c.r); way != c.way || fails != c.fails {
			t.Errorf("%+v: %q, %v", c.r, way, fails)
		}
	}
}

// TestShrinkKeepsToTheInvariantNamed: a scenario that breaks another, first or in its
// place, is not taken; further expectations of a scenario are dropped.
func TestShrinkKeepsToTheInvariantNamed(t *testing.T) {
	testshort.Skip(t)
	s, err := scenario.FromLibrary("over-fork")
	if err != nil {
		t.Fatal(err)
	}
	s.Load.Writes, s.Stop = 20, 10*time.Second
	for _, name := range []string{"agreement", "certificates"} {
		aimed, fails := FailsBy(name, s)
		tried := 0
		small, err := Shrink(t.Context(), aimed, func(ctx context.Context, s scenario.Scenario) (string, bool) {
			if tried++; tried > 60 {
				return "", false
			}
			return fails(ctx, s)
		}, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r, err := sim.Run(t.Context(), small, sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(small.Expect, []string{name}) || r.Failed() || r.Culprit() == nil || r.Culprit().Invariant != name {
			t.Errorf("%s: what is left expects %v, breaks %v and fails by %q", name, small.Expect, r.Culprit(), r.Failure())
		}
	}
	breaks := func(first string) scenario.Scenario { // what others would make of it
		return scenario.Scenario{Network: scenario.Network{Anchors: 4}, Roles: []scenario.Role{{Attacks: []string{"garbage"}, Anchors: []int{2, 3}}}, Name: first}
	}
	within, fails := FailsBy("agreement", breaks("garbage"))
	if way, ok := fails(t.Context(), within); ok {
		t.Errorf("a scenario that breaks no agreement counts as one, by %q", way)
	}
	if _, acceptance := FailsBy("acceptance", within); acceptance == nil {
		t.Error("no judge")
	} else if way, ok := acceptance(t.Context(), within); !ok {
		t.Errorf("a scenario that breaks acceptance first does not count: %q", way)
	}
}

// TestShrinkResetsBounds: those that a failure does not need go.
func TestShrinkResetsBounds(t *testing.T) {
	var s scenario.Scenario
	for seed := uint64(1); s.Bounds.Node == (machine.Bounds{}) || s.Bounds.Scope == (scope.Bounds{}); seed++ {
		s.Bounds = scenario.Draw(seed).Bounds
		s.Bounds.At = nil
	}
	s.Bounds.Scope.DueLeast = 1
	needs := func(s scenario.Scenario) bool { return s.Bounds.Scope.DueLeast == 1 }
	small, err := Shrink(t.Context(), s, func(_ context.Context, s scenario.Scenario) (string, bool) { return "needs it", needs(s) }, nil)
	if err != nil || !needs(small) {
		t.Fatal(err)
	}
	if left := (scenario.Bounds{Scope: scope.Bounds{DueLeast: 1}}); !reflect.DeepEqual(small.Bounds, left) {
		t.Errorf("%+v is left", small.Bounds)
	}
}
