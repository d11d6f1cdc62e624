package sim

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// grow opens the node's parts in the scopes that one of its own has founded since,
// and in those below, and gives them the orders of theirs.
func (n *Node) grow() {
	if n.machine == nil {
		return
	}
	given := n.machine.Delegations()
	told := 1
	for i := range given {
		told = 31*told + int(binary.BigEndian.Uint32(given[i].Child[:]))
		if given[i].Revocation != nil {
			told = 31*told + 1 + int(given[i].Revocation.Entry)
		}
	}
	if told == n.opened {
		return
	}
	n.opened = told
	n.returned(given)
	for _, d := range given {
		c := n.world.below(n, d).Nodes[n.Index]
		if c.machine != nil || c.gone {
			c.heard(d.Revocation)
			continue
		}
		c.wake()
		if c.machine == nil {
			continue
		}
		c.heard(d.Revocation)
		if c.world.watch.handed(c); !c.rising {
			n.world.wires.greet(c)
		}
	}
}

// below is the world of a scope to which a node's scope has delegated: it begins
// where the first node gets there.
func (w *World) below(n *Node, d scope.Delegation) *World {
	for _, c := range w.scopes {
		if c.id == d.Child {
			return c
		}
	}
	_, g, ok, err := n.state().Delegated(d.Prefix)
	must.OK(err, "reading a delegation")
	must.Hold(ok, "a delegation of %q that the state does not know", d.Prefix)
	c := w.descend(g)
	w.scopes = append(w.scopes, c)
	c.assignRolesBelow()
	c.watch.open(c)
	w.log(n, "founded", "%q at height %d", d.Prefix, d.Height)
	c.reached()
	w.split(n, d)
	for _, f := range w.founding {
		f()
	}
	return c
}

// descend is the world of another scope on the same stage.
func (w *World) descend(g scope.Genesis) *World {
	c := &World{stage: w.stage, Genesis: g, id: g.Hash(), number: len(w.scopes), byPeer: make(map[machine.Peer][]*Node), rules: g.Policy.Rules, began: w.Now(), marks: marks{most: w.marks.most}}
	var err error
	c.network, err = machine.NewNetwork(g, w.verify)
	must.OK(err, "reading the genesis of a scope")
	c.network.Within(w.bounds)
	first, err := g.Epoch()
	must.OK(err, "reading the genesis of a scope")
	c.enter(first)
	for _, o := range w.Nodes {
		p := &Node{body: o.body, Index: o.Index, Face: o.Face, Peer: o.Peer, key: o.key, author: o.author}
		if o.twin != nil && o.Face == 1 {
			p.twin = c.Nodes[o.twin.Index]
			p.twin.twin = p
		}
		p.join(c)
		c.add(p)
	}
	return c
}

// reached counts the goals that a new scope reaches.
func (w *World) reached() {
	d := w.Genesis.Descent
	w.watch.reach("scope founded")
	if d.Depth > 1 {
		w.watch.reach("second level")
	}
	if d.Keys > 0 {
		w.watch.reach("keys handed over")
	}
	if len(w.foundedFor(string(d.Prefix))) > 1 {
		w.watch.reach("founded again")
	}
	if w.watch.lost {
		w.watch.reach("hostile scope")
	}
	if w.firing && w.scopes[0].faultsActive() {
		w.watch.reach("scope founded under fire")
	}
}

// part is the node's part in the scope that decides about a key, as far as the node
// itself knows.
func (n *Node) part(key string) *Node {
	p := n.root()
	for p.machine != nil {
		at := scope.Touching(p.machine.Delegations(), []byte(key), nil)
		if len(at) == 0 {
			break
		}
		next := p.world.find(at[0].Child)
		if next == nil {
			break
		}
		p = next.Nodes[n.Index]
	}
	return p
}

// find is the world of a scope, nil if it is not founded.
func (w *World) find(id aweigh.ScopeID) *World {
	for _, c := range w.scopes {
		if c.id == id {
			return c
		}
	}
	return nil
}

// governing is the world of the scope that decides about a key now, as the first node
// to get there knows.
func (w *World) governing(key string) *World {
	best := w.scopes[0]
	for _, c := range w.scopes[1:] {
		if p := c.Genesis.Prefix(); !c.island && !c.homing.home && scope.Covers(p, []byte(key), nil) && len(p) > len(best.Genesis.Prefix()) {
			best = c
		}
	}
	return best
}

// forsaken reports whether too many lie, or did, in a scope that decides about a key.
func (w *World) forsaken(key string) bool {
	return slices.ContainsFunc(w.scopes[1:], func(c *World) bool {
		return c.watch.lost && !c.island && scope.Covers(c.Genesis.Prefix(), []byte(key), nil)
	})
}

// key is a key of the world's scope.
func (w *World) key(name string) string {
	if w.number == 0 {
		return "/" + name
	}
	return string(w.Genesis.Prefix()) + name
}

// ScopeRecord is a scope that was founded in a run.
type ScopeRecord struct {
	Prefix  string
	Depth   int
	Mode    string
	Anchors []int         // by node, as it was founded
	At      time.Duration // when the first node got there
	Keys    int64         // that were handed over
	// ByItself is set if the scope split off and no decision asked for it.
	ByItself bool
	Ordered  time.Duration // when it was ordered to come home, as the first node below heard of it; 0: it was not
	Home     time.Duration // when it was home, as the first node saw it; 0: it is not
	Height   aweigh.Height // final at most, at nodes that are held to the invariants
	Lost     bool          // more of its weight lies than may: nothing is promised within it
}

func (w *World) scopeRecord() ScopeRecord {
	d := w.Genesis.Descent
	r := ScopeRecord{
		Prefix: string(d.Prefix), Depth: int(d.Depth), Mode: w.Genesis.Policy.Rules.Mode.String(),
		At: w.began, Keys: d.Keys, Lost: w.watch.lost, ByItself: w.byItself, Ordered: w.homing.ordered, Home: w.homing.came,
	}
	for _, a := range w.Genesis.Anchors {
		r.Anchors = append(r.Anchors, w.anchors[a.Key.ID()])
	}
	slices.Sort(r.Anchors)
	for _, n := range w.Nodes {
		if n.liar == nil {
			r.Height = max(r.Height, n.Height)
		}
	}
	return r
}

// nullified is how many views ended without a block, in all scopes.
func (w *World) nullified() (n int) {
	for _, c := range w.scopes {
		n += len(c.watch.nullified)
	}
	return n
}
