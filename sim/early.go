package sim

import (
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
)

// A machine sets its alarm for every timed act. Most forgotten alarms have no effect, as another event wakes the
// machine. So now and then a machine is woken before its alarm, with no event since its last step: if it then acts,
// its alarm should have been earlier.

const (
	someEarly = 8               // of how many steps one is followed by such a look
	mostEarly = 3 * time.Second // after which it comes at the latest
)

// wakeEarly wakes the machine before its alarm, unless something wakes it before.
func (n *Node) wakeEarly() {
	w := n.world
	if n.liar != nil || w.events%someEarly != 0 {
		return
	}
	most := mostEarly
	if n.alarm != 0 {
		most = min(most, n.clock.wait(w.now, n.alarm))
	}
	if most <= 1 {
		return
	}
	life, steps := n.life, n.steps
	w.at(1+time.Duration(w.early.Int64N(int64(most-1))), func() {
		if n.life != life || n.steps != steps || n.machine == nil || n.busy || n.paused || n.alarm != 0 && n.local() >= n.alarm {
			return
		}
		n.woken = true
		n.step()
		n.woken = false
	})
}

// idle reports what a step did that no event and no alarm asked for, "" if nothing.
func idle(fx machine.Effects) string {
	switch {
	case len(fx.Send) > 0:
		return fmt.Sprintf("sends %d frames, first a %s", len(fx.Send), machine.FrameKind(fx.Send[0].Frame))
	case len(fx.Gossip) > 0:
		return "gossips a " + machine.FrameKind(fx.Gossip[0])
	case len(fx.Write) > 0:
		return fmt.Sprintf("writes %d records", len(fx.Write))
	case len(fx.Reply) > 0:
		return fmt.Sprintf("gives %d replies", len(fx.Reply))
	}
	return ""
}

// early checks that a step without events does only what it may do before the alarm.
func (x *watch) early(n *Node, at aweigh.Instant, alarm aweigh.Instant, fx machine.Effects) {
	if n.excused() || x.lost || alarm != 0 && at >= alarm {
		return
	}
	why := idle(fx)
	set := "no alarm"
	if alarm != 0 {
		set = fmt.Sprintf("its alarm %v later", alarm.Sub(at))
	}
	x.w.holds(Settled, n, why == "", "nothing happened, it has set %s, and %s", set, why)
}
