package sim

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

var (
	worlds = flag.Int("worlds", 40, "seeded worlds that each test runs")
	seed   = flag.Uint64("seed", 0, "run this one seed, with its trace")
)

func put(key, value string) scope.Txn {
	return scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte(key), Value: []byte(value)}}}
}

func start(t *testing.T, cfg Config) *World {
	t.Helper()
	if *seed != 0 {
		cfg.Seed, cfg.Trace = *seed, os.Stderr
	}
	w, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// seeds runs a test for many seeds, or for the one that was asked for.
func seeds(t *testing.T, run func(t *testing.T, seed uint64)) {
	if *seed != 0 {
		run(t, *seed)
		return
	}
	for s := range *worlds {
		run(t, uint64(s+1))
		if t.Failed() {
			t.Fatalf("replay: go test ./sim -run '%s' -seed %d", t.Name(), s+1)
		}
	}
}

func TestIdleNetworkIsSilent(t *testing.T) {
	w := start(t, Config{Seed: 1})
	id := w.Nodes[1].Submit(put("/a", "1"))
	if !w.Run(10*time.Second, func() bool { _, ok := w.Nodes[1].Done[id]; return ok }) {
		t.Fatalf("not committed: %v", w.Err)
	}
	w.Run(10*time.Second, nil)
	before := w.Events()
	w.Run(time.Hour, nil)
	if w.Err != nil || w.Events() != before {
		t.Fatalf("an idle network is not silent: %d events in an hour, %v", w.Events()-before, w.Err)
	}
}

func TestSameSeedSameTrace(t *testing.T) {
	run := func() (aweigh.Hash, int) {
		w := start(t, Config{Seed: 7, Loss: 100, Twice: 50})
		for i := range 20 {
			w.At(time.Duration(i)*40*time.Millisecond, func() { w.Nodes[i%4].Submit(put(fmt.Sprint("/k", i%5), "v")) })
		}
		w.At(300*time.Millisecond, func() { w.Nodes[2].Crash(1) })
		w.At(900*time.Millisecond, func() { w.Nodes[2].Up() })
		w.Run(20*time.Second, nil)
		if w.Err != nil {
			t.Fatal(w.Err)
		}
		return w.TraceHash(), w.Events()
	}
	a, n := run()
	b, m := run()
	if a != b || n != m {
		t.Fatalf("two runs of one seed differ: %v (%d events), %v (%d events)", a, n, b, m)
	}
}

// TestNothingIsLostUnderFaults submits through all nodes while frames are lost,
// doubled and reordered and nodes crash, losing what they had not synced. Once
// the faults end, every mutation is final, once, and all states are equal.
func TestNothingIsLostUnderFaults(t *testing.T) {
	modes := []quorum.Mode{quorum.BFT, quorum.Crash}
	reads := 0
	seeds(t, func(t *testing.T, s uint64) {
		cfg := Config{Seed: s, Loss: int(s*37) % 250, Twice: int(s*13) % 100, Mode: modes[s%2], Nodes: 1 + int(s)%7}
		if s%3 == 0 {
			cfg.Scores = []uint32{900_000, 100_000, 500_000}
		}
		w := start(t, cfg)
		r := w.Rand()
		type wish struct {
			n  *Node
			id aweigh.Hash
		}
		var wishes []wish
		for i := range 30 {
			w.At(time.Duration(r.IntN(8000))*time.Millisecond, func() {
				n := w.Nodes[r.IntN(len(w.Nodes))]
				wishes = append(wishes, wish{n: n, id: n.Submit(put(fmt.Sprint("/k", i%7), fmt.Sprint(i)))})
			})
		}
		for i := range 40 {
			w.At(time.Duration(r.IntN(11000))*time.Millisecond, func() { w.Nodes[r.IntN(len(w.Nodes))].Read(uint64(i + 1)) })
		}
		for range r.IntN(12) {
			n := w.Nodes[r.IntN(len(w.Nodes))]
			at := time.Duration(r.IntN(8000)) * time.Millisecond
			if r.IntN(3) == 0 {
				w.At(at, func() { n.Cut(true) })
				w.At(at+time.Duration(r.IntN(3000))*time.Millisecond, func() { n.Cut(false) })
				continue
			}
			w.At(at, func() {
				if n.IsUp() {
					n.Crash(r.IntN(n.Disk.Unsynced() + 1))
				}
			})
			w.At(at+time.Duration(r.IntN(3000))*time.Millisecond, func() {
				if err := n.Up(); err != nil {
					t.Error(err)
				}
			})
		}
		w.Run(12*time.Second, nil)
		for _, n := range w.Nodes { // heal
			n.Cut(false)
			if err := n.Up(); err != nil {
				t.Fatal(err)
			}
		}
		w.cfg.Loss = 0
		// What was submitted to a node that crashed since may be gone, so a last
		// write through every node shows that all of them are live.
		var last []wish
		for _, n := range w.Nodes {
			last = append(last, wish{n: n, id: n.Submit(put("/last", fmt.Sprint(n.Index)))})
		}
		if !w.Run(3*time.Minute, func() bool {
			for _, x := range last {
				if _, ok := x.n.Done[x.id]; !ok {
					return false
				}
			}
			return true
		}) {
			t.Fatalf("seed %d: no progress after healing: %v", s, w.Err)
		}
		w.Run(30*time.Second, nil)
		if w.Err != nil {
			t.Fatal(w.Err)
		}
		head := w.Nodes[0].Status().Head
		for _, n := range w.Nodes {
			reads += len(n.Reads)
			h := n.Status().Head
			if h.Digest != head.Digest || h.Block != head.Block || h.Revision != head.Revision {
				t.Fatalf("seed %d: node %d ends at height %d, revision %d, state %s; node 0 at %d, %d, %s", s, n.Index,
					h.Height, h.Revision, h.Digest.Short(), head.Height, head.Revision, head.Digest.Short())
			}
			for id, reply := range n.Done {
				if reply.Outcome == nil {
					continue
				}
				got, ok := w.outcome(t, n, id)
				if !ok || got.Revision != reply.Outcome.Revision || got.Height != reply.Height {
					t.Fatalf("seed %d: node %d told revision %d for a mutation that stands at %+v, %v", s, n.Index, reply.Outcome.Revision, got, ok)
				}
			}
		}
	})
	if *seed == 0 && reads < 10**worlds {
		t.Fatalf("only %d linearizable reads were answered", reads)
	}
	t.Logf("%d linearizable reads", reads)
}

// TestCrashAtEveryBoundary kills nodes before and after each single effect of
// their steps, hundreds of times: between "ballot durable" and "ballot sent",
// and everywhere else. No anchor ever signs two conflicting ballots (watched by
// the world over all lives of a node), and the network goes on.
func TestCrashAtEveryBoundary(t *testing.T) {
	crashes, after := 0, make(map[int]int)
	seeds(t, func(t *testing.T, s uint64) {
		w := start(t, Config{Seed: s, Loss: 20})
		r := w.Rand()
		down := 0
		for _, n := range w.Nodes {
			n.Doomed = func(boundary int) bool {
				if down > 0 || r.IntN(40) > 0 {
					return false
				}
				crashes++
				after[min(boundary, 6)]++
				down++
				w.At(time.Duration(1+r.IntN(200))*time.Millisecond, func() {
					down--
					if err := n.Up(); err != nil {
						t.Error(err)
					}
				})
				return true
			}
		}
		for i := range 60 {
			w.At(time.Duration(i)*50*time.Millisecond, func() { w.Nodes[i%4].Submit(put(fmt.Sprint("/k", i%5), fmt.Sprint(i))) })
		}
		w.Run(5*time.Second, nil)
		for _, n := range w.Nodes {
			n.Doomed = nil
			if err := n.Up(); err != nil {
				t.Fatal(err)
			}
		}
		id := w.Nodes[0].Submit(put("/last", "1"))
		if !w.Run(time.Minute, func() bool { _, ok := w.Nodes[0].Done[id]; return ok }) {
			t.Fatalf("seed %d: no progress after the crashes: %v", s, w.Err)
		}
	})
	if *seed == 0 && crashes < 5**worlds {
		t.Fatalf("only %d crashes", crashes)
	}
	t.Logf("%d crashes, by the number of the effect before which they came: %v", crashes, after)
}

// TestNoQuorumNoCommit takes half of the weight away: nothing commits, and
// everything does once one anchor returns, each mutation once.
func TestNoQuorumNoCommit(t *testing.T) {
	seeds(t, func(t *testing.T, s uint64) {
		w := start(t, Config{Seed: s})
		w.Nodes[2].Cut(true)
		w.Nodes[3].Cut(true)
		m := w.Mutation(put("/a", "1"))
		id := w.Nodes[0].SubmitMutation(m)
		if w.Run(30*time.Second, func() bool { return w.Nodes[0].Height > 0 || w.Nodes[1].Height > 0 }) {
			t.Fatal("committed without a quorum")
		}
		w.Nodes[0].SubmitMutation(m) // the client tries again
		w.Nodes[int(s)%2].Submit(put("/b", "2"))
		w.Nodes[2].Cut(false)
		if !w.Run(time.Minute, func() bool { _, ok := w.Nodes[0].Done[id]; return ok }) {
			t.Fatalf("seed %d: not committed although a quorum is back: %v", s, w.Err)
		}
		w.Nodes[0].SubmitMutation(m) // and once more
		w.Run(30*time.Second, nil)
		head := w.Nodes[0].Status().Head
		if w.Err != nil || head.Revision != 3 || w.Nodes[2].Status().Head.Digest != head.Digest {
			t.Fatalf("seed %d: revision %d after two writes, %v", s, head.Revision, w.Err)
		}
	})
}

// TestBlocksThatCannotBecomeFinalAreFew: under a policy that wants 90 % to
// finalize, and with a quarter away, blocks are notarized and cannot become
// final. The network waits for the quarter without piling up blocks.
func TestBlocksThatCannotBecomeFinalAreFew(t *testing.T) {
	rules := quorum.DefaultRules(quorum.BFT)
	rules.Finalize = quorum.Rule{Num: 9, Den: 10}
	w := start(t, Config{Seed: 5, Rules: &rules})
	w.Nodes[3].Crash(0)
	id := w.Nodes[0].Submit(put("/a", "1"))
	for i := range 100 {
		w.At(time.Duration(i)*100*time.Millisecond, func() { w.Nodes[i%3].Submit(put("/b", fmt.Sprint(i))) })
	}
	w.Run(time.Minute, nil)
	if v := w.Nodes[0].Status().View; w.Nodes[0].Height > 0 || v > 300 {
		t.Fatalf("height %d, view %d after a minute without a quorum to finalize", w.Nodes[0].Height, v)
	}
	if err := w.Nodes[3].Up(); err != nil {
		t.Fatal(err)
	}
	if !w.Run(2*time.Minute, func() bool { _, ok := w.Nodes[0].Done[id]; return ok }) {
		t.Fatalf("not final although all are back: %v", w.Err)
	}
}

// TestTwinsAreProvenAndHarmless runs one of four anchors twice on one key. The
// honest ones agree and go on; where the twins contradicted each other the proof
// stands in a final block, and in the trust ledger.
func TestTwinsAreProvenAndHarmless(t *testing.T) {
	proven := 0
	seeds(t, func(t *testing.T, s uint64) {
		w := start(t, Config{Seed: s, Twins: 1, Loss: int(s) % 50})
		r := w.Rand()
		for i := range 40 {
			w.At(time.Duration(r.IntN(4000))*time.Millisecond, func() { w.Nodes[i%5].Submit(put(fmt.Sprint("/k", i%5), fmt.Sprint(i))) })
		}
		w.Run(6*time.Second, nil)
		w.cfg.Loss = 0
		id := w.Nodes[0].Submit(put("/last", "1"))
		if !w.Run(2*time.Minute, func() bool { _, ok := w.Nodes[0].Done[id]; return ok }) {
			t.Fatalf("seed %d: no progress beside an equivocator: %v", s, w.Err)
		}
		w.Run(time.Minute, nil)
		if w.Err != nil {
			t.Fatal(w.Err)
		}
		state, err := scope.Open(w.Nodes[0].Disk, w.Genesis.Hash())
		if err != nil {
			t.Fatal(err)
		}
		ledger, err := state.Ledger()
		if err != nil {
			t.Fatal(err)
		}
		for st := range ledger.All() {
			if st.Barred && !w.twins()[st.Anchor] {
				t.Fatalf("seed %d: an honest anchor is barred", s)
			}
			if st.Barred {
				proven++
			}
		}
	})
	if *seed == 0 && proven < *worlds/4 {
		t.Fatalf("the twins were proven at fault in %d of %d worlds only", proven, *worlds)
	}
	t.Logf("proven at fault on the chain in %d of %d worlds", proven, *worlds)
}

func (w *World) outcome(t *testing.T, n *Node, id aweigh.Hash) (scope.Receipt, bool) {
	state, err := scope.Open(n.Disk, w.Genesis.Hash())
	if err != nil {
		t.Fatal(err)
	}
	r, ok, err := state.Outcome(id)
	if err != nil {
		t.Fatal(err)
	}
	return r, ok
}
