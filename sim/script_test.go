package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/sim/scenario"
)

// TestScheduleDecides: bytes of no fate change nothing; where all frames are lost, nothing is decided while bytes are
// left; and nodes restart.
func TestScheduleDecides(t *testing.T) {
	s := scenario.Scenario{
		Network: scenario.Network{Anchors: 4, EpochBlocks: 12}, Links: scenario.Links{Model: "constant", Delay: 2 * time.Millisecond},
		Load: scenario.Load{Clients: 2, Writes: 30, Reads: 6, Give: time.Second}, Stop: 4 * time.Second, Heal: &scenario.Heal{},
	}
	s.Network.Timing.View, s.Network.Timing.MaxView = 200*time.Millisecond, 800*time.Millisecond
	plain := mustRun(t, s)
	s.Schedule = strings.Repeat("00", 2000)
	if r := mustRun(t, s); r.Trace != plain.Trace {
		t.Error("bytes of no fate change what happens")
	}
	run := func(fate string, bytes int) *World {
		s.Schedule = strings.Repeat(fate, bytes)
		w := newWorld(t, s.WithDefaults())
		w.startClients()
		w.Run(2*time.Second, nil)
		return w
	}
	if w := run("b0", 2000); w.watch.top > 0 || w.script.used == 0 {
		t.Errorf("all frames are lost, and height %d is final", w.watch.top)
	}
	if w := run("e0", 3); w.Nodes[0].life+w.Nodes[1].life+w.Nodes[2].life+w.Nodes[3].life < 5 {
		t.Error("no node restarted")
	}
	if w := run("bf", 40); w.watch.top == 0 { // lost
		t.Error("nothing is decided once the bytes are used up")
	}
}
