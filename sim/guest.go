package sim

import "math/rand/v2"

// guest is outside of the network. It stands beside an honest node, and reaches the others by the links of that. It
// never crashes.
type guest struct {
	w      *World // of the root scope
	id     int
	beside int // index of the node
	rand   *rand.Rand
}

// travel calls do at the other end of the link with a node, unless the link is cut or loses
// it.
func (g *guest) travel(with *Node, do func()) {
	w, l := g.w, &g.w.wires
	if w.firing && l.loss > 0 && g.rand.Int64N(million) < l.loss {
		return
	}
	w.at(l.model.delay(g.rand, g.beside, with.number()), func() {
		here, there := g.beside, with.root().Index
		if l.cut[pair{here, there}] == 0 && l.cut[pair{there, here}] == 0 && l.clogged[here] == 0 && l.clogged[there] == 0 {
			do()
		}
	})
}
