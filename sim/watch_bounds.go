package sim

// bounded holds a node to the bounds of its queues.
func (x *watch) bounded(n *Node) {
	size := n.machine.Waiting()
	most := x.w.Scenario.Bounds.Waiting
	if most == 0 {
		most = poolLimit
	}
	x.w.holds(Bounded, n, size <= most, "%d bytes of mutations wait, %d are allowed", size, most)
}

// poolLimit is a machine's own default.
const poolLimit = 64 << 20
