package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/sim/scenario"
)

// startedWrong is four anchors, of which the last was started with a clock that
// is off.
func startedWrong(t *testing.T, seed uint64, by time.Duration) *World {
	t.Helper()
	w := newWorld(t, scenario.Scenario{Seed: seed, Network: scenario.Network{Anchors: 4}})
	w.Nodes[3].restart(by)
	w.Run(time.Second, nil)
	return w
}

// restart starts a node anew with a clock that is off.
func (n *Node) restart(by time.Duration) {
	n.crash(0)
	n.clock.set(n.world.now, by, 0)
	n.Up()
}

// writes has the nodes put one value after another, and returns how long that
// took.
func (w *World) writes(t *testing.T, name string, count int, at ...*Node) time.Duration {
	t.Helper()
	start := w.now
	for i := range count {
		var r machine.Reply
		at[i%len(at)].submit(fmt.Sprint("/", name, i), &r)
		if !w.Run(time.Minute, func() bool { return r.Outcome != nil || r.Refused != nil }) || r.Refused != nil {
			t.Fatalf("write %d of %s: %v, %v", i, name, r.Refused, w.watch.broken)
		}
	}
	return w.now.Sub(start)
}

// TestClockAnHourOffHarmsItsAnchorAlone: everything that is submitted elsewhere
// becomes final, at the price of the views that the anchor leads. It follows, and takes part
// again once it was restarted with the right time. One that is ahead refuses what its own clients
// want; one that is behind dates it by the time of the scope, so it is done.
func TestClockAnHourOffHarmsItsAnchorAlone(t *testing.T) {
	testshort.Skip(t)
	const count = 40
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		for seed := uint64(1); seed <= testshort.Cases[uint64](1, 3, 5); seed++ {
			w := startedWrong(t, seed, by)
			off, view := w.Nodes[3], w.Nodes[0].Status().View
			took := w.writes(t, "during", count, w.Nodes[:3]...)
			lost := time.Duration(w.Nodes[0].Status().View-view) - count
			t.Logf("%v, seed %d: %d writes took %v, and %d views were lost", by, seed, count, took, lost)
			if lost < 1 || took > 2*time.Second+lost*600*time.Millisecond {
				t.Errorf("%v, seed %d: %d writes took %v, and %d views were lost", by, seed, count, took, lost)
			}
			if !w.Run(10*time.Second, func() bool { return off.Height == w.Nodes[0].Height }) {
				t.Errorf("%v, seed %d: it does not follow: height %d of %d", by, seed, off.Height, w.Nodes[0].Height)
			}
			var own machine.Reply
			off.submit("/own", &own)
			w.Run(10*time.Second, func() bool { return own.Outcome != nil || own.Refused != nil })
			if behind := by < 0; (own.Outcome != nil) != behind || (own.Refused == nil) != behind {
				t.Errorf("%v, seed %d: its own client is told %+v", by, seed, own)
			}

			off.restart(0)
			w.Run(10*time.Second, nil)
			if took := w.writes(t, "after", count, w.Nodes...); took > 2*time.Second {
				t.Errorf("%v, seed %d: %d writes took %v after its clock was right", by, seed, count, took)
			}
			w.Nodes[2].crash(0) // now its vote is needed
			w.writes(t, "needed", 5, w.Nodes[0], w.Nodes[1], off)
			if len(w.watch.broken) > 0 {
				t.Errorf("%v, seed %d: %v", by, seed, w.watch.broken)
			}
		}
	}
}

// TestClockAMinuteAheadStillVotes, so that one more anchor may be away. One an
// hour ahead takes what clients want for expired, and counts as away until it was
// restarted with the right time. One that is behind takes the others' blocks for blocks of the
// future, and takes part where it leads itself. No clock makes block time run ahead.
func TestClockAMinuteAheadStillVotes(t *testing.T) {
	for _, by := range []time.Duration{time.Minute, -time.Minute, time.Hour, -time.Hour} {
		w := startedWrong(t, 1, by)
		w.writes(t, "before", 20, w.Nodes[:3]...)
		if ahead := w.Nodes[0].Status().Head.Time.Sub(w.now); ahead > 500*time.Millisecond {
			t.Errorf("%v: the newest block is %v ahead of the clocks of those who are right", by, ahead)
		}
		w.Nodes[2].crash(0)
		var r machine.Reply
		w.Nodes[0].submit("/a", &r)
		votes := w.Run(2*time.Minute, func() bool { return r.Outcome != nil })
		if want := by != time.Hour; votes != want {
			t.Errorf("%v: it votes is %v, want %v", by, votes, want)
		}
		w.Nodes[3].restart(0)
		if !w.Run(time.Minute, func() bool { return r.Outcome != nil }) || len(w.watch.broken) > 0 {
			t.Errorf("%v: its vote does not count after its clock was right: %v", by, w.watch.broken)
		}
	}
}
