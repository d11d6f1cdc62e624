package sim

import (
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// ends knows which blocks end an epoch, and which only wait above one.
type ends struct {
	after  map[aweigh.Hash]aweigh.Epoch // blocks that end an epoch, and those above them, with the epoch
	now    bool                         // an epoch is ending
	until  aweigh.Instant               // it counts as ending for a moment after that
	fronts []func()                     // faults that begin with it
}

// is reports whether an epoch is ending, or just did.
func (x *ends) is(w *World) bool { return x.now || w.now < x.until }

// proposed checks a proposal: an honest leader's block on the end of an epoch
// is empty (P25).
func (x *ends) proposed(w *World, n *Node, p machine.Proposal) {
	if x.after == nil {
		x.after = make(map[aweigh.Hash]aweigh.Epoch)
	}
	h := p.Header
	ended, above := x.after[h.Parent]
	above = above && ended == h.Epoch
	if !h.Next.IsZero() || above {
		x.after[h.Hash()] = h.Epoch
	}
	if n.excused() {
		return
	}
	if above {
		w.holds(Ending, n, empty(&scope.Block{Header: h, Evidence: p.Evidence}) && len(p.Bundles) == 0 && h.Next.IsZero(),
			"proposes a block with content in view %d of epoch %d, above the one that ends it", h.View, h.Epoch)
	}
	if !h.Next.IsZero() && !x.now && h.Epoch == w.epochs[len(w.epochs)-1].Number {
		x.now = true
		for _, f := range x.fronts {
			f()
		}
	}
}

// empty reports whether a block holds nothing but its header.
func empty(b *scope.Block) bool {
	return len(b.Bundles) == 0 && b.Empty()
}

// began notes that a new epoch began somewhere.
func (x *ends) began(w *World) {
	x.now, x.until = false, w.now.Add(w.Scenario.Network.Timing.View)
}

// final holds a block that became final to not standing above the end of its epoch.
func (x *ends) final(w *World, n *Node, note machine.Finalized) {
	b, err := machine.History{Reader: n.Disk, Scope: w.id}.Block(note.Height)
	must.OK(err, "reading a final block")
	ended := !b.Header.Next.IsZero()
	_, waits := x.after[note.Block]
	if waits {
		w.holds(Ending, n, ended, "a block that waits above the end of epoch %d became final at height %d", note.Epoch, note.Height)
	}
	if ended {
		w.holds(Ending, n, note.Mutations == 0, "the block that ends epoch %d holds %d mutations", note.Epoch, note.Mutations)
	}
}

// chained holds a node's final blocks to epochs that follow each other, each from
// the block that ended the one before, which holds nothing.
func (x *ends) chained(w *World, n *Node, before *scope.Header, b *scope.Block) {
	if before == nil {
		return
	}
	want := before.Epoch
	if !before.Next.IsZero() {
		want++
	}
	if want != before.Epoch || b.Header.Epoch != want { // otherwise no epoch ends here
		w.holds(Ending, n, b.Header.Epoch == want, "the final block at height %d is of epoch %d, and epoch %d goes on", b.Header.Height, b.Header.Epoch, want)
	}
	if !b.Header.Next.IsZero() {
		w.holds(Ending, n, empty(b), "the block at height %d ends its epoch, and is not empty", b.Header.Height)
	}
}

// pauses measures how long clients wait at the end of an epoch: from the last
// block with content before it, or from the first waiting request if that is
// later, to the first block with content of the next epoch.
type pauses struct {
	all     []time.Duration
	content aweigh.Instant // of the last block with content
	open    bool           // an epoch began, and holds no content yet
}

func (x *pauses) began(*World) { x.open = true }

// final looks at a block that becomes final for the first time, before the
// requests in it count as answered.
func (x *pauses) final(w *World, note machine.Finalized) {
	if note.Mutations == 0 {
		return
	}
	if x.open && x.content != 0 {
		if since, waits := w.watch.waiting(); waits {
			x.all = append(x.all, w.now.Sub(max(x.content, since)))
		}
	}
	x.open, x.content = false, w.now
}

// waiting is since when the client waits that has waited longest for a write.
func (x *watch) waiting() (since aweigh.Instant, waits bool) {
	patience := 2 * x.w.Scenario.Load.Give
	for _, d := range x.undecided {
		if at := start.Add(d.begin); x.w.now.Sub(at) < patience && (!waits || at < since) {
			since, waits = at, true
		}
	}
	return since, waits
}

// faultsActive reports whether a node lies now, or a fault is in effect.
func (w *World) faultsActive() bool {
	for _, p := range w.roles {
		if p.on() {
			return true
		}
	}
	for _, n := range w.Nodes {
		if n.machine == nil {
			return true
		}
	}
	return len(w.wires.cut) > 0 || len(w.wires.clogged) > 0
}
