package sim

import (
	"slices"
	"time"

	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/sim/scenario"
)

// scheduleFaults schedules the faults of the scenario. All are over at Stop.
func (w *World) scheduleFaults() {
	s := w.Scenario
	for _, f := range s.Faults.Timed {
		if f.At >= s.Stop {
			continue
		}
		until := s.Stop
		if f.For > 0 {
			until = min(until, f.At+f.For)
		}
		if f.During != "" {
			w.atEnds(f)
			continue
		}
		w.at(f.At, func() {
			w.say("fault %s begins", f.Kind)
			end := w.begin(f, until-f.At)
			w.at(until-f.At, func() {
				w.say("fault %s ends", f.Kind)
				end()
			})
		})
	}
	if s.Faults.Crash > 0 {
		w.crashAtStep(int64(s.Faults.Crash))
	}
}

// atEnds begins a fault each time that an epoch ends, or a scope is founded.
func (w *World) atEnds(f scenario.Fault) {
	on := false
	fronts := &w.watch.ending.fronts
	if f.During == scenario.DuringHandover {
		fronts = &w.founding
	}
	*fronts = append(*fronts, func() {
		lasts := min(f.For, w.Scenario.Stop-w.Now())
		if on || w.Now() < f.At || lasts <= 0 {
			return
		}
		on = true
		w.at(0, func() {
			w.say("fault %s begins, during the %s", f.Kind, f.During)
			end := w.begin(f, lasts)
			w.at(lasts, func() {
				on = false
				end()
			})
		})
	})
}

// begin puts a fault into effect, for some time, and returns the function that ends it.
func (w *World) begin(f scenario.Fault, lasts time.Duration) (end func()) {
	nodes := w.struck(f)
	switch f.Kind {
	case "partition", "cut", "eclipse":
		return w.cutLinks(f, nodes)
	case "clog":
		return w.clogged(nodes)
	case "swizzle":
		return w.swizzle(nodes, lasts)
	case "churn":
		return w.churn(nodes, lasts, max(1, int(f.Rate)))
	case "offset", "drift", "step":
		return w.tick(f, nodes)
	case "ahead":
		return w.ahead(f, nodes)
	case "pause":
		return w.pause(nodes)
	case "lag", "firsthand":
		return w.delays(f, nodes, lasts)
	case "decisive":
		return w.decisive(nodes, f.By)
	}
	return w.diskFault(f, nodes)
}

// struck is the nodes to which a fault happens, with both faces of a node that has two: the named ones or, if none
// are named, at most a third of all, drawn; of lag as many as the others can do without.
func (w *World) struck(f scenario.Fault) (nodes []*Node) {
	if len(f.Nodes) == 0 && f.Kind == "lag" {
		return w.dispensableNodes()
	}
	if len(f.Nodes) == 0 && f.Kind == "decisive" {
		return w.Nodes
	}
	named := f.Nodes
	if len(named) == 0 && f.Kind != "partition" {
		all := w.Scenario.Network.Anchors + w.Scenario.Network.Observers
		named = w.chance.Perm(all)[:max(1, all/3)]
	}
	for _, n := range w.Nodes {
		if slices.Contains(named, n.number()) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// cutLinks cuts links in both directions, or in one.
func (w *World) cutLinks(f scenario.Fault, nodes []*Node) (end func()) {
	var cut [][2]*Node
	side := make(map[int]int) // of each node by number, counted from 1
	for i, g := range f.Groups {
		for _, n := range g {
			side[n] = i + 1
		}
	}
	apart := func(a, b *Node) bool { // from a to b
		switch f.Kind {
		case "cut":
			return slices.Contains(nodes, a) || slices.Contains(nodes, b)
		case "eclipse":
			return slices.Contains(nodes, b) && a.liar == nil || slices.Contains(nodes, a) && b.liar == nil
		}
		sa, sb := side[a.number()], side[b.number()]
		if a.liar != nil && sa == 0 || b.liar != nil && sb == 0 {
			return false // liars find a way around, unless they are named
		}
		return sa != sb && !(f.OneWay && sb == 1)
	}
	for _, a := range w.Nodes {
		for _, b := range w.Nodes {
			if a != b && a.Peer != b.Peer && apart(a, b) {
				cut = append(cut, [2]*Node{a, b})
			}
		}
	}
	touched := make(map[*Node]bool)
	for _, c := range cut {
		w.wires.block(c[0], c[1], true)
		touched[c[0]], touched[c[1]] = true, true
	}
	each := func(do func(*Node)) {
		for _, n := range w.Nodes {
			if touched[n] && n.machine != nil {
				do(n)
			}
		}
	}
	each(func(n *Node) {
		w.log(n, "cut", "by %s", f.Kind)
		w.wires.part(n)
		w.at(0, n.probe)
	})
	return func() {
		for _, c := range cut {
			w.wires.block(c[0], c[1], false)
		}
		each(func(n *Node) {
			w.log(n, "joined", "after %s", f.Kind)
			w.wires.meet(n)
			w.at(0, n.probe)
		})
	}
}

func (w *World) clogged(nodes []*Node) (end func()) {
	for _, n := range nodes {
		w.log(n, "cut", "clogged")
		w.wires.clog(n, true)
		w.at(0, n.probe)
	}
	return func() {
		for _, n := range nodes {
			w.log(n, "joined", "no longer clogged")
			w.wires.clog(n, false)
		}
	}
}

// swizzle clogs nodes one after another, and frees them in another order, as
// FoundationDB's simulator does.
func (w *World) swizzle(nodes []*Node, lasts time.Duration) (end func()) {
	clogged := make(map[*Node]bool)
	set := func(n *Node, on bool) {
		if clogged[n] != on {
			clogged[n] = on
			kind, text := "joined", "no longer clogged"
			if on {
				kind, text = "cut", "clogged"
			}
			w.log(n, kind, "%s", text)
			w.wires.clog(n, on)
		}
	}
	for _, i := range w.chance.Perm(len(nodes)) {
		w.at(time.Duration(w.chance.Int64N(int64(lasts/2)+1)), func() { set(nodes[i], true) })
	}
	for _, i := range w.chance.Perm(len(nodes)) {
		w.at(lasts/2+time.Duration(w.chance.Int64N(int64(lasts/2)+1)), func() { set(nodes[i], false) })
	}
	return func() {
		for _, n := range nodes {
			set(n, false)
		}
	}
}

// pause stops the processes of nodes. What arrives waits, and alarms ring late.
func (w *World) pause(nodes []*Node) (end func()) {
	for _, n := range nodes {
		w.log(n, "paused", "its process stops")
		n.paused = true
	}
	return func() {
		for _, n := range nodes {
			n.paused = false
			w.log(n, "resumed", "its process goes on")
			for _, p := range n.parts {
				p.resume()
			}
		}
	}
}

// churn makes nodes die and restart.
func (w *World) churn(nodes []*Node, lasts time.Duration, times int) (end func()) {
	for range times {
		n := nodes[w.chance.IntN(len(nodes))]
		at := time.Duration(w.chance.Int64N(int64(lasts) + 1))
		w.at(at, func() { n.crash(w.chance.IntN(n.Disk.Unsynced() + 1)) })
		w.at(at+time.Duration(w.chance.Int64N(int64(lasts)/4+1)), n.Up)
	}
	return func() { up(nodes) }
}

func up(nodes []*Node) {
	for _, n := range nodes {
		n.Up()
	}
}

// tick sets clocks wrong, and right again.
func (w *World) tick(f scenario.Fault, nodes []*Node) (end func()) {
	set := func(n *Node, offset time.Duration, drift int64) {
		w.log(n, "clock", "off by %v, drifts by %d in a million", offset, drift)
		w.watch.time.look(w)
		n.clock.set(w.now, offset, drift)
		n.rewind()
		w.watch.time.look(w)
	}
	for i, n := range nodes {
		by, drift := f.By, f.Rate
		if i%2 == 1 { // some are fast, some are slow
			by, drift = -by, -drift
		}
		if f.Kind == "drift" {
			by = 0
		} else {
			drift = 0
		}
		set(n, by, drift)
	}
	return func() {
		for _, n := range nodes {
			set(n, 0, 0)
		}
	}
}

// ahead restarts nodes with clocks that are ahead, and with right ones in the end. Clients' requests in between are
// dated by such clocks.
func (w *World) ahead(f scenario.Fault, nodes []*Node) (end func()) {
	set := func(by time.Duration) {
		w.watch.time.lead = by
		for _, n := range nodes {
			if n.liar == nil {
				w.log(n, "clock", "ahead by %v after a restart", by)
				n.crash(n.Disk.Unsynced())
				n.clock.set(w.now, by, 0)
				n.Up()
			}
		}
		w.watch.time.look(w)
	}
	w.watch.time.look(w)
	set(f.By)
	return func() {
		w.watch.time.look(w)
		set(0)
	}
}

// crashAtStep makes nodes die between any two effects of their steps, with a chance
// in parts per million, at most a third of the weight at a time.
func (w *World) crashAtStep(chance int64) {
	var down uint64
	for _, n := range w.Nodes {
		weight := w.weight(n)
		n.Doomed = func(int) bool {
			if !w.firing || w.chance.Int64N(million) >= chance || (down+weight)*3 >= w.weights.Total() {
				return false
			}
			down += weight
			w.at(time.Duration(w.chance.Int64N(int64(2*time.Second))), func() {
				down -= weight
				n.Up()
			})
			return true
		}
	}
}

// heal ends all faults, and brings every node back whose disk is whole.
func (w *World) heal() {
	w.firing = false
	w.wires.loss, w.wires.twice, w.wires.reorder = 0, 0, 0
	for _, n := range w.Nodes {
		n.Doomed = nil
		if n.liar == nil {
			n.clock.set(w.now, 0, 0)
			n.rewind()
		}
		n.Up()
	}
	if !w.wires.parted {
		return
	}
	for _, n := range w.Nodes {
		var met []machine.Event
		for _, o := range w.Nodes {
			if n.Peer != o.Peer && n.machine != nil && o.machine != nil {
				met = append(met, machine.Met{Peer: o.Peer})
			}
		}
		for _, p := range n.parts {
			p.soon(met...)
		}
	}
}
