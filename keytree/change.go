package keytree

import (
	"bytes"
	"slices"
	"sort"

	"github.com/aweigh/aweigh"
)

// inOrder sorts changes by their keys, and drops those that later ones of the same key make void.
func inOrder(changes []Change) []Change {
	slices.SortStableFunc(changes, func(a, b Change) int { return bytes.Compare(a.Key, b.Key) })
	last := changes[:0]
	for i := range changes {
		if i+1 == len(changes) || !bytes.Equal(changes[i].Key, changes[i+1].Key) {
			last = append(last, changes[i])
		}
	}
	return last
}

// change makes changes, which are in order and about a key each, and returns what undoes them, in order as well. It
// visits a node once for all keys below it.
func (n *nodes) change(changes []Change) (undo []Change) {
	undo = make([]Change, 0, len(changes))
	switch {
	case len(changes) == 0:
	case n.root == 0:
		n.root = n.build(changes, &undo)
	default:
		n.root = n.apply(n.root, n.like(n.root, changes[0].Key), changes, 0, &undo)
	}
	return undo
}

// like is a key below a node that has the bits of another one where the nodes on the way ask for them.
func (n *nodes) like(r ref, key []byte) []byte {
	for !r.isLeaf() {
		in := n.inner(r)
		r = in.child[bit(key, in.bit)]
	}
	return n.leaf(r).Key
}

// apply makes changes below a node, and returns the node that is there then, 0 for none. near is a key below it; the
// changes are like it in all bytes up to from.
func (n *nodes) apply(r ref, near []byte, changes []Change, from int, undo *[]Change) ref {
	// The keys that leave the others first are at an end of the list.
	b := min(differFrom(changes[0].Key, near, from), differFrom(changes[len(changes)-1].Key, near, from))
	switch {
	case r.isLeaf() && b == same:
		return n.applyLeaf(r, &changes[0], undo)
	case !r.isLeaf() && b >= n.inner(r).bit:
		return n.applyInner(r, near, changes, undo)
	}
	parts, child := divide(changes, b), [2]ref{} // some leave above the node
	for side := range child {
		switch {
		case side != int(bit(near, b)):
			child[side] = n.build(parts[side], undo)
		case len(parts[side]) == 0:
			child[side] = r
		default:
			child[side] = n.apply(r, near, parts[side], int(b/9), undo)
		}
	}
	return n.join(b, child)
}

func (n *nodes) applyInner(r ref, near []byte, changes []Change, undo *[]Change) ref {
	b, child := n.inner(r).bit, n.inner(r).child
	parts := divide(changes, b)
	for side := range child {
		if len(parts[side]) == 0 {
			continue
		}
		key, before := near, len(*undo)
		if int(bit(near, b)) != side {
			key = n.like(child[side], parts[side][0].Key)
		}
		child[side] = n.apply(child[side], key, parts[side], int(b/9), undo)
		if len(*undo) > before {
			n.sums(r)[side] = aweigh.Hash{}
		}
	}
	if child[0] != 0 && child[1] != 0 {
		n.inner(r).child = child
		return r
	}
	n.freeInners = append(n.freeInners, r)
	return child[0] + child[1]
}

func (n *nodes) applyLeaf(r ref, c *Change, undo *[]Change) ref {
	l := n.leaf(r)
	switch {
	case c.Gone:
		*undo = append(*undo, Change{Leaf: *l})
		*l = Leaf{}
		n.freeLeaves = append(n.freeLeaves, r)
		return 0
	case l.Digest != c.Digest || l.Kind != c.Kind:
		*undo = append(*undo, Change{Leaf: *l})
		l.Kind, l.Digest = c.Kind, c.Digest
	}
	return r
}

// build makes the nodes of keys that are new, 0 for none.
func (n *nodes) build(changes []Change, undo *[]Change) ref {
	switch {
	case len(changes) == 0 || len(changes) == 1 && changes[0].Gone:
		return 0
	case len(changes) == 1:
		c := &changes[0]
		l := Leaf{Key: bytes.Clone(c.Key), Kind: c.Kind, Digest: c.Digest}
		*undo = append(*undo, Change{Leaf: Leaf{Key: l.Key}, Gone: true})
		return n.newLeaf(l)
	}
	b := differ(changes[0].Key, changes[len(changes)-1].Key)
	parts := divide(changes, b)
	left := n.build(parts[0], undo)
	return n.join(b, [2]ref{left, n.build(parts[1], undo)})
}

// join is an inner node over two others, or the one that is there.
func (n *nodes) join(b uint32, child [2]ref) ref {
	if child[0] == 0 || child[1] == 0 {
		return child[0] + child[1]
	}
	return n.newInner(inner{bit: b, child: child}, [2]aweigh.Hash{})
}

// divide parts changes by a bit. They are in order, and alike in all bits before it.
func divide(changes []Change, b uint32) [2][]Change {
	i := sort.Search(len(changes), func(i int) bool { return bit(changes[i].Key, b) == 1 })
	return [2][]Change{changes[:i], changes[i:]}
}
