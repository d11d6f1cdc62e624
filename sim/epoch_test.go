package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/sim/scenario"
	"github.com/aweigh/aweigh/trust"
)

// TestEpochsEndUnderFire runs worlds whose epochs hold few blocks: all stay in
// agreement on every roster, and go on.
func TestEpochsEndUnderFire(t *testing.T) {
	testshort.SkipUnlessLong(t)
	changes, worlds := 0, testshort.Cases(0, 8, 20)
	for seed := range uint64(worlds) {
		s := scenario.Draw(seed)
		s.Network.EpochBlocks = 3 + int(seed%9)
		s.Network.EpochTime = time.Second + time.Duration(seed)*100*time.Millisecond
		r := mustRun(t, s)
		if why := r.Failure(); why != "" {
			t.Errorf("seed %d: %s", seed, why)
		}
		changes += len(r.Epochs) - 1
	}
	if changes < worlds {
		t.Errorf("%d epochs changed in %d worlds", changes, worlds)
	}
}

// TestEpochsEndUnseen: in a calm world clients wait no longer at the end of an
// epoch than three views take, even when a new anchor joins. A view takes two
// delays, and finality a third; its leader waits up to 20 ms for more to propose.
func TestEpochsEndUnseen(t *testing.T) {
	testshort.Skip(t)
	const delay = 5 * time.Millisecond
	const view = 2*delay + 20*time.Millisecond
	epochs, seeds := 0, testshort.Cases(0, 3, 6)
	for seed := uint64(1); seed <= uint64(seeds); seed++ {
		r := mustRun(t, scenario.Scenario{
			Seed: seed, Network: scenario.Network{Anchors: 7, Observers: 1, EpochBlocks: 6, Whole: 2}, Links: scenario.Links{Model: "constant", Delay: delay},
			Govern: []scenario.Motion{{Kind: "admit", At: time.Second, Node: 7}},
			Load:   scenario.Load{Clients: 4, Writes: 120, Reads: 1}, Stop: 3 * time.Second, Heal: &scenario.Heal{},
		})
		if r.Failed() {
			t.Fatalf("seed %d: %s", seed, r.Failure())
		}
		epochs += len(r.Pauses)
		settled := r.Pauses[1:] // a node that just started listens for a while first (P9)
		if worst := slices.Max(settled); worst >= 3*view {
			t.Errorf("seed %d: clients wait %v at the end of an epoch, where a view takes %v: %v", seed, worst, view, r.Pauses)
		}
		if !last(r).seat(7).Seated {
			t.Errorf("seed %d: nobody joined", seed)
		}
	}
	if epochs < 40*seeds/6 {
		t.Errorf("clients waited at the end of %d epochs only", epochs)
	}
}

// TestTwoOnOneKeyAreBarredAtOnce: two processes on one key contradict each other,
// are proven to, and neither has a weight in the epoch after the one whose block
// holds the proof.
func TestTwoOnOneKeyAreBarredAtOnce(t *testing.T) {
	testshort.SkipUnlessLong(t)
	barred, seeds := 0, testshort.Cases[uint64](0, 8, 16)
	for seed := uint64(1); seed <= seeds; seed++ {
		r := mustRun(t, scenario.Scenario{
			Seed: seed, Network: scenario.Network{Anchors: 7, EpochBlocks: 1000}, Roles: []scenario.Role{{Attacks: []string{"twins"}, Anchors: []int{6}}},
			Faults: scenario.Faults{Loss: 50_000}, Load: scenario.Load{Writes: 60}, Stop: 6 * time.Second, Heal: &scenario.Heal{},
		})
		if r.Failed() {
			t.Fatalf("seed %d: %s", seed, r.Failure())
		}
		if len(r.Proven) == 0 {
			continue
		}
		// Nothing but the proof ends an epoch of a thousand blocks.
		if len(r.Epochs) != 2 || !r.Epochs[1].seat(6).Barred || r.Epochs[1].seat(6).Weight != 0 {
			t.Errorf("seed %d: proven, and not barred in the next epoch: %+v", seed, r.Epochs)
		}
		barred++
	}
	if barred < int(seeds/8) {
		t.Errorf("twins were barred in %d of %d worlds", barred, seeds)
	}
}

// TestOmissionNeedsEveryLeader: a victim loses credit only if all the others leave
// its ballots out; one honest leader is enough.
func TestOmissionNeedsEveryLeader(t *testing.T) {
	testshort.Skip(t)
	gained := func(omitters ...int) (victim, others trust.Score) {
		s := scenario.Scenario{
			Network: scenario.Network{Anchors: 4, EpochBlocks: 24, Whole: 20}, Links: scenario.Links{Model: "constant", Delay: 5 * time.Millisecond},
			Load: scenario.Load{Clients: 4, Writes: 200, Reads: 1}, Stop: 6 * time.Second,
			Roles: []scenario.Role{{Attacks: []string{"omit"}, Anchors: omitters, Victims: []int{0}}},
		}
		if len(omitters) > 1 { // over the budget, where honest anchors are too few to heal
			s.Expect = []string{scenario.Invariants[Agreement].Name}
		}
		e := last(mustRun(t, s))
		if e.Number < 2 {
			t.Fatalf("epoch %d in the end", e.Number)
		}
		return e.seat(0).Score, e.seat(1).Score
	}
	if victim, other := gained(1); victim < other-20_000 {
		t.Errorf("one of three leaders omits the victim, who has %d, and others %d", victim, other)
	}
	if victim, other := gained(1, 2); victim < other-40_000 {
		t.Errorf("two of three leaders omit the victim, who has %d, and others %d", victim, other)
	}
	// The victim leads as well, and puts its own ballots in, some of them late.
	if victim, other := gained(1, 2, 3); victim > other-10_000 {
		t.Errorf("all leaders omit the victim, who has %d, and others %d", victim, other)
	}
}

// TestOldKeysDecideNothing: usurpers' own finalizations of past epochs are refused
// for want of weight, and no node follows them.
func TestOldKeysDecideNothing(t *testing.T) {
	s, err := scenario.FromLibrary("usurpers")
	if err != nil {
		t.Fatal(err)
	}
	r := mustRun(t, s)
	if r.Failed() {
		t.Fatal(r.Failure())
	}
	lies := slices.IndexFunc(r.Attacks, func(c Count) bool { return c.Name == "usurp" && c.Count > 20 })
	if lies < 0 || len(r.Refused) == 0 {
		t.Errorf("lies %v, refused %v", r.Attacks, r.Refused)
	}
}

// TestAnchorsComeAndGo follows the motions of one world.
func TestAnchorsComeAndGo(t *testing.T) {
	testshort.Skip(t)
	r := mustRun(t, scenario.Scenario{
		Network: scenario.Network{Anchors: 7, Observers: 2, EpochBlocks: 6, Whole: 2}, Links: scenario.Links{Model: "constant", Delay: 5 * time.Millisecond},
		Govern: []scenario.Motion{
			{Kind: "admit", At: 500 * time.Millisecond, Node: 7, Sponsor: 1},
			{Kind: "admit", At: 500 * time.Millisecond, Node: 8, Sponsor: 2, By: []int{2, 3}}, // too few
			{Kind: "retire", At: time.Second, Node: 3},
			{Kind: "policy", At: 1500 * time.Millisecond, EpochBlocks: 9},
		},
		Load: scenario.Load{Clients: 4, Writes: 120, Reads: 1}, Stop: 4 * time.Second, Heal: &scenario.Heal{},
	})
	if r.Failed() {
		t.Fatal(r.Failure())
	}
	e := last(r)
	if n := e.seat(7); !n.Seated || n.Weight == 0 || n.Score <= trust.DefaultParams().Initial {
		t.Errorf("who was admitted: %+v", n)
	}
	if e.seat(8).Seated {
		t.Error("an observer was admitted by two of seven")
	}
	if n := e.seat(3); n.Seated || n.Weight != 0 || n.Score < 500_000 {
		t.Errorf("who retired: %+v", n)
	}
	probation := 0
	for _, x := range r.Epochs {
		switch n := x.seat(7); {
		case n.Seated && n.Weight == 0:
			probation++
		case n.Seated && n.Score <= trust.DefaultParams().Initial:
			t.Errorf("a probation of taking part earned nothing: %+v", n)
		}
	}
	if want := int(trust.DefaultParams().Probation); probation != want {
		t.Errorf("on probation for %d epochs, want %d", probation, want)
	}
	sizes := make(map[aweigh.Height]int)
	for i, x := range r.Epochs[1:] {
		sizes[x.Height-r.Epochs[i].Height]++
	}
	if sizes[7] == 0 || sizes[10] == 0 { // with the block that ends each
		t.Errorf("epochs of %v blocks", sizes)
	}
}

// TestWeightsFollowTrustSlowly: anchors that begin without trust gain a quarter of
// their weight in the first whole epoch, but weights change by a tenth at most.
func TestWeightsFollowTrustSlowly(t *testing.T) {
	testshort.Skip(t)
	r := mustRun(t, scenario.Scenario{
		Network: scenario.Network{Anchors: 9, Trust: []scenario.Share{1, 1, scenario.Whole}, EpochBlocks: 6, Whole: 2}, Links: scenario.Links{Model: "constant", Delay: 5 * time.Millisecond},
		Load: scenario.Load{Clients: 4, Writes: 80, Reads: 1}, Stop: 3 * time.Second, Heal: &scenario.Heal{},
	})
	if r.Failed() {
		t.Fatal(r.Failure())
	}
	most := uint64(0) // in thousandths
	for i, e := range r.Epochs[1:] {
		var sum uint64
		for n := range 9 {
			a, b := r.Epochs[i].seat(n).Weight, e.seat(n).Weight
			sum += max(a, b) - min(a, b)
		}
		most = max(most, sum*1000/r.Epochs[i].Total)
	}
	if most < 80 || most > 100 {
		t.Errorf("weights changed by %d thousandths at most, %d epochs", most, len(r.Epochs))
	}
}

// TestUnreadableDisksAreReported makes reads fail while blocks end epochs, which
// takes reading the ledger: a node stops with an error of its disk, and no other.
func TestUnreadableDisksAreReported(t *testing.T) {
	testshort.Skip(t)
	stopped, seeds := uint64(0), testshort.Cases[uint64](0, 6, 25)
	for seed := uint64(1); seed <= seeds; seed++ {
		s := scenario.Scenario{Seed: seed, Network: scenario.Network{Anchors: 4, EpochBlocks: 3}, Load: scenario.Load{Clients: 4, Writes: 60, Reads: 1}, Stop: 6 * time.Second, Heal: &scenario.Heal{}}
		for i := range 50 {
			s.Faults.Timed = append(s.Faults.Timed, scenario.Fault{Kind: "crash", Nodes: []int{1}, At: time.Duration(i) * 100 * time.Millisecond, For: 50 * time.Millisecond, Keep: "none"})
			s.Faults.Timed = append(s.Faults.Timed, scenario.Fault{Kind: "readfail", Nodes: []int{1}, At: time.Duration(i)*100*time.Millisecond + time.Duration(50+i)*time.Millisecond, For: 49 * time.Millisecond})
		}
		r := mustRun(t, s)
		if r.Failed() {
			t.Fatalf("seed %d: %s", seed, r.Failure())
		}
		i := slices.IndexFunc(r.Goals, func(c Count) bool { return c.Name == "failed disk" })
		stopped += r.Goals[i].Count
	}
	if stopped < seeds {
		t.Errorf("%d disks failed in %d worlds", stopped, seeds)
	}
}
