package sim

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
)

// judged is done, with each answer to a linearizable read checked at once against P23: it sees all that was final at
// any honest node before the read began, in the state that all nodes have at its height.
func (n *Node) judged(done func(machine.Reply)) func(machine.Reply) {
	x := &n.world.watch
	floor, lagged := x.top, n.Height < x.top
	return func(r machine.Reply) {
		if r.Refused == nil && n.liar == nil {
			x.judge(n, r.Height, floor)
			if lagged {
				x.reach("read at a lagging node")
			}
		}
		done(r)
	}
}

func (x *watch) judge(n *Node, at, floor aweigh.Height) {
	if floor > 0 {
		x.w.holds(Linearizable, n, at >= floor, "a linearizable read is answered at height %d, and began when %d was final", at, floor)
	}
	head := n.state().Head()
	want, known := x.digests[at]
	if known {
		x.w.holds(Linearizable, n, head.Height == at && head.Digest == want, "a read at height %d finds state %s of height %d, and others had %s",
			at, head.Digest.Short(), head.Height, want.Short())
	}
	if x.w.firing {
		x.reach("read under fire")
	}
}
