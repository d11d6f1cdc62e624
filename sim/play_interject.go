package sim

import (
	"github.com/aweigh/aweigh/node"
)

// interject proposes out of turn: when it hears a leader's block, it proposes one of the
// same content, in its own name, to all that may not have heard of the leader's.
type interject struct{ plain }

func (i *interject) hear(l *liar, from *Node, f *frame) bool {
	p, ok := f.open().(node.Proposal)
	me := l.n.key.Public().ID()
	if !ok || p.Header.Proposer == me || l.n.machine == nil || p.Header.Epoch != l.domain().Epoch || !l.may() {
		return true
	}
	p.Header.Time++
	lie := &frame{raw: node.Frame(l.propose(p))}
	for _, to := range l.others() {
		if to != from {
			l.told("interject", "%s hears of another block in view %d, out of turn", to, p.Header.View)
			l.sendFrame(to, lie)
		}
	}
	return true
}
