package sim

import (
	"bytes"
	"errors"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// provisional looks for values in the scope that only clients of islands write: they must have come by a Rejoining of
// an island that is on record.
func (x *watch) provisional(n *Node) {
	w := x.w
	if w.number > 0 || len(w.isles.all) == 0 || n.excused() {
		return
	}
	state := n.state()
	for _, p := range w.Genesis.Policy.Partitions {
		all, err := state.Range(p.Prefix, scope.PrefixEnd(p.Prefix), scope.Range{})
		must.OK(err, "reading the keys of a partition")
		for i := range all.Kvs {
			kv := &all.Kvs[i]
			if !bytes.HasPrefix(kv.Value, []byte(provisionalMark)) {
				continue
			}
			e, _, err := state.Lineage().Entry(kv.Entry)
			must.OK(err, "reading an entry")
			id, _, _, ok := scope.ParseIsland(e.Reason)
			c := w.find(id)
			w.holds(Islands, n, ok && c != nil && c.island, "%s is %q, which an island decided, and the scope took from none", kv.Key, kv.Value)
		}
	}
}

// apart checks that what a node says in an island means nothing in its scope.
func (x *watch) apart(n *Node, f *frame) {
	w := x.w
	if !w.island || w.events%16 != 0 || n.root().machine == nil {
		return
	}
	if k := machine.FrameKind(f.raw); k == "ballot" || k == "proposal" {
		_, err := n.root().machine.Checker().Check(n.Peer, f.raw)
		w.scopes[0].holds(Islands, n.root(), err != nil, "takes a %s of an island for one of its scope", k)
	}
}

// auditIsles looks at what became of the islands in the end.
func (w *World) auditIsles() {
	_, best := w.held()
	if best == nil || w.watch.lost {
		return
	}
	w.auditInvented(best)
	if len(w.isles.all) == 0 {
		return
	}
	took := w.took(best)
	for _, c := range w.isles.all {
		c.watch.weightless()
		rec := c.record(best)
		held, first := c.held()
		if rec == nil || c.watch.lost {
			continue
		}
		if rec.Next >= rec.Size {
			w.watch.reach("island rejoined")
		}
		if rec.Aside > 0 {
			w.watch.reach("change set aside")
		}
		if rec.Stands > 0 {
			w.watch.reach("island change taken")
		}
		if len(held) == 0 || first.state().Head().LineageSize < rec.Next { // those that know more lie, or their disks do
			continue
		}
		c.accounted(best, first, rec, took[c.id])
	}
}

// taking is what became in the scope of mutations of an island, by how often each was taken and set aside.
type taking struct{ stands, aside map[aweigh.Hash]int }

// took reads the scope's whole lineage.
func (w *World) took(n *Node) map[aweigh.ScopeID]taking {
	all, log := make(map[aweigh.ScopeID]taking), n.state().Lineage()
	last := make(map[aweigh.Hash]aweigh.Hash) // by mutation of an island: that of the scope by which it came
	for i := range log.Size() {
		e, _, err := log.Entry(i)
		must.OK(err, "reading an entry")
		id, of, _, ok := scope.ParseIsland(e.Reason)
		if !ok {
			continue
		}
		if all[id].stands == nil {
			all[id] = taking{make(map[aweigh.Hash]int), make(map[aweigh.Hash]int)}
		}
		switch {
		case e.Class == lineage.SetAside:
			all[id].aside[of]++
		case last[of] != e.Mutation:
			last[of] = e.Mutation
			all[id].stands[of]++
		}
	}
	return all
}

// accounted holds that each mutation of the island that changed something, up to the entry that comes next, was taken
// or set aside, once, and nothing else.
func (c *isle) accounted(best, member *Node, rec *scope.IslandRecord, took taking) {
	w, log := c.of, member.state().Lineage()
	of := make(map[aweigh.Hash]bool)
	for i := c.Genesis.Descent.Keys; i < rec.Next; i++ {
		e, _, err := log.Entry(i)
		must.OK(err, "reading an entry")
		if e.Class != lineage.Failed {
			of[e.Mutation] = true
		}
	}
	for id := range of { // order-free: each for itself
		w.holds(Islands, best, took.stands[id]+took.aside[id] == 1, "mutation %s of island %d was taken %d times and set aside %d times", id.Short(), c.number, took.stands[id], took.aside[id])
	}
	same := len(of) == len(took.stands)+len(took.aside) && rec.Stands == int64(len(took.stands)) && rec.Aside == int64(len(took.aside))
	w.holds(Islands, best, same, "island %d changed something by %d mutations; %d were taken, and %d set aside; on record: %+v", c.number, len(of), len(took.stands), len(took.aside), rec)
}

// weightless checks that certificates of an island prove nothing in its scope.
func (x *watch) weightless() {
	w := x.w
	_, best := w.held()
	if best == nil {
		return
	}
	final, err := machine.History{Reader: best.Disk, Scope: w.id}.Cover(best.state().Head().Height, 0)
	if errors.Is(err, machine.ErrUncovered) {
		return
	}
	must.OK(err, "reading a final block")
	for _, e := range w.scopes[0].epochs {
		w.scopes[0].holds(Islands, best.root(), final.CheckIn(e) != nil, "a certificate of an island has weight in epoch %d of its scope", e.Number)
	}
}
