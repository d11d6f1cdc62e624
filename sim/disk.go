package sim

import (
	"errors"
	"time"

	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/store"
)

// disk holds the faults of a node's disk.
type disk struct {
	slow      time.Duration // each sync takes so long
	full      bool
	forgetful bool // reports syncs that it did not make
	torn      bool // of the first commit that a crash takes back, it keeps a part
	planted   bool // one read or sync is going to fail
}

// crash ends a node's life on the disk: planted faults are forgotten.
func (d *disk) crash() { d.planted = false }

// failing reports whether a fault of the disk may stop the node.
func (d *disk) failing() bool { return d.full || d.planted }

var (
	errFull = errors.New("no space left on device")
	errIO   = errors.New("input/output error")
)

// commit writes as the disk can.
func (d *disk) commit(on *store.Mem, ops []kv.Op, sync bool) error {
	if d.full {
		on.FailNext(store.FaultCommit, errFull)
	}
	return on.Commit(ops, sync && !d.forgetful)
}

// finishLater carries out the effects of a step when a slow disk is done. The
// machine is left alone until then: the store must show what it wrote.
func (n *Node) finishLater(fx machine.Effects) {
	life := n.life
	n.busy = true
	wait := max(n.disk.slow, time.Millisecond) // the disk is fast again while the process is paused: time must go on
	n.world.at(wait, func() {
		if n.life != life || n.machine == nil {
			return
		}
		if n.paused {
			n.finishLater(fx)
			return
		}
		defer n.caught()
		n.busy = false
		n.finish(fx)
		if n.life == life {
			n.resume()
		}
	})
}
