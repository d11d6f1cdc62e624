package sim

import (
	"encoding/hex"
	"time"

	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/sim/scenario"
)

// script gives frames of consensus between anchors the fates of Scenario.Schedule: one byte for each ballot, proposal
// and offer, in the order in which they are sent. Once the bytes are used up, nothing more happens. So whatever is
// possible is a string of bytes, and strings that begin alike lead through the same states.
type script struct {
	w     *World
	bytes []byte
	used  int
	down  uint64 // weight of the nodes that it keeps down
	dead  int    // and their number
}

func (x *script) open(w *World) {
	var err error
	x.w = w
	x.bytes, err = hex.DecodeString(w.Scenario.Schedule)
	must.OK(err, "reading a schedule that was checked")
}

// next is the fate of a frame.
func (x *script) next(from, to *Node, f *frame) scenario.Fate {
	if x.used == len(x.bytes) || from.key == nil || to.key == nil {
		return scenario.Fate{}
	}
	switch machine.FrameKind(f.raw) {
	case "ballot", "proposal", "offer":
	default:
		return scenario.Fate{}
	}
	fate := scenario.FateOf(x.bytes[x.used], x.w.Scenario.Network.Timing.View)
	x.used++
	if fate.Restart {
		x.restart(to, fate.Wait)
		return scenario.Fate{}
	}
	return fate
}

// restart makes a node die, and start again after a while, unless those that are up could not
// decide.
func (x *script) restart(n *Node, after time.Duration) {
	w := x.w
	weight, total := w.weight(n), w.weights.Total()
	if n.liar != nil || !w.rules.Finalize.Met(total-x.down-weight, total, w.weights.Len()-x.dead-1) {
		return
	}
	x.down += weight
	x.dead++
	w.at(0, func() { n.crash(n.Disk.Unsynced() / 2) })
	w.at(after, func() {
		x.down -= weight
		x.dead--
		n.Up()
	})
}
