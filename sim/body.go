package sim

import (
	"github.com/aweigh/aweigh/store"
)

// body is shared by a node's parts in all scopes.
type body struct {
	parts   []*Node // the root scope's first, then by World.number
	Disk    *store.Mem
	clock   clock
	disk    disk
	faulty  bool   // its disk forgets: it counts as faulty, though it means well
	spoiled bool   // its disk has a wrong record: its answers do not count
	paused  bool   // its process stands still
	stopped string // why its disk stopped it
	rising  bool   // its parts are about to be started
	crosses bool   // sends frames of one scope as another's

	// Doomed, if set, is asked before every effect of a step, the first being
	// number 1, whether the node dies there: before it commits, between commit
	// and sending, between two frames, or before it replies.
	Doomed func(boundary int) bool
}

// root is the node's part in the root scope.
func (n *Node) root() *Node { return n.parts[0] }

// Up starts the node, and its parts in all scopes that its disk holds, and connects
// it with the others.
func (n *Node) Up() {
	n = n.root()
	if n.machine != nil || n.gone {
		return
	}
	defer n.caught()
	n.rising = true
	n.wake()
	n.reopen()
	if n.rising = false; n.machine != nil {
		n.world.wires.meet(n)
		n.world.at(0, n.probe)
	}
}

// wake starts one part, and those in the scopes below. The disk's records of a scope
// in which too many lie may contradict each other.
func (n *Node) wake() {
	if n.world.watch.lost {
		defer n.caught()
	}
	err := n.start()
	if err != nil && n.disk.failing() {
		n.world.log(n, "stopped", "does not start: %v", err)
		if n != n.root() {
			n.down(n.Disk.Unsynced())
		}
		return
	}
	if err != nil {
		if n.spoiled {
			n.world.watch.reach("wrong record")
		} else {
			n.world.breach(Sound, n, "does not start: %v", err)
		}
		n.world.log(n, "stopped", "does not start: %v", err)
		n.gone = true
		return
	}
	n.world.log(n, "up", "at height %d", n.machine.Status().Head.Height)
	n.world.watch.taken(n, n.world.watch.motions.recorded)
	n.grow()
}

// crash stops the node at once. Of its commits that were not synced, keep
// survive, in order.
func (n *Node) crash(keep int) {
	n = n.root()
	w := n.world
	if n.machine == nil {
		return
	}
	lost := max(0, n.Disk.Unsynced()-keep)
	if lost > 0 {
		w.watch.reach("lost writes")
	}
	w.log(n, "crash", "keeps %d of %d unsynced commits", n.Disk.Unsynced()-lost, n.Disk.Unsynced())
	n.down(keep)
}

// down ends all parts of the node.
func (n *Node) down(keep int) {
	n.rising = false
	for _, p := range n.parts {
		p.halt()
	}
	if n.disk.torn {
		n.Disk.Tear(keep, n.world.disks.IntN(8))
	} else {
		n.Disk.Crash(keep)
	}
	n.disk.crash()
	n.world.wires.part(n.root())
}

// halt ends one part.
func (n *Node) halt() {
	n.machine, n.alarm, n.shown = nil, 0, 0
	n.busy, n.inbox = false, nil
	clear(n.requests)
}

// rewind sets the alarms of all parts again after the clock was changed.
func (n *Node) rewind() {
	for _, p := range n.parts {
		p.rearm()
	}
}
