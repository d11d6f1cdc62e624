package sim

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// isles are the islands of a world: what the code of a real node around its machines does about them (P53, P54) is done
// here. An island is a World of its own, with machines at its members alone.
type isles struct {
	all   []*isle
	since map[*Node]aweigh.Instant // since when a node's anchor reaches no quorum
	made  int                      // changes so far, to tell their values apart

	invented []*inventedIsle // by liars
}

// isle is one island.
type isle struct {
	*World  // of the island
	of      *World
	prefix  []byte
	members []*Node // parts in the island
	open    []bool  // whether each has opened it
	asked   int     // requests so far
	closed  map[*Node]bool
	busy    map[*Node]aweigh.Instant // until when a member waits for an answer of the scope
	covers  map[*Node]aweigh.Instant // until when it waits for a block that names the lineage
	refused map[*Node]bool           // those that know that the scope takes no more
}

// isleTick is how often the nodes look whether an island is to be founded, or to rejoin.
const isleTick = 250 * time.Millisecond

// startIsles lets the nodes look after islands, if the policy has partitions.
func (w *World) startIsles() {
	if len(w.Genesis.Policy.Partitions) == 0 {
		return
	}
	w.isles.since = make(map[*Node]aweigh.Instant)
	var tick func()
	tick = func() {
		w.lookAround()
		for _, c := range w.isles.all {
			c.tend()
		}
		w.askOnIsleKeys()
		w.at(isleTick, tick)
	}
	w.at(isleTick, tick)
}

// within is the anchors with weight that a node reaches, by identity, itself among them; nil if it has no seat.
func (n *Node) within() (all []*Node) {
	if n.machine == nil || n.paused || n.key == nil || n.Face != 0 {
		return nil
	}
	w, r := n.world, &n.machine.Epoch().Roster
	for _, o := range w.Nodes {
		if o.Face == 0 && o.key != nil && o.machine != nil && !o.paused && r.Weights.Of(o.anchorID()) > 0 &&
			(o == n || w.wires.reaches(n, o) && w.wires.clogged[n.Index] == 0 && w.wires.clogged[o.Index] == 0) {
			all = append(all, o)
		}
	}
	if !slices.Contains(all, n) {
		return nil
	}
	slices.SortFunc(all, func(a, b *Node) int {
		x, y := a.anchorID(), b.anchorID()
		return bytes.Compare(x[:], y[:])
	})
	return all
}

// decides reports whether anchors together have a quorum in the epoch of a node.
func (n *Node) decides(all []*Node) bool {
	e := n.machine.Epoch()
	var weight uint64
	for _, o := range all {
		weight += e.Roster.Weights.Of(o.anchorID())
	}
	for _, k := range []quorum.Kind{quorum.Notarize, quorum.Nullify, quorum.Finalize} {
		if !e.Policy.Rules.For(k).Met(weight, e.Roster.Weights.Total(), len(all)) {
			return false
		}
	}
	return true
}

// apart is for how long a node's anchor has reached no quorum.
func (n *Node) apart() time.Duration {
	since, ok := n.world.isles.since[n]
	if !ok {
		return 0
	}
	return n.world.now.Sub(since)
}

// lookAround notes which nodes reach no quorum, and founds islands.
func (w *World) lookAround() {
	for _, n := range w.Nodes {
		all := n.within()
		if _, apart := w.isles.since[n]; all == nil || n.decides(all) {
			delete(w.isles.since, n)
		} else if !apart {
			w.isles.since[n] = w.now
		}
	}
	for _, n := range w.Nodes {
		if _, apart := w.isles.since[n]; !apart || !n.sees() {
			continue
		}
		parts := n.machine.Epoch().Policy.Partitions
		for i := range parts {
			w.tryFound(n, &parts[i], n.within())
		}
	}
}

// tryFound founds an island of the anchors that a node reaches, if its own is the first of them and all of them would
// be members. One that does not come along at once may do so later.
func (w *World) tryFound(n *Node, p *scope.Partition, members []*Node) {
	base := n.state().Head().Block
	if c := n.isleOn(p.Prefix, base); c != nil {
		for i, m := range c.members {
			if m := w.Nodes[m.Index]; !c.open[i] && m.ready(p, base) {
				c.enlist(m)
			}
		}
		return
	}
	e := n.machine.Epoch()
	var weight uint64
	var ids []aweigh.AnchorID
	for _, m := range members {
		weight += e.Roster.Weights.Of(m.anchorID())
		ids = append(ids, m.anchorID())
	}
	if members[0] != n || weight*uint64(p.Den) < e.Roster.Weights.Total()*uint64(p.Num) {
		return
	}
	for _, m := range members {
		if !m.ready(p, base) || m.isleOn(p.Prefix, base) != nil {
			return
		}
	}
	g, _, err := n.state().Island(p.Prefix, ids)
	if errors.Is(err, scope.ErrIsland) {
		w.log(n, "island", "is not founded: %v", err)
		return
	}
	must.OK(err, "computing an island")
	c := &isle{World: w.descend(g), of: w, prefix: p.Prefix, closed: make(map[*Node]bool), busy: make(map[*Node]aweigh.Instant), covers: make(map[*Node]aweigh.Instant), refused: make(map[*Node]bool)}
	c.island = true
	w.scopes, w.isles.all = append(w.scopes, c.World), append(w.isles.all, c)
	c.assignRolesBelow()
	c.watch.open(c.World)
	w.log(n, "island", "of %d members on %q, on height %d", len(members), p.Prefix, g.Descent.Height)
	w.watch.reach("island founded")
	for _, o := range w.isles.all[:len(w.isles.all)-1] {
		if bytes.Equal(o.prefix, p.Prefix) && o.Genesis.Descent.Block == base {
			w.watch.reach("two islands")
		}
	}
	for _, m := range members {
		c.members, c.open = append(c.members, c.Nodes[m.Index]), append(c.open, false)
	}
	for i, m := range members {
		if i == 0 || w.isle.IntN(8) > 0 {
			c.enlist(m)
		}
	}
}

// ready reports whether a node would be a member of an island on top of a block now.
func (n *Node) ready(p *scope.Partition, base aweigh.Hash) bool {
	return n.sees() && n.apart() >= p.After && n.state().Head().Block == base
}

// sees reports whether the node can look at its disk now: what fails there next is for its machine.
func (n *Node) sees() bool {
	return n.machine != nil && !n.paused && !n.busy && !n.disk.failing() && !n.spoiled
}

// isleOn is the island on a prefix, on top of a block, that a node is a member of, nil if there is none.
func (n *Node) isleOn(prefix []byte, base aweigh.Hash) *isle {
	for _, c := range n.world.isles.all {
		i := slices.IndexFunc(c.members, func(m *Node) bool { return m.Index == n.Index })
		if i >= 0 && (c.open[i] || i > 0) && bytes.Equal(c.prefix, prefix) && c.Genesis.Descent.Block == base {
			return c
		}
	}
	return nil
}

// enlist makes a node open the island, from its own state of the scope.
func (c *isle) enlist(n *Node) {
	var ids []aweigh.AnchorID
	for i := range c.Genesis.Anchors {
		ids = append(ids, c.Genesis.Anchors[i].Key.ID())
	}
	g, ops, err := n.state().Island(c.prefix, ids)
	must.OK(err, "computing an island")
	c.of.holds(Islands, n, g.Hash() == c.id, "computes another island of the same members on the same block")
	if g.Hash() != c.id {
		return
	}
	if err := n.disk.commit(n.Disk, append(ops, kv.Set(machine.KeyIsland(c.of.id, c.id), g.Encode())), true); err != nil {
		n.fail(err)
		return
	}
	p := c.Nodes[n.Index]
	c.open[slices.Index(c.members, p)] = true
	p.wake()
	if p.machine != nil {
		c.wires.greet(p)
	}
	if t := n.twin; t != nil && t.ready(&scope.Partition{}, c.Genesis.Descent.Block) { // the liar's other face
		if t.disk.commit(t.Disk, append(ops, kv.Set(machine.KeyIsland(c.of.id, c.id), g.Encode())), true) == nil {
			c.Nodes[t.Index].wake()
		}
	}
}

// reopen starts the node's parts in the islands that its disk has.
func (n *Node) reopen() {
	if !n.sees() || len(n.world.isles.all) == 0 {
		return
	}
	geneses, err := machine.StoredIslands(n.Disk, n.world.id)
	must.OK(err, "reading the islands")
	for i := range geneses {
		if c := n.world.find(geneses[i].Hash()); c != nil && c.Nodes[n.Index].machine == nil && !c.Nodes[n.Index].gone {
			c.Nodes[n.Index].wake()
		}
	}
}
