package sim

import (
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// blockTime watches the time of a scope.
type blockTime struct {
	clock aweigh.Instant // the highest that a clock of those who do not lie has shown
	block aweigh.Instant // of the newest final block
}

// look notes what the clocks show.
func (x *blockTime) look(w *World) {
	for _, n := range w.Nodes {
		if n.liar == nil && n.machine != nil {
			x.clock = max(x.clock, n.local())
		}
	}
}

// final holds a final block's time to the clocks: it is no further ahead than the drift bound, or the smallest
// step past its parent's.
func (x *blockTime) final(w *World, n *Node, h aweigh.Height) {
	x.look(w)
	history := node.History{Reader: n.Disk, Scope: w.id}
	b, err := history.Block(h)
	must.OK(err, "reading a block that became final")
	parent := w.Genesis.Time
	if h > 1 {
		p, err := history.Block(h - 1)
		if err != nil {
			return // it came with a snapshot
		}
		parent = p.Header.Time
	}
	at := b.Header.Time
	x.block = max(x.block, at)
	most := x.clock.Add(w.Genesis.Policy.Limits.Drift)
	w.holds(Validity, n, !scope.Early(at, parent, most), "the block at height %d is %v ahead of the highest clock, and %v past its parent", h, at.Sub(x.clock), at.Sub(parent))
}

// from is from when on clients date what they ask for: the world's time, or the scope's where that is far ahead.
func (x *blockTime) from(now aweigh.Instant) aweigh.Instant {
	if x.block > now.Add(time.Minute) {
		return x.block
	}
	return now
}
