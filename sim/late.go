package sim

import (
	"slices"
	"time"

	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/sim/scenario"
	"github.com/aweigh/aweigh/votes"
)

// lateness is a fault that holds frames back.
type lateness interface {
	hold(from, to *Node, f *frame) time.Duration
}

// late is a fault that delays frames by kind and destination, so that some nodes learn much earlier than others that
// a block is final.
type late struct {
	w     *World
	nodes []*Node
	by    time.Duration
	news  bool // all but nodes get frames late, and only frames about final blocks
}

// delays begins a fault of kind lag or firsthand. Nodes restart f.Rate times while they read, and read again.
func (w *World) delays(f scenario.Fault, nodes []*Node, lasts time.Duration) (end func()) {
	x := &late{w: w, nodes: nodes, by: f.By, news: f.Kind == "firsthand"}
	for _, n := range nodes {
		w.log(n, "cut", "%s", f.Kind)
	}
	w.wires.late = append(w.wires.late, x)
	for i := int64(0); i < f.Rate && len(nodes) > 0; i++ {
		w.at(time.Duration(w.chance.Int64N(int64(lasts)+1)), func() {
			n := nodes[w.chance.IntN(len(nodes))]
			n.restartAndRead()
			w.at(f.By/2, n.restartAndRead)
		})
	}
	return func() {
		w.wires.late = slices.DeleteFunc(w.wires.late, func(o lateness) bool { return o == x })
		for _, n := range nodes {
			w.log(n, "joined", "after %s", f.Kind)
		}
	}
}

// restartAndRead restarts a node that runs, and reads at once: answers to requests of its earlier life may be on
// their way.
func (n *Node) restartAndRead() {
	if n.world.firing && n.machine != nil {
		n.crash(n.Disk.Unsynced())
		n.Up()
		n.readNow()
	}
}

// dispensableNodes is honest nodes, drawn, without which the others can make blocks final: as many as there can
// be.
func (w *World) dispensableNodes() (nodes []*Node) {
	rule, total := w.rules.Finalize, w.weights.Total()
	left := total
	for _, i := range w.chance.Perm(len(w.Nodes)) {
		n := w.Nodes[i]
		if n.liar == nil && n.Face == 0 && left-w.weight(n) >= rule.Threshold(total) {
			nodes, left = append(nodes, n), left-w.weight(n)
		}
	}
	return nodes
}

// hold is for how long all such faults together hold a frame back.
func (l *wires) hold(from, to *Node, f *frame) (d time.Duration) {
	for _, x := range l.late {
		d += x.hold(from, to, f)
	}
	return d
}

// hold implements lateness.
func (x *late) hold(from, to *Node, f *frame) time.Duration {
	switch {
	case !x.holds(from, to, f):
		return 0
	case !x.news && machine.FrameKind(f.raw) == "answer" && x.w.links.IntN(2) == 0: // sooner than its block
		return 0
	}
	return x.by
}

// holds reports whether a frame is late. Old answers of liars are not.
func (x *late) holds(from, to *Node, f *frame) bool {
	if from.liar != nil && from.liar.has("stale") && machine.FrameKind(f.raw) == "answer" {
		return false
	}
	from, to = from.root(), to.root()
	if x.news {
		return !slices.Contains(x.nodes, to) && f.news(slices.Contains(x.nodes, from))
	}
	return slices.Contains(x.nodes, to) && !slices.Contains(x.nodes, from)
}

// news reports whether a frame may tell that a block is final; an answer to a read does so if it comes from one that
// knows.
func (f *frame) news(known bool) bool {
	switch machine.FrameKind(f.raw) {
	case "ballot":
		b, ok := f.open().(votes.Ballot)
		return ok && b.Subject.Kind == quorum.Finalize
	case "offer", "blocks", "block", "announcement":
		return true
	case "answer", "proposal":
		return known
	}
	return false
}
