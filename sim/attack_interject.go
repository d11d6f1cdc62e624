package sim

import (
	"github.com/aweigh/aweigh/node/machine"
)

// interject proposes out of turn: when it gets a leader's block, it proposes one of the
// same content, in its own name, to all that may not have the leader's.
type interject struct {
	plain
	had map[turn]bool
}

// turn is a view in which a member interjected.
type turn struct {
	by *Node
	at place
}

func (i *interject) hear(l *liar, from *Node, f *frame) bool {
	p, ok := f.open().(machine.Proposal)
	if !ok || l.friend(from) || l.n.machine == nil || p.Header.Epoch != l.domain().Epoch || !l.may() {
		return true
	}
	e, now := l.n.machine.Epoch(), turn{l.n, place{p.Header.Epoch, p.Header.View}}
	if i.had[now] || p.Header.Proposer != leads(e.Leaders(), e.Seed(), p.Header.View) {
		return true // once in a view: other coalitions may make the same attack
	}
	if i.had == nil {
		i.had = make(map[turn]bool)
	}
	i.had[now] = true
	p.Header.Time++
	lie := &frame{raw: machine.Frame(l.propose(p))}
	for _, to := range l.others() {
		if to != from {
			l.told("interject", "%s hears of another block in view %d, out of turn", to, p.Header.View)
			l.sendFrame(to, lie)
		}
	}
	return true
}
