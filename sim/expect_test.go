package sim

import (
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/sim/scenario"
)

var librarySeeds = flag.Int("library-seeds", 0, "seeds with which TestLibraryShowsWhatItSays runs each scenario, instead of one or two")

// TestLibraryShowsWhatItSays runs scenarios of the library: every fourth one by default, one in fifteen with -short,
// and with AWEIGH_TESTS=all each with two seeds. No invariant breaks unexpectedly, and the outcome is the described
// one. By chance, one seed of two may miss that.
func TestLibraryShowsWhatItSays(t *testing.T) {
	seeds := uint64(*librarySeeds)
	if seeds == 0 {
		seeds = testshort.Cases[uint64](1, 1, 2)
	}
	every := testshort.Cases(15, 4, 1) // scenario
	for i, of := range scenario.Library() {
		name := of.Name
		if name == "thousand" { // TestManyAnchorsCostNoMoreThanTheirMessages runs as many
			continue
		}
		t.Run(name, func(t *testing.T) {
			if i%every != 3%every && *librarySeeds == 0 {
				t.Skip("one of several: AWEIGH_TESTS=all runs all")
			}
			t.Parallel()
			s, err := scenario.FromLibrary(name)
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Shows) == 0 && len(s.Expect) == 0 {
				t.Fatal("it shows nothing and expects nothing")
			}
			var short []string
			for n := range seeds {
				s.Seed = max(1, s.Seed) + min(1, n)
				r := mustRun(t, s)
				why := r.Failure()
				switch {
				case why == "":
				case len(r.unbroken()) > 0 || len(r.missing()) > 0 && !r.Stuck() && len(r.Broken) == 0:
					short = append(short, why)
				default:
					t.Errorf("seed %d: %s", s.Seed, why)
				}
			}
			if len(short) > int(seeds)/2 {
				t.Errorf("in %d of %d seeds: %s", len(short), seeds, strings.Join(short, "; "))
			}
		})
	}
}

// TestEquivocatorsBeyondTheBudgetForkTheChain: the scenario does what its text says.
func TestEquivocatorsBeyondTheBudgetForkTheChain(t *testing.T) {
	testshort.Skip(t)
	s, err := scenario.FromLibrary("over-equivocation")
	if err != nil {
		t.Fatal(err)
	}
	forked, seeds := 0, uint64(24)
	for s.Seed = 1; s.Seed <= seeds; s.Seed++ {
		r := mustRun(t, s)
		if r.Verdicts[Agreement].Broken == 0 {
			continue
		}
		forked++
		if v := r.Verdicts[Accountability]; v.Checks == 0 || v.Broken > 0 {
			t.Errorf("seed %d: those who forked the chain are not named: %+v", s.Seed, v)
		}
	}
	if forked < 14 { // 17 when this was written, and 61 of 72
		t.Errorf("the chain is forked in %d of %d seeds", forked, seeds)
	}
}

// TestForksAreSeenByTheHonest: a breach of agreement stands at a node that does not lie,
// and another such node holds another block at that height.
func TestForksAreSeenByTheHonest(t *testing.T) {
	for _, name := range []string{"over-fork", "over-equivocation"} {
		s, err := scenario.FromLibrary(name)
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for s.Seed = 1; s.Seed <= 4; s.Seed++ {
			w := newWorld(t, s)
			w.startClients()
			w.scheduleFaults()
			w.Run(w.Scenario.Stop, nil)
			for _, b := range w.findings.broken {
				if b.Invariant != scenario.Invariants[Agreement].Name {
					continue
				}
				seen++
				blocks := make(map[string]bool)
				for _, n := range w.Nodes {
					if n.liar == nil && n.Height > 0 {
						blocks[n.state().Head().Digest.String()] = true
					}
				}
				if slices.Contains([]int{4, 5, 6}, b.Node) || len(blocks) < 2 {
					t.Errorf("%s, seed %d: %v, and the honest hold %d states", name, s.Seed, b, len(blocks))
				}
			}
		}
		if seen == 0 {
			t.Errorf("%s: no fork in four seeds", name)
		}
	}
}

// TestExpectationsAreEnforced: a run that does not break all that its scenario expects,
// or that does not show what it was made to show, fails and reports what is missing.
func TestExpectationsAreEnforced(t *testing.T) {
	lying := scenario.Scenario{Network: scenario.Network{Anchors: 4}, Roles: []scenario.Role{{Attacks: []string{"mute"}, Anchors: []int{2, 3}}}, Stop: 3 * time.Second}
	quiet := scenario.Scenario{Network: scenario.Network{Anchors: 4}, Stop: 3 * time.Second}
	with := func(s scenario.Scenario, change func(*scenario.Scenario)) scenario.Scenario {
		change(&s)
		return s
	}
	for _, c := range []struct {
		s   scenario.Scenario
		why string
	}{
		{with(lying, func(s *scenario.Scenario) { s.Expect = []string{"agreement"} }), "expects agreement to break, and agreement did not"},
		{with(lying, func(s *scenario.Scenario) {
			s.Roles[0].Attacks = []string{"garbage"}
			s.Expect = []string{"acceptance", "leases"}
		}), "expects acceptance, leases to break, and leases did not"},
		{with(quiet, func(s *scenario.Scenario) { s.Shows = []string{"read under fire", "failed disk"} }), `"failed disk" was never reached`},
		{with(quiet, func(s *scenario.Scenario) { s.Shows = []string{"read under fire"} }), ""},
		{with(quiet, func(s *scenario.Scenario) {
			s.Shows = []string{"read under fire"}
			s.Roles = []scenario.Role{{Attacks: []string{"mute"}, Anchors: []int{3}, Above: scenario.Whole}}
		}), "mute told no lie"},
		{with(quiet, func(s *scenario.Scenario) {
			s.Roles = []scenario.Role{{Attacks: []string{"mute"}, Anchors: []int{3}, Above: scenario.Whole}}
		}), ""},
	} {
		s := c.s
		s.Roles = slices.Clone(s.Roles)
		r := mustRun(t, s)
		if why := r.Failure(); (why == "") != (c.why == "") || !strings.Contains(why, c.why) || r.Failed() != (why != "") {
			t.Errorf("%s: fails by %q, want %q", s.Encode(), why, c.why)
		}
	}
}

// TestDefaultLiesAllAlong: lies are told in each tenth of the default run.
func TestDefaultLiesAllAlong(t *testing.T) {
	testshort.SkipUnlessLong(t)
	s, err := scenario.FromLibrary("default")
	if err != nil {
		t.Fatal(err)
	}
	var lies [10]int
	r := mustRun(t, s)
	for _, m := range r.Marks {
		if m.Kind == "lie" && m.At < r.Scenario.Stop {
			lies[10*m.At/r.Scenario.Stop]++
		}
	}
	if slices.Min(lies[:]) == 0 {
		t.Errorf("lies in the tenths of the run: %v", lies)
	}
}

// TestNothingIsCountedThatHadNothingToLookAt: an invariant that a quiet world cannot
// break does not count as checked, and one node alone has no log to compare and no
// frame to refuse.
func TestNothingIsCountedThatHadNothingToLookAt(t *testing.T) {
	r := mustRun(t, scenario.Scenario{Network: scenario.Network{Anchors: 4}, Stop: 3 * time.Second})
	want := []int{Honour, Accountability, Classified, Churn, Standings, Third, Ending, Leases, Motions, Conflicts, Closed, Boxes, Isolation, Handover, Referred, Obeyed, Islands, Access, Verified}
	var names []string
	for _, i := range want {
		names = append(names, scenario.Invariants[i].Name)
	}
	if got := Unlooked(r.Verdicts); !slices.Equal(got, names) {
		t.Errorf("in a quiet world were not looked at %v, want %v", got, names)
	}
	alone := mustRun(t, scenario.Scenario{Network: scenario.Network{Anchors: 1}, Stop: 3 * time.Second})
	for _, i := range []int{Lineage, Acceptance} {
		if v := alone.Verdicts[i]; v.Checks > 0 {
			t.Errorf("one node alone: %+v", v)
		}
	}
}
