package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/sim/scenario"
)

// TestTimeAheadHoldsNothingUp: the clocks of a quorum, or of all, are hours ahead for a while, and right again after a
// restart. Requests then become final at once, and no block's time exceeds what clocks and parents allow.
func TestTimeAheadHoldsNothingUp(t *testing.T) {
	const ahead = 6 * time.Hour
	for _, mode := range []string{"bft", "crash"} {
		for wrong := 3; wrong <= 4; wrong++ {
			for seed := uint64(1); seed <= testshort.Cases[uint64](1, 3, 3); seed++ {
				w := newWorld(t, scenario.Scenario{Seed: seed, Network: scenario.Network{Anchors: 4, Mode: mode}})
				for _, n := range w.Nodes[:wrong] {
					n.restart(ahead)
				}
				w.Run(time.Second, nil)
				w.watch.time.block = w.now.Add(ahead) // clients whose clocks are wrong as well
				w.writes(t, "wrong", 5, w.Nodes[:wrong]...)
				if by := w.Nodes[0].Status().Head.Time.Sub(w.now); by < ahead-time.Minute {
					t.Fatalf("%s, seed %d: the scope's time is %v ahead: the test did not reach what it is meant to", mode, seed, by)
				}
				w.watch.time.look(w)
				for _, n := range w.Nodes[:wrong] {
					n.restart(0)
				}
				w.Run(5*time.Second, nil)
				if took := w.writes(t, "right", 20, w.Nodes...); took > 10*time.Second {
					t.Errorf("%s, seed %d: 20 writes took %v", mode, seed, took)
				}
				w.Nodes[3].crash(0) // all others are needed
				w.writes(t, "needed", 5, w.Nodes[:3]...)
				if len(w.watch.broken) > 0 {
					t.Errorf("%s, seed %d: %v", mode, seed, w.watch.broken)
				}
			}
		}
	}
}

// TestDrawnTimesAheadHoldNothingUp runs the first drawn worlds in which the clocks of a quorum run ahead and come back:
// each heals, and in most of them the scope's time was ahead of all clocks.
func TestDrawnTimesAheadHoldNothingUp(t *testing.T) {
	testshort.Skip(t)
	worlds := testshort.Cases[uint64](0, 4, 10)
	reached := make(map[string]uint64)
	for n, seed := uint64(0), uint64(1); n < worlds; seed++ {
		s := scenario.Draw(seed)
		if !slices.ContainsFunc(s.Faults.Timed, func(f scenario.Fault) bool { return f.Kind == "ahead" }) {
			continue
		}
		n++
		r := mustRun(t, s)
		reachedGoals(r, reached)
		if r.Failed() {
			t.Errorf("seed %d: %s", seed, r.Failure())
		}
	}
	if reached["time ahead"] < worlds/2 || reached["healed"] != worlds {
		t.Errorf("%d blocks of a time ahead, %d of %d worlds healed", reached["time ahead"], reached["healed"], worlds)
	}
}
