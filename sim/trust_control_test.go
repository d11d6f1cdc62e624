package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
	"github.com/aweigh/aweigh/trust"
)

// TestHeavyWeightsAreSeen gives anchors more than caps allow: one by itself, and
// those of one sponsor together.
func TestHeavyWeightsAreSeen(t *testing.T) {
	w := newWorld(t, scenario.Scenario{Network: scenario.Network{Anchors: 9}})
	l, err := w.Genesis.Ledger()
	if err != nil {
		t.Fatal(err)
	}
	weigh := func(weight func(i int) uint64) *scope.Epoch {
		var all []quorum.Share
		for i, a := range w.epochs[0].Roster.Anchors {
			all = append(all, quorum.Share{Anchor: a.Key.ID(), Weight: weight(i)})
		}
		e := *w.epochs[0]
		if e.Roster.Weights, err = quorum.NewWeights(all...); err != nil {
			t.Fatal(err)
		}
		return &e
	}
	one := func(heavy uint64) *scope.Epoch {
		return weigh(func(i int) uint64 {
			if i == 0 {
				return heavy
			}
			return 100
		})
	}
	for heavy, over := range map[uint64]bool{200: false, 201: true} {
		if why := overCap(one(heavy), l); (why != "") != over {
			t.Errorf("one of 9 weighs %d, the others 100: %q", heavy, why)
		}
	}

	ids := w.epochs[0].Roster.Anchors
	sponsored := l
	for _, a := range ids[6:] { // three, brought in by the first
		sponsored = leaveAndReturn(sponsored, a.Key.ID(), ids[0].Key.ID())
	}
	group := func(each uint64) *scope.Epoch {
		return weigh(func(i int) uint64 {
			if i >= 6 {
				return each
			}
			return 600
		})
	}
	for each, over := range map[uint64]bool{400: false, 401: true} {
		if why := overCap(group(each), sponsored); (why != "") != over {
			t.Errorf("three of one sponsor weigh %d each, the other six 600: %q", each, why)
		}
	}

	for heavy, over := range map[uint64]bool{100: false, 190: false, 191: true} { // of 900, 90 may change
		if why := overChurn(one(100), one(heavy), l); (why != "") != over {
			t.Errorf("a weight goes from 100 to %d: %q", heavy, why)
		}
	}
}

func leaveAndReturn(l trust.Ledger, a, sponsor aweigh.AnchorID) trust.Ledger {
	return l.Apply(trust.DefaultParams(),
		trust.Evidence{Anchor: a, Kind: trust.Retired},
		trust.Evidence{Anchor: a, Kind: trust.Admitted, Sponsor: sponsor})
}

// TestMisjudgementsAreSeen moves standings farther than evidence can.
func TestMisjudgementsAreSeen(t *testing.T) {
	p := trust.DefaultParams()
	at := func(score trust.Score) trust.Standing { return trust.Standing{Score: score, Seated: true} }
	for _, c := range []struct {
		name     string
		old, now trust.Standing
		known    bool
		honest   bool
		seen     bool
	}{
		{"rises by what an epoch gives", at(500_000), at(533_250), true, true, false},
		{"rises by more", at(500_000), at(533_251), true, true, true},
		{"falls by what absence takes", at(500_000), at(452_938), true, true, false},
		{"falls by more", at(500_000), at(452_937), true, true, true},
		{"a liar falls by more", at(500_000), at(100_000), true, false, false},
		{"honest, barred", at(500_000), trust.Standing{Barred: true}, true, true, true},
		{"a liar, barred", at(500_000), trust.Standing{Barred: true}, true, false, false},
		{"barred, with a seat", at(500_000), trust.Standing{Barred: true, Seated: true}, true, false, true},
		{"new, with what is given", trust.Standing{}, at(100_000), false, true, false},
		{"new, with more", trust.Standing{}, at(200_000), false, true, true},
		{"more than all", at(1_000_000), at(1_000_001), true, true, true},
	} {
		if why := misjudged(p, c.old, c.known, c.now, c.honest); (why != "") != c.seen {
			t.Errorf("%s: %q", c.name, why)
		}
	}
}

// TestTrustInvariantsCanBreak shows worlds in which more than the budget is at
// fault, or the honest are fooled, and trust does not hold.
func TestTrustInvariantsCanBreak(t *testing.T) {
	testshort.SkipUnlessLong(t)
	barred := scenario.Scenario{
		Network: scenario.Network{Anchors: 7, EpochBlocks: 4, Whole: 1}, Load: scenario.Load{Writes: 60},
		Roles:  []scenario.Role{{Attacks: []string{"equivocate"}, Weight: "over", Rate: 100_000}},
		Expect: []string{scenario.Invariants[Standings].Name},
	}
	sybils, err := scenario.FromLibrary("over-sybil")
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]scenario.Scenario{"standing": barred, "third": sybils} {
		seen := false
		for seed := uint64(1); seed <= 20 && !seen; seed++ {
			s.Seed = seed
			r := mustRun(t, s)
			seen = slices.ContainsFunc(r.Broken, func(b Breach) bool { return b.Invariant == name })
		}
		if !seen {
			t.Errorf("%s did not break", name)
		}
	}
}

// TestContentAfterTheEndIsSeen makes the watch take another block for the end of
// the epoch: it must report what honest nodes build on it.
func TestContentAfterTheEndIsSeen(t *testing.T) {
	w := newWorld(t, scenario.Scenario{Network: scenario.Network{Anchors: 4}})
	for i := range 20 {
		w.at(time.Duration(i)*50*time.Millisecond, func() { w.Nodes[i%4].submit(string(rune('a'+i)), new(machine.Reply)) })
	}
	w.Run(500*time.Millisecond, nil)
	if v := w.watch.verdicts[Ending]; v.Broken > 0 || v.Checks > 0 {
		t.Fatalf("no epoch ends, and %+v", v)
	}
	for _, b := range w.watch.proposals { // order-free: all of them
		w.watch.ending.after[b] = 0
	}
	w.Run(500*time.Millisecond, nil)
	if w.watch.verdicts[Ending].Broken == 0 {
		t.Fatal("content above the end of an epoch is not seen")
	}
}

// TestGapsBetweenEpochsAreSeen hands the audit blocks of epochs that do not follow
// each other.
func TestGapsBetweenEpochsAreSeen(t *testing.T) {
	end, some := aweigh.Hash{1}, scope.Evidence{Attended: []scope.Attended{{Height: 1}}}
	for _, c := range []struct {
		before scope.Header
		now    scope.Block
		seen   uint64
	}{
		{scope.Header{Epoch: 1}, scope.Block{Header: scope.Header{Epoch: 1}, Evidence: some}, 0},
		{scope.Header{Epoch: 1, Next: end}, scope.Block{Header: scope.Header{Epoch: 2}}, 0},
		{scope.Header{Epoch: 1, Next: end}, scope.Block{Header: scope.Header{Epoch: 1}}, 1},
		{scope.Header{Epoch: 1}, scope.Block{Header: scope.Header{Epoch: 2}}, 1},
		{scope.Header{Epoch: 1}, scope.Block{Header: scope.Header{Epoch: 1, Next: end}, Evidence: some}, 1},
	} {
		w := newWorld(t, scenario.Scenario{Network: scenario.Network{Anchors: 4}})
		w.watch.ending.chained(w, nil, &c.before, &c.now)
		if got := w.watch.verdicts[Ending].Broken; got != c.seen {
			t.Errorf("%+v after %+v: %d breaches, want %d", c.now.Header, c.before, got, c.seen)
		}
	}
}
