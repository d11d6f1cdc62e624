package sim

import (
	"bytes"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// ownBytes is how much of a scope's identity stands in the key of each of its records,
// after a letter.
const ownBytes = 16

// isolated checks that a part writes only records of its own scope, and of scopes of
// which the disk holds nothing yet: the part founds them. That holds for liars of any
// weight.
func (x *watch) isolated(n *Node, ops []kv.Op) {
	if len(x.w.scopes) == 1 && !x.w.Scenario.Nests() {
		return
	}
	var founded []byte // letter and scope
	for _, op := range ops {
		ok := len(op.Key) > ownBytes
		if ok && !bytes.Equal(op.Key[1:1+ownBytes], x.w.id[:ownBytes]) && !bytes.Equal(op.Key[:1+ownBytes], founded) {
			founded = op.Key[:1+ownBytes]
			ok = op.Key[0] == stateSpace && n.blank(founded)
		}
		if !ok {
			x.w.scopes[0].holds(Isolation, n.root(), false, "its part in %q writes to %x, which is another scope's", x.w.Genesis.Prefix(), op.Key)
		}
	}
	x.w.scopes[0].holds(Isolation, n.root(), true, "")
}

// stateSpace begins the keys of the states of all scopes.
const stateSpace = 's'

// blank reports whether the disk holds nothing under a prefix.
func (n *Node) blank(prefix []byte) bool {
	none := true
	err := n.Disk.Scan(prefix, kv.PrefixEnd(prefix), false, func(_, _ []byte) bool {
		none = false
		return false
	})
	must.OK(err, "looking for a scope")
	return none
}

// region holds the keys that a scope's state holds to those that it governs.
func (x *watch) region(n *Node) {
	s := n.state()
	all, err := s.Range([]byte{0}, []byte{0}, scope.Range{})
	must.OK(err, "reading all keys")
	given, err := s.Delegations()
	must.OK(err, "reading the delegations")
	for i := range all.Kvs {
		key := all.Kvs[i].Key
		ok := bytes.HasPrefix(key, x.w.Genesis.Prefix()) && len(scope.Touching(given, key, nil)) == 0
		x.w.scopes[0].holds(Isolation, n.root(), ok, "the scope of %q holds %q, which another decides about", x.w.Genesis.Prefix(), key)
	}
}

// count counts again what the blocks up to a height did to the clients' keys, whichever
// scope they are of.
func (x *watch) count(n *Node, height aweigh.Height) {
	if !x.w.Scenario.Nests() || x.lost {
		return
	}
	history, state := machine.History{Reader: n.Disk, Scope: x.w.id}, n.state()
	for x.counted < height {
		b, err := history.Block(x.counted + 1)
		must.OK(err, "reading a final block")
		x.counted++
		if !b.Header.Next.IsZero() {
			x.countHomecomings(n, b)
		}
		for _, c := range b.Bundles {
			for i := range c.Mutations() {
				m := &c.Mutations()[i]
				r, ok, err := state.Outcome(m.ID)
				must.OK(err, "reading an outcome")
				if ok && r.Height == x.counted && r.Code == scope.Applied && m.Class == scope.Write && m.Txn != nil {
					x.puts(n, m.Txn, r.Succeeded)
				}
			}
		}
	}
}

// countHomecomings counts that a block wrote all keys of a scope anew which came home with it.
func (x *watch) countHomecomings(n *Node, b *scope.Block) {
	log := n.state().Lineage()
	for i := b.Header.LineageSize; i < n.state().Head().LineageSize; i++ {
		e, _, err := log.Entry(i)
		must.OK(err, "reading an entry")
		if e.Height > b.Header.Height {
			return
		}
		if e.Class == lineage.Folded {
			known := slices.ContainsFunc(x.w.orders, func(r *scope.Revocation) bool { return r.Folds() && r.Hash() == e.Posterior })
			x.w.holds(Obeyed, n, known, "%q comes home at height %d by an order that was never given", e.Key, e.Height)
			x.cameHome(n, x.w.find(e.Prior), b.Header.Height)
		}
	}
}

// cameHome counts one version more of each key that a scope brought home.
func (x *watch) cameHome(n *Node, c *World, height aweigh.Height) {
	c.homing.height = height
	p := c.closedPart()
	if p != nil {
		c.watch.count(p, p.state().Height())
	}
	x.w.holds(Obeyed, n, c.homing.closed || c.watch.lost, "%q comes home at height %d, and is not closed", c.Genesis.Prefix(), height)
	for i := range x.w.Scenario.Load.Keys {
		key := x.w.keyName(i)
		switch {
		case !bytes.HasPrefix([]byte(key), c.Genesis.Prefix()):
		case p == nil || c.watch.lost: // it may have done anything
			x.unsure[key] = true
		case x.written[key] > 0:
			x.written[key]++
		}
	}
}

// closedPart is a node's part in the scope that has its last block, and does not lie; nil if there is none.
func (w *World) closedPart() *Node {
	for _, p := range w.Nodes {
		if !p.excused() && p.founded() && p.state().IsClosed() {
			return p
		}
	}
	return nil
}

func (x *watch) puts(n *Node, t *scope.Txn, succeeded bool) {
	ops := t.Success
	if !succeeded {
		ops = t.Failure
	}
	for i := range ops {
		if ops[i].Kind != scope.OpPut {
			continue
		}
		key := string(ops[i].Key)
		x.w.holds(Isolation, n, x.governs(key), "key %s is written at height %d, and another scope decides about it", key, x.counted)
		x.written[key]++
	}
}

// governs reports whether a key is the scope's at the height that is counted.
func (x *watch) governs(key string) bool {
	if !scope.Covers(x.w.Genesis.Prefix(), []byte(key), nil) {
		return false
	}
	for _, c := range x.w.scopes[1:] {
		d := c.Genesis.Descent
		home := c.homing.height > 0 && c.homing.height < x.counted
		if d.Parent == x.w.id && !home && d.Height < x.counted && scope.Covers(d.Prefix, []byte(key), nil) {
			return false
		}
	}
	return true
}

// handed checks the first state of a node's part in a scope: the keys of the clients,
// as often written as in the blocks of the scopes above, and none of them left there.
func (x *watch) handed(n *Node) {
	above := n.parts[x.w.find(x.w.Genesis.Descent.Parent).number]
	if x.lost || above.world.watch.lost || n.excused() || above.excused() {
		return
	}
	above.world.watch.count(above, above.state().Height())
	if x.counted > 0 || n.state().Height() > 0 {
		return
	}
	for i := range x.w.Scenario.Load.Keys {
		key := x.w.keyName(i)
		if !bytes.HasPrefix([]byte(key), x.w.Genesis.Prefix()) || x.unsure[key] {
			continue
		}
		is, _ := n.get(key)
		_, left := above.get(key)
		x.w.holds(Handover, n, is.Version == x.written[key] && !left, "%s is handed over with version %d after %d writes; it is left above: %v", key, is.Version, x.written[key], left)
	}
}

// versions holds the clients' keys in the end to as many versions as there were writes
// in final blocks, in all scopes that ever decided about them.
func (w *World) versions() {
	if !w.Scenario.Nests() {
		return
	}
	behind := make(map[*World]bool)
	best := make(map[*World]*Node)
	for _, c := range w.scopes {
		_, best[c] = c.held()
		if best[c] == nil || c.watch.lost {
			behind[c] = true
			continue
		}
		height := best[c].state().Height()
		c.watch.count(best[c], height)
		behind[c] = c.watch.counted > height // blocks were lost with the only node that had them final
		if d := c.Genesis.Descent; d != nil {
			behind[c] = behind[c] || behind[w.find(d.Parent)]
		}
	}
	for i := range w.Scenario.Load.Keys {
		key := w.keyName(i)
		c := w.governing(key)
		if behind[c] || w.findings.unsure[key] {
			continue
		}
		is, _ := best[c].get(key)
		c.holds(Handover, best[c], is.Version == w.findings.written[key], "%s has version %d after %d writes", key, is.Version, w.findings.written[key])
	}
	w.findings.acknowledged()
}

// acknowledged checks that each acknowledged write has one effect, in the scope that
// acknowledged it.
func (f *findings) acknowledged() {
	for _, d := range f.deeds {
		if d.kind == "read" {
			continue
		}
		applied, forsaken := 0, false
		for _, t := range d.tried {
			forsaken = forsaken || t.in.watch.lost
			if r, ok := t.in.watch.outcomes[t.mutation]; ok && r.Code == scope.Applied {
				applied++
			}
		}
		if forsaken || len(d.tried) == 0 {
			continue
		}
		w := d.in.scopes[0]
		said := !d.unknown && !d.refused
		w.holds(Handover, nil, applied <= 1 && (applied == 1 || !said), "a write to %s that %d scopes were asked for is applied %d times; acknowledged: %v", d.key, len(d.tried), applied, said)
	}
}
