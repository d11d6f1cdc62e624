package sim

import (
	"slices"

	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/sim/scenario"
	"github.com/aweigh/aweigh/store"
)

// assignDiskFaults gives each fault of a lying disk that names no node one that the fault budget has room for, if there
// is one, and returns the weight of all nodes with such disks.
func (w *World) assignDiskFaults(budget uint64) (weight uint64) {
	timed := w.Scenario.Faults.Timed
	strike := func(n *Node) {
		if !n.faulty {
			n.faulty = true
			weight += w.weight(n)
		}
	}
	for _, f := range timed {
		for _, i := range f.Nodes {
			if f.Lies() {
				strike(w.Nodes[i])
			}
		}
	}
	named := make(map[int]bool)
	for _, r := range w.Scenario.Roles {
		for _, a := range r.Anchors {
			named[a] = true
		}
	}
	for i := range timed {
		f := &timed[i]
		if !f.Lies() || len(f.Nodes) > 0 {
			continue
		}
		for _, k := range w.disks.Perm(len(w.Nodes)) {
			n := w.Nodes[k]
			later := n.key != nil && w.weight(n) == 0 // it will weigh something
			if !named[k] && !later && (n.faulty || weight+w.weight(n) <= budget) {
				strike(n)
				f.Nodes = []int{k}
				break
			}
		}
	}
	w.Scenario.Faults.Timed = slices.DeleteFunc(timed, func(f scenario.Fault) bool { return f.Lies() && len(f.Nodes) == 0 })
	return weight
}

// diskFault makes nodes crash, or their disks fail.
func (w *World) diskFault(f scenario.Fault, nodes []*Node) (end func()) {
	keep := func(n *Node) int {
		switch f.Keep {
		case "none":
			return 0
		case "all":
			return n.Disk.Unsynced()
		}
		return w.chance.IntN(n.Disk.Unsynced() + 1)
	}
	old := make(map[*Node]*store.Mem)
	for _, n := range nodes {
		w.log(n, "disk", "%s", f.Kind)
		switch f.Kind {
		case "crash":
			n.crash(keep(n))
		case "rollback":
			old[n] = n.Disk.Clone()
			old[n].Crash(0)
		case "full":
			n.disk.full = true
		case "slow":
			n.disk.slow = f.By
		case "readfail":
			n.disk.planted = true
			n.Disk.FailNext(store.FaultRead, errIO)
		case "syncfail":
			n.disk.planted = true
			n.Disk.FailNext(store.FaultSync, errIO)
		case "forgetful", "torn":
			n.disk.forgetful = true
		case "corrupt", "misdirect", "lose":
			w.damage(n, f.Kind)
		}
	}
	return func() {
		for _, n := range nodes {
			switch f.Kind {
			case "full":
				n.disk.full = false
			case "slow":
				n.disk.slow = 0
			case "rollback":
				n.crash(0)
				n.Disk = old[n]
			case "forgetful":
				n.crash(0)
				n.disk.forgetful = false
			case "torn":
				n.disk.torn, n.spoiled = true, true
				n.crash(w.disks.IntN(n.Disk.Unsynced() + 1))
				n.disk.forgetful, n.disk.torn = false, false
			case "corrupt", "misdirect", "lose":
				n.crash(n.Disk.Unsynced()) // what it has not read yet, it reads at the start
			case "readfail", "syncfail":
				n.Disk.FailNext(store.FaultRead, nil) // if it came to nothing
				n.Disk.FailNext(store.FaultSync, nil)
				n.disk.planted = false
			}
		}
		up(nodes)
	}
}

// damage changes one record of a node's disk: one bit of its value, its place with that of another, or all of it. All
// kinds of records are as likely.
func (w *World) damage(n *Node, kind string) {
	if n.disk.planted { // the next read of it fails, and is for the machine
		return
	}
	var spaces []byte
	records := make(map[byte][]kv.Op)
	err := n.Disk.Scan(nil, nil, false, func(k, v []byte) bool {
		if records[k[0]] == nil {
			spaces = append(spaces, k[0])
		}
		records[k[0]] = append(records[k[0]], kv.Set(slices.Clone(k), slices.Clone(v)))
		return true
	})
	must.OK(err, "reading a disk")
	all := records[spaces[w.disks.IntN(len(spaces))]]
	a, b := all[w.disks.IntN(len(all))], all[w.disks.IntN(len(all))]
	switch {
	case kind == "lose" || len(a.Value) == 0:
		a = kv.Del(a.Key)
	case kind == "corrupt":
		a.Value[w.disks.IntN(len(a.Value))] ^= 1 << w.disks.IntN(8)
	default:
		a.Value, b.Value = b.Value, a.Value
	}
	n.spoiled = true
	w.log(n, "disk", "%s: a record of %d in space %q", kind, len(all), a.Key[0])
	if err := n.Disk.Commit([]kv.Op{b, a}, false); err != nil {
		w.log(n, "disk", "it failed before: %v", err)
	}
}
