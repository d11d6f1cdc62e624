package sim

import (
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/scope"
)

// homeward looks at whether an epoch is the last one, or says that the scope is quiet.
func (w *World) homeward(e *scope.Epoch) {
	switch {
	case e.Home != nil:
		w.closes(e)
	case e.Quiet:
		w.quiets(e)
	}
}

// quiets lets nodes of the scope above show, as long as an epoch lasts, that this one is quiet.
func (w *World) quiets(e *scope.Epoch) {
	if w.number == 0 || w.island {
		return
	}
	w.watch.reach("quiet scope")
	if w.homing.busy == nil {
		w.homing.busy = make(map[*Node]aweigh.Instant)
	}
	var tick func()
	tick = func() {
		if int(e.Number) == len(w.epochs)-1 && !w.homing.closed && !w.mustLeave() {
			w.bringHome(func(p *Node) bool { return p.epoch().Quiet })
			w.at(homeTick, tick)
		}
	}
	w.at(homeTick, tick)
}

// epoch is the one that a node's part is in.
func (n *Node) epoch() *scope.Epoch {
	e, err := n.state().Epoch()
	must.OK(err, "reading an epoch")
	return e
}

// takesBack looks at an order of the scope above that no decision gave: the scope split off by itself, was quiet in
// some epoch, and both policies let it go.
func (w *World) takesBack(n *Node, r *scope.Revocation) {
	above := w.above()
	part := above.Nodes[n.Index]
	if part.machine == nil || r.Entry >= part.state().Head().LineageSize {
		return
	}
	e, _, err := part.state().Lineage().Entry(r.Entry)
	must.OK(err, "reading an entry")
	if e.Reason == "" {
		return
	}
	was := above.epochs[0]
	for _, later := range above.epochs[1:] {
		if later.Start < r.Height {
			was = later
		}
	}
	quiet := slices.ContainsFunc(w.epochs, func(e *scope.Epoch) bool { return e.Quiet })
	above.holds(Obeyed, part, w.watch.lost || r.Folds() && w.byItself && quiet && was.Policy.Topology.Fold == scope.ConductAct && w.Genesis.Policy.Topology.Fold == scope.ConductAct,
		"%q is ordered to come home %s, and is not quiet, or may not", w.Genesis.Prefix(), e.Reason)
	w.watch.reach("ordered home by itself")
	w.called = true
	above.moves = append(above.moves, was.Number+1)
}
