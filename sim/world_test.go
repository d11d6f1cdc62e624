package sim

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
)

var worlds = flag.Int("worlds", 0, "worlds that TestDrawnWorldsHold draws, instead of as many as the size of the tests asks for")

func put(key, value string) scope.Txn {
	return scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte(key), Value: []byte(value)}}}
}

func newWorld(t *testing.T, s scenario.Scenario) *World {
	t.Helper()
	w, err := NewWorld(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// submit puts a value through a node, and reports the reply in *done. The
// returned function submits it again.
func (n *Node) submit(key string, done *machine.Reply) (again func()) {
	m := n.world.mutation(put(key, "v"), []byte(fmt.Sprintf("%-16s", key)))
	again = func() { n.Submit(m, func(r machine.Reply) { *done = r }) }
	again()
	return again
}

func TestIdleNetworkIsSilent(t *testing.T) {
	w := newWorld(t, scenario.Scenario{Network: scenario.Network{Anchors: 4}})
	w.writes(t, "a", 12, w.Nodes...)
	w.Run(2*time.Hour, nil) // the epoch ends once, since it holds some blocks
	if e := w.Nodes[0].Status().Epoch; e != 1 {
		t.Fatalf("epoch %d after two hours", e)
	}
	before := w.Events()
	w.Run(3*time.Hour, nil)
	if w.Events() != before {
		t.Fatalf("an idle network is not silent: %d events in three hours", w.Events()-before)
	}
}

// TestSameScenarioSameTrace runs drawn worlds twice.
func TestSameScenarioSameTrace(t *testing.T) {
	testshort.Skip(t)
	seen := make(map[aweigh.Hash]bool)
	for seed := uint64(1); seed <= testshort.Cases[uint64](0, 6, 12); seed++ {
		a := mustRun(t, scenario.Draw(seed))
		b, err := Run(t.Context(), scenario.Draw(seed), Options{}) // anew
		if err != nil {
			t.Fatal(err)
		}
		if a.Trace != b.Trace || a.Events != b.Events {
			t.Fatalf("seed %d: two runs of one scenario differ: %s (%d events), %s (%d events)", seed, a.Trace.Short(), a.Events, b.Trace.Short(), b.Events)
		}
		if seen[a.Trace] {
			t.Fatal("two scenarios have one trace")
		}
		seen[a.Trace] = true
	}
}

// TestTraceIsTheSameOnEveryProcessor compares with traces on record; CI runs it
// for 386 as well. After a change that is meant to change traces:
// go test ./sim -run TestTraceIsTheSameOnEveryProcessor -update
func TestTraceIsTheSameOnEveryProcessor(t *testing.T) {
	var lines []string
	for seed := uint64(1); seed <= testshort.Cases[uint64](2, 10, 10); seed++ {
		r := mustRun(t, scenario.Draw(seed))
		lines = append(lines, fmt.Sprintf("%d %d %s\n", seed, r.Events, r.Trace))
	}
	file, got := filepath.Join("testdata", "traces.txt"), strings.Join(lines, "")
	if *update && !testing.Short() {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	record, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Collect(strings.Lines(string(record)))
	if testing.Short() {
		want = want[:min(len(lines), len(want))]
	}
	if !slices.Equal(want, lines) {
		t.Fatalf("other traces than those on record (seed, events, hash); on record:\n%snow:\n%s", strings.Join(want, ""), got)
	}
}

var update = flag.Bool("update", false, "put the traces on record")

// TestDrawnWorldsHold is a short sweep; "aweigh sim sweep" is the long one.
func TestDrawnWorldsHold(t *testing.T) {
	count := uint64(*worlds)
	if count == 0 {
		count = testshort.Cases[uint64](4, 12, 60)
	}
	for seed := uint64(1); seed <= count; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			if text := mustRun(t, scenario.Draw(seed)).Failure(); text != "" {
				t.Errorf("%s; replay: aweigh sim replay %d --trace", text, seed)
			}
		})
	}
}

// FuzzSeeds looks for a seed whose world breaks an invariant.
func FuzzSeeds(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		if r := mustRun(t, scenario.Draw(seed)); r.Failed() {
			t.Fatalf("seed %d: %s", seed, r.Failure())
		}
	})
}

// longest are the scenarios of testdata/regress that take longest, more than all others together.
var longest = []string{
	"a-flood-never-rests.yaml", "order-after-an-order.yaml", "store-after-a-revocation.yaml", "too-many-open-blocks.yaml",
}

// TestFoundFailuresStayFixed runs every scenario that once broke something, the longest with AWEIGH_TESTS=all only;
// with -short, one in three of them.
func TestFoundFailuresStayFixed(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "regress", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for i, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			if i%6 != 1 {
				testshort.Skip(t)
			}
			if slices.Contains(longest, filepath.Base(file)) {
				testshort.SkipUnlessLong(t)
			}
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s, err := scenario.Decode(raw)
			if err != nil {
				t.Fatal(err)
			}
			if r := mustRun(t, s); r.Failed() {
				t.Fatal(r.Failure())
			}
		})
	}
}

// TestCrashAtEveryBoundary kills nodes before and after each single effect of
// their steps: between "ballot durable" and "ballot sent", and everywhere else.
func TestCrashAtEveryBoundary(t *testing.T) {
	died := make(map[int]int)
	all := func() bool { return died[1]*died[2]*died[3]*died[4]*died[5]*died[6] > 0 }
	for seed := uint64(1); seed <= testshort.Cases[uint64](4, 12, 30) || seed <= 30 && !all(); seed++ {
		w := newWorld(t, scenario.Scenario{Seed: seed, Network: scenario.Network{Anchors: 4}, Faults: scenario.Faults{Crash: 20_000, Loss: 20_000}, Load: scenario.Load{Writes: 60}, Heal: &scenario.Heal{}})
		w.startClients()
		w.scheduleFaults()
		for _, n := range w.Nodes {
			doomed := n.Doomed
			n.Doomed = func(boundary int) bool {
				for range boundary * boundary { // as few steps have many effects
					if doomed(boundary) {
						died[min(boundary, 6)]++
						return true
					}
				}
				return false
			}
		}
		w.Run(w.Scenario.Stop, nil)
		w.heal()
		if x := w.startHealChecks(); x == nil || !w.Run(time.Minute, x.met) {
			t.Fatalf("seed %d: no progress after the crashes: %v", seed, w.watch.broken)
		}
		if w.audit(); len(w.watch.broken) > 0 {
			t.Fatalf("seed %d: %v", seed, w.watch.broken)
		}
	}
	for b := 1; b <= 6; b++ {
		if died[b] == 0 {
			t.Errorf("no node died before effect %d of a step: %v", b, died)
		}
	}
}

// TestNoQuorumNoCommit takes half of the weight away: nothing commits, and
// everything does once one anchor returns, each mutation once, however often a
// client asks.
func TestNoQuorumNoCommit(t *testing.T) {
	for seed := uint64(1); seed <= testshort.Cases[uint64](4, 10, 20); seed++ {
		w := newWorld(t, scenario.Scenario{Seed: seed, Network: scenario.Network{Anchors: 4}})
		reconnect := w.cutLinks(scenario.Fault{Kind: "cut"}, w.Nodes[2:3])
		w.cutLinks(scenario.Fault{Kind: "cut"}, w.Nodes[3:4])
		var a, b machine.Reply
		again := w.Nodes[0].submit("/a", &a)
		if w.Run(30*time.Second, func() bool { return w.Nodes[0].Height > 0 || w.Nodes[1].Height > 0 }) {
			t.Fatal("committed without a quorum")
		}
		again()
		w.Nodes[int(seed)%2].submit("/b", &b)
		reconnect()
		if !w.Run(time.Minute, func() bool { return a.Outcome != nil && b.Outcome != nil }) {
			t.Fatalf("seed %d: not committed although a quorum is back: %v", seed, w.watch.broken)
		}
		again()
		w.Run(30*time.Second, nil)
		head := w.Nodes[0].Status().Head
		if head.Revision != 3 || w.Nodes[2].Status().Head.Digest != head.Digest || len(w.watch.broken) > 0 {
			t.Fatalf("seed %d: revision %d after two writes, %v", seed, head.Revision, w.watch.broken)
		}
	}
}

// TestBlocksThatCannotBecomeFinalAreFew: under a policy that wants 90 % to
// finalize, and with a quarter away, blocks are notarized and cannot become
// final. The network waits for the quarter without piling up blocks.
func TestBlocksThatCannotBecomeFinalAreFew(t *testing.T) {
	w := newWorld(t, scenario.Scenario{Seed: 5, Network: scenario.Network{Anchors: 4, Finalize: 900_000}})
	w.Nodes[3].crash(0)
	var first machine.Reply
	w.Nodes[0].submit("/a", &first)
	for i := range 100 {
		w.at(time.Duration(i)*100*time.Millisecond, func() { w.Nodes[i%3].submit(fmt.Sprint("/b", i), new(machine.Reply)) })
	}
	w.Run(time.Minute, nil)
	if v := w.Nodes[0].Status().View; w.Nodes[0].Height > 0 || v > 300 {
		t.Fatalf("height %d, view %d after a minute without a quorum to finalize", w.Nodes[0].Height, v)
	}
	w.Nodes[3].Up()
	if !w.Run(2*time.Minute, func() bool { return first.Outcome != nil }) {
		t.Fatalf("not final although all are back: %v", w.watch.broken)
	}
}

// TestLiarsAreProvenOnTheChain: final blocks hold proofs against the anchors that
// equivocate, and against no other.
func TestLiarsAreProvenOnTheChain(t *testing.T) {
	proven, seeds := 0, testshort.Cases[uint64](2, 5, 10)
	for seed := uint64(1); seed <= seeds; seed++ {
		r := mustRun(t, scenario.Scenario{Seed: seed, Roles: []scenario.Role{{Attacks: []string{"equivocate"}, Anchors: []int{5, 6}}}, Heal: &scenario.Heal{}})
		if r.Failed() {
			t.Fatalf("seed %d: %s", seed, r.Failure())
		}
		for _, n := range r.Proven {
			if n < 5 {
				t.Fatalf("seed %d: node %d is honest, and stands proven at fault", seed, n)
			}
			proven++
		}
	}
	if proven < int(seeds) {
		t.Fatalf("%d of %d liars were proven", proven, 2*seeds)
	}
}
