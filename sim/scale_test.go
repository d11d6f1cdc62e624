package sim

import (
	"runtime"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/sim/scenario"
)

// TestManyAnchorsCostNoMoreThanTheirMessages bounds what the scenario "thousand"
// takes, with fewer anchors, in units that do not depend on the machine. Each
// anchor asks each, answers each, notarizes and finalizes: four messages for a
// pair. A message that costs an encoding, or a decoding, of its own shows in the
// allocations.
func TestManyAnchorsCostNoMoreThanTheirMessages(t *testing.T) {
	testshort.Skip(t)
	const anchors = 150
	s, err := scenario.FromLibrary("thousand")
	if err != nil {
		t.Fatal(err)
	}
	s.Network.Anchors = anchors
	w := newWorld(t, s)
	w.startClients()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	final := w.Run(time.Second, func() bool { return w.watch.finalAt[1] != 0 })
	runtime.ReadMemStats(&after)
	messages := float64(w.wires.messages)
	if !final || len(w.watch.broken) > 0 {
		t.Fatalf("not final after %v: %v", w.Now(), w.watch.broken)
	}
	perPair := messages / (anchors * (anchors - 1))
	objects := float64(after.Mallocs-before.Mallocs) / messages
	size := float64(after.TotalAlloc-before.TotalAlloc) / messages
	t.Logf("%.2f messages for a pair of anchors; of each %.2f objects and %.0f bytes allocated, %.0f bytes sent",
		perPair, objects, size, float64(w.wires.bytes)/messages)
	if perPair > 4.1 || objects > 3 || size > 800 {
		t.Error("that is more than a thousand anchors can afford")
	}
}
