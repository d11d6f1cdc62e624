package keytree

import (
	"sync"

	"github.com/aweigh/aweigh"
)

// nodes are those of one version of a tree. They lie side by side and refer to each other by number, so that they are
// small, and a garbage collector has no pointers to follow but those to keys.
type nodes struct {
	sync.Mutex
	proving    sync.Mutex // held before the other by readers, so that changes wait for one of them at most
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
