package keytree

import (
	"bytes"
	"sync"

	"github.com/aweigh/aweigh"
)

// nodes are those of one version of a tree. They lie side by side and refer to each other by number, so that they are
// small, and a garbage collector has no pointers to follow but those to keys.
type nodes struct {
	sync.Mutex
	root       ref
	inners     []inner
	hashes     [][2]aweigh.Hash // of the children of inners; zero: not computed since they changed
	leaves     []Leaf
	freeInners []ref // of inners
	freeLeaves []ref // of leaves
}

// ref is 0 for no node, 2·i+2 for an inner node, 2·i+3 for a leaf.
type ref uint32

// inner is an inner node. Its hashes lie elsewhere, so that a processor's cache holds the nodes that lead to a key.
type inner struct {
	bit   uint32 // which is 0 in all keys below the first child, and 1 in those below the second
	child [2]ref // both are there
}

func (r ref) isLeaf() bool { return r&1 == 1 }

func (n *nodes) inner(r ref) *inner         { return &n.inners[r>>1-1] }
func (n *nodes) sums(r ref) *[2]aweigh.Hash { return &n.hashes[r>>1-1] }
func (n *nodes) leaf(r ref) *Leaf           { return &n.leaves[r>>1-1] }

func (n *nodes) newInner(in inner, hashes [2]aweigh.Hash) ref {
	if last := len(n.freeInners) - 1; last >= 0 {
		r := n.freeInners[last]
		n.freeInners = n.freeInners[:last]
		*n.inner(r), *n.sums(r) = in, hashes
		return r
	}
	n.inners, n.hashes = append(n.inners, in), append(n.hashes, hashes)
	return ref(2 * len(n.inners))
}

func (n *nodes) newLeaf(l Leaf) ref {
	if last := len(n.freeLeaves) - 1; last >= 0 {
		r := n.freeLeaves[last]
		n.freeLeaves = n.freeLeaves[:last]
		*n.leaf(r) = l
		return r
	}
	n.leaves = append(n.leaves, l)
	return ref(2*len(n.leaves) + 1)
}

// change makes a change, and returns the one that undoes it; false: there is nothing to change.
func (n *nodes) change(c *Change) (undo Change, changed bool) {
	if n.root == 0 {
		if c.Gone {
			return undo, false
		}
		n.root = n.newLeaf(c.own())
		return gone(n.leaf(n.root)), true
	}
	r := n.root
	for !r.isLeaf() {
		in := n.inner(r)
		r = in.child[bit(c.Key, in.bit)]
	}
	l := n.leaf(r)
	b := differ(c.Key, l.Key)
	switch {
	case c.Gone && b != same, !c.Gone && b == same && l.Digest == c.Digest && l.Kind == c.Kind:
		return undo, false
	case c.Gone:
		undo = Change{Leaf: *l}
		n.remove(c.Key)
	case b == same:
		undo = Change{Leaf: *l}
		l.Kind, l.Digest = c.Kind, c.Digest
		n.way(c.Key, same)
	default:
		r = n.newLeaf(c.own())
		n.insert(r, b)
		undo = gone(n.leaf(r))
	}
	return undo, true
}

// own is the leaf in memory of its own.
func (c *Change) own() Leaf { return Leaf{Key: bytes.Clone(c.Key), Kind: c.Kind, Digest: c.Digest} }

func gone(l *Leaf) Change { return Change{Leaf: Leaf{Key: l.Key}, Gone: true} }

// way forgets the hashes on the way of a key down to the first node that is not above bit b, and returns where the
// tree refers to that.
func (n *nodes) way(key []byte, b uint32) *ref {
	at := &n.root
	for !at.isLeaf() {
		in := n.inner(*at)
		if in.bit >= b {
			break
		}
		side := bit(key, in.bit)
		n.sums(*at)[side] = aweigh.Hash{}
		at = &in.child[side]
	}
	return at
}

// insert adds a leaf, whose key first differs in bit b from those that are most like it.
func (n *nodes) insert(leaf ref, b uint32) {
	key := n.leaf(leaf).Key
	in := n.newInner(inner{bit: b}, [2]aweigh.Hash{}) // before way, which refers into the inner nodes
	at := n.way(key, b)
	side := bit(key, b)
	n.inner(in).child[side], n.inner(in).child[1-side] = leaf, *at
	*at = in
}

// remove takes away a leaf that is there, and the inner node above it.
func (n *nodes) remove(key []byte) {
	above, at := (*ref)(nil), &n.root
	for !at.isLeaf() {
		in := n.inner(*at)
		side := bit(key, in.bit)
		n.sums(*at)[side] = aweigh.Hash{}
		above, at = at, &in.child[side]
	}
	leaf := *at
	*n.leaf(leaf) = Leaf{}
	n.freeLeaves = append(n.freeLeaves, leaf)
	if above == nil {
		n.root = 0
		return
	}
	in := *above
	if *above = n.inner(in).child[0]; *above == leaf {
		*above = n.inner(in).child[1]
	}
	n.freeInners = append(n.freeInners, in)
}

// slack is of how many places for leaves a quarter must be in use, so that keys that are gone give their memory back.
const slack = 4096

// pack moves the nodes together if few of their places are in use.
func (n *nodes) pack() {
	used := len(n.leaves) - len(n.freeLeaves)
	if len(n.leaves) < slack || used > len(n.leaves)/4 {
		return
	}
	packed := nodes{inners: make([]inner, 0, used), hashes: make([][2]aweigh.Hash, 0, used), leaves: make([]Leaf, 0, used)}
	if n.root != 0 {
		packed.root = packed.copy(n, n.root)
	}
	n.root, n.inners, n.hashes, n.leaves = packed.root, packed.inners, packed.hashes, packed.leaves
	n.freeInners, n.freeLeaves = nil, nil
}

// copy copies a node of others with what is below it, and returns its number here.
func (n *nodes) copy(from *nodes, r ref) ref {
	if r.isLeaf() {
		return n.newLeaf(*from.leaf(r))
	}
	in := n.newInner(*from.inner(r), *from.sums(r))
	for side, child := range from.inner(r).child {
		at := n.copy(from, child)
		n.inner(in).child[side] = at
	}
	return in
}

// sum computes the hashes that changes made void, and returns the root's.
func (n *nodes) sum() aweigh.Hash {
	if n.root == 0 {
		return aweigh.Hash{}
	}
	return n.hash(n.root)
}

func (n *nodes) hash(r ref) aweigh.Hash {
	if r.isLeaf() {
		return n.leaf(r).hash()
	}
	in, hashes := n.inner(r), n.sums(r)
	for side := range hashes {
		if hashes[side] == (aweigh.Hash{}) {
			hashes[side] = n.hash(in.child[side])
		}
	}
	return innerHash(in.bit, hashes[0], hashes[1])
}
