package sim

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// stubborn does not let its scope go home when it is ordered to, closes it by an order that was never given, and brings
// what was never held.
type stubborn struct {
	plain
	told map[*Node]int // lives in which each was told of an invented order
}

// stays reports whether a member keeps an order to come home from its machine.
func (n *Node) stays(r *scope.Revocation) bool {
	if n.liar == nil || !n.liar.has("stubborn") || !n.liar.on() || !r.Folds() {
		return false
	}
	n.liar.told("stubborn", "the scope stays")
	return true
}

func (x *stubborn) tick(l *liar) {
	if l.w.number == 0 || l.w.Genesis.Notice() == 0 || l.n.machine == nil || x.told[l.n] == l.n.life || !l.may() {
		return
	}
	if x.told == nil {
		x.told = make(map[*Node]int)
	}
	x.told[l.n] = l.n.life
	r := &scope.Revocation{Child: scope.Child{Prefix: l.w.Genesis.Prefix()}, Height: 1, Time: aweigh.Instant(1), Entry: 1 << 41}
	l.told("stubborn", "the scope shall close by an order that was never given")
	l.n.soon(machine.Ordered{Revocation: r})
}

// bendOne brings a step of a member's scope that was bent, through the node of an anchor of the scope above.
func (n *Node) bendOne(above *Node) {
	w := n.world
	h := w.homingAt(above)
	if h == nil || h.Closed && h.Next >= h.Parts {
		return
	}
	src := &scope.HomeSource{State: n.state(), Genesis: w.Genesis, Handovers: machine.History{Reader: n.Disk, Scope: w.id}.Handovers}
	b, err := src.Next(h, w.Genesis.Policy.Limits.MutationBytes)
	if err != nil || b == nil {
		must.Hold(w.watch.lost || err == nil, "bringing a scope home: %v", err)
		return
	}
	n.liar.told("stubborn", "brings what was never held")
	bent, how := w.bendHome(b)
	w.bring(above, bent, how)
}
