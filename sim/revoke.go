package sim

import (
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
)

// revoke makes the anchors of the scope above order another government for a delegated
// scope, and asks again until that is ordered.
func (w *World) revoke(m scenario.Motion) {
	if !w.firing {
		return
	}
	c := w.governing(m.Prefix)
	if string(c.Genesis.Prefix()) != m.Prefix {
		w.at(delegateAgain, func() { w.revoke(m) }) // not founded yet
		return
	}
	if m.Mode == "" {
		m.Mode = c.Genesis.Policy.Rules.Mode.String()
	}
	above, child := c.above(), w.descendant(m)
	for _, r := range above.orders {
		if string(canon.Encode(r.Child)) == string(canon.Encode(*child)) {
			return
		}
	}
	w.say("others shall govern %q, it is asked", m.Prefix)
	above.carry(scope.Decision{Kind: scope.Revoke, Child: child}, above.sitting())
	w.at(delegateAgain, func() { w.revoke(m) })
}

// above is the world of the scope that delegated to this one.
func (w *World) above() *World { return w.find(w.Genesis.Descent.Parent) }

// heard gives a part the orders of the scope above that its node knows.
func (n *Node) heard(r *scope.Revocation) {
	if r == nil || n.machine == nil {
		return
	}
	above := n.world.above()
	if !slices.ContainsFunc(above.orders, r.Equal) && n.root().liar == nil {
		above.orders = append(above.orders, r)
		n.world.log(n, "ordered", "by the scope above, entry %d", r.Entry)
		if r.Folds() {
			n.world.homing.ordered = n.world.Now()
		}
		n.world.takesBack(n, r)
	}
	if r.Entry >= n.orders {
		n.orders = r.Entry + 1
		if n.stays(r) {
			return
		}
		n.soon(machine.Ordered{Revocation: r})
	}
}

// yields holds a change of government to the orders of the scope above, and reports whether
// the epoch is one.
func (x *standing) yields(w *World, n *Node, e *scope.Epoch) bool {
	head := n.state().Head()
	obeyed := head.Obeyed
	if e.Home == nil && head.Closed { // in the same step, which went on to a later epoch
		return false
	}
	if obeyed == x.obeyed {
		if e.Home == nil {
			return false
		}
		w.holds(Obeyed, n, false, "epoch %d: it closes, and obeys no order", e.Number)
		return true
	}
	x.obeyed = obeyed
	at := slices.IndexFunc(w.above().orders, func(r *scope.Revocation) bool { return r.Entry+1 == obeyed })
	failed := func(r *scope.Revocation) bool { return r.Folds() && r.Entry == obeyed && w.ordered(r) }
	if at < 0 && e.Home == nil && slices.ContainsFunc(w.above().orders, failed) {
		return false // it came to hold too much, and will try again
	}
	w.holds(Obeyed, n, at >= 0, "epoch %d: it obeys an order, entry %d, that the scope above never gave", e.Number, obeyed-1)
	if at < 0 {
		return true
	}
	r := w.above().orders[at]
	w.holds(Obeyed, n, e.Time >= r.Time.Add(w.Genesis.Notice()), "epoch %d begins %v after an order, before its notice ends", e.Number, e.Time.Sub(r.Time))
	if r.Folds() {
		w.holds(Obeyed, n, e.Home != nil && e.Home.Order == r.Hash() && w.ordered(r), "epoch %d: it is ordered to close, and does not, or by another order", e.Number)
		return true
	}
	w.holds(Obeyed, n, e.Home == nil, "epoch %d: it closes by an order that others shall govern", e.Number)
	same := e.Policy.Hash() == r.Child.Policy.Hash() && len(e.Roster.Anchors) == len(r.Child.Anchors)
	for i := range r.Child.Anchors {
		same = same && e.Roster.Anchors[i].Key.ID() == r.Child.Anchors[i].Key.ID() && x.ledger.Len() == len(r.Child.Anchors)
	}
	w.holds(Obeyed, n, same, "epoch %d is governed by others than an order says", e.Number)
	w.watch.reach("order obeyed")
	if w.firing && (w.faultsActive() || w.scopes[0].faultsActive()) {
		w.watch.reach("order obeyed under fire")
	}
	return true
}

// mutiny gives its members an order that the scope above never gave: they alone govern.
// Their machines obey it, and propose it.
type mutiny struct {
	plain
	told map[*Node]int // lives in which each was told
}

func (x *mutiny) tick(l *liar) {
	if l.w.number == 0 || l.w.Genesis.Notice() == 0 || l.n.machine == nil || x.told[l.n] == l.n.life {
		return
	}
	if x.told == nil {
		x.told = make(map[*Node]int)
	}
	x.told[l.n] = l.n.life
	e := l.w.epochs[len(l.w.epochs)-1]
	r := &scope.Revocation{
		Child:  scope.Child{Prefix: l.w.Genesis.Prefix(), Name: l.w.Genesis.Name, Policy: l.w.Genesis.Policy},
		Height: 1, Time: aweigh.Instant(1), Entry: 1 << 40,
	}
	for _, a := range l.w.Genesis.Anchors {
		if slices.ContainsFunc(l.members, func(m *Node) bool { return m.key != nil && m.anchorID() == a.Key.ID() }) {
			r.Child.Anchors = append(r.Child.Anchors, a)
		}
	}
	if len(r.Child.Anchors) == 0 || e.Number > 1<<20 {
		return
	}
	l.told("mutiny", "%d members shall govern alone", len(r.Child.Anchors))
	l.n.soon(machine.Ordered{Revocation: r})
}
