package sim

import (
	"bytes"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// split looks at a scope that was founded: if no decision asked for it, the policy lets the scope above split, as often
// as it did, and no sooner after the last split.
func (w *World) split(n *Node, d scope.Delegation) {
	if w.watch.lost || !w.watch.within || slices.ContainsFunc(w.decisions, func(asked scope.Decision) bool {
		return asked.Kind == scope.Delegate && bytes.Equal(asked.Child.Prefix, d.Prefix)
	}) {
		return
	}
	e := w.epochs[0]
	for _, later := range w.epochs[1:] {
		if later.Start < d.Height {
			e = later
		}
	}
	t, next := &e.Policy.Topology, e.Number+1
	w.find(d.Child).byItself = true
	now, rested := 0, true // splits that were not ordered to come home
	for _, c := range w.scopes[1:] {
		if c.byItself && c.Genesis.Descent.Parent == w.id && !c.mustLeave() {
			now++
		}
	}
	for _, moved := range w.moves {
		rested = rested && (moved > next || next-moved >= aweigh.Epoch(t.Rest))
	}
	w.moves = append(w.moves, next)
	w.holds(Handover, n, t.Split == scope.ConductAct && now <= int(t.Most) && rested,
		"the scope for %q was founded by itself, as %d others, after moves at the start of epochs %v, under %+v", d.Prefix, now-1, w.moves, *t)
	w.watch.reach("split by itself")
	if int(next) >= len(w.epochs) {
		return
	}
	want, g := w.epochs[next].Policy, w.find(d.Child).Genesis
	w.holds(Handover, n, want.Topology.Split == scope.ConductAct, "the scope for %q was founded by itself, and the next policy does not permit it: %+v", d.Prefix, want.Topology)
	want.Topology.Split = scope.ConductAdvise
	roster, heads := &w.epochs[next].Roster, 0
	for i := range g.Anchors {
		a := &g.Anchors[i]
		seat, ok := roster.Seat(a.Key.ID())
		w.holds(Handover, n, ok && roster.Anchors[seat].Score == a.Score, "%s anchors the scope for %q with a score of %d, and has none, or another, here", a.Name, d.Prefix, a.Score)
		if roster.Weights.Of(a.Key.ID()) > 0 {
			heads++
		}
	}
	w.holds(Handover, n, g.Policy.Hash() == want.Hash() && heads == roster.Weights.Len() && (heads >= 4 || !g.Policy.Rules.Mode.Byzantine()),
		"the scope for %q has %d of the %d anchors that weigh, or another policy", d.Prefix, heads, roster.Weights.Len())
}
