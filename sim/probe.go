package sim

import (
	"math/rand/v2"

	"github.com/aweigh/aweigh/node/machine"
)

// probes are linearizable reads where and when an old answer is most likely: at a node that lags just after a block
// became final elsewhere, at one that was cut off, is back, restarted, catches up or began an epoch; and at random
// times. Load.Probes of them are spread over the time until Stop.
type probes struct {
	rand *rand.Rand
	made int
}

// probeAtRandom is the share of the probes that are made at random times: one in so many.
const probeAtRandom = 4

// probing schedules the probes at random times.
func (w *World) probing() {
	for range w.Scenario.Load.Probes / probeAtRandom {
		w.at(w.drawTime(w.probes.rand), func() {
			c := w.scopes[w.probes.rand.IntN(len(w.scopes)-len(w.isles.all))] // no island: they come last
			c.Nodes[w.probes.rand.IntN(len(c.Nodes))].probe()
		})
	}
}

// probeDue reports whether fewer probes were made than are due by now, and counts one more.
func (w *World) probeDue() bool {
	if !w.firing || int64(w.probes.made)*int64(w.Scenario.Stop) >= int64(w.Scenario.Load.Probes)*int64(w.Now()) {
		return false
	}
	w.probes.made++
	return true
}

// probeLagging reads at one of the nodes that lag most behind a block that became final elsewhere just now.
func (w *World) probeLagging() {
	if w.Scenario.Load.Probes == 0 {
		return
	}
	var last []*Node
	for _, n := range w.Nodes {
		switch {
		case n.machine == nil || n.liar != nil || n.Height >= w.watch.top:
		case len(last) == 0 || n.Height < last[0].Height:
			last = append(last[:0], n)
		case n.Height == last[0].Height:
			last = append(last, n)
		}
	}
	if len(last) > 0 {
		last[w.probes.rand.IntN(len(last))].probe()
	}
}

// probe reads at a node now, if it is time for one more.
func (n *Node) probe() {
	if n.machine != nil && n.liar == nil && n.world.probeDue() {
		n.readNow()
	}
}

// readNow makes a linearizable read. It is one more request in the history, if the node's scope decides
// about the key.
func (n *Node) readNow() {
	w := n.world
	key := w.keyName(w.probes.rand.IntN(w.Scenario.Load.Keys))
	d := &operation{client: -10 - n.Index, kind: "read", key: key, probe: true}
	mine := n.part(key) == n
	if mine {
		w.watch.asked(d)
	}
	n.Read(func(r machine.Reply) {
		if r.Refused != nil || !mine || n.gave(key) {
			return
		}
		kv, _ := n.get(key)
		d.got = string(kv.Value)
		w.watch.readDone(n, d)
		w.watch.uid(n, kv)
	})
}
