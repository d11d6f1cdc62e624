package sim

import (
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// divide aims at the rules by which views of mode fast end (P57, P58). A member that leads shows each half of the
// others another block, so that no notarization weighs enough to decide and one may still form. Each member votes for
// both blocks, keeps its ballots to finalize from its victims, and gives up a view in which it voted: its ballots to
// nullify name another block, or none, before each of the others, and some anchors get two of them.
type divide struct{ equivocate }

func (d *divide) bend(l *liar, out []packet) []packet {
	if !l.may() {
		return out
	}
	other := make(map[*frame]*frame) // what the victims get in its place
	return slices.DeleteFunc(out, func(x packet) bool {
		b, ok := x.frame.open().(votes.Ballot)
		switch {
		case !ok || b.Anchor != l.n.anchorID() || b.Domain.Epoch != l.domain().Epoch:
			return !ok && d.instead(l, x, other)
		case b.Subject.Kind == quorum.Nullify:
			d.name(l, x.to, b.Subject.View, x.wait)
			return true
		case b.Subject.Kind == quorum.Finalize:
			return l.victim(x.to, b.Subject.View)
		}
		if l.rand.IntN(2) == 0 {
			d.name(l, x.to, b.Subject.View, x.wait+time.Duration(l.rand.Int64N(int64(l.w.Scenario.Network.Timing.View))))
		}
		_, two := l.twoFor[b.Subject.View]
		return two && d.instead(l, x, other)
	})
}

// name sends a node ballots to nullify a view.
func (d *divide) name(l *liar, to *Node, v aweigh.View, wait time.Duration) {
	for range 1 + l.rand.IntN(2) {
		s := l.giveUp(v)
		l.told("divide", "%s hears %v", to, s)
		l.w.send(l.n, to, &frame{raw: machine.Frame(l.sign(s))}, wait)
	}
}
