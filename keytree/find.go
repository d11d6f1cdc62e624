package keytree

import "bytes"

// floor is the leaf of the last key up to a key, nil if there is none.
func (n *nodes) floor(key []byte) *Leaf { return n.find(key, 0) }

// ceiling is the leaf of the first key from a key on, nil if there is none.
func (n *nodes) ceiling(key []byte) *Leaf { return n.find(key, 1) }

// below is the leaf of the last key before a key, nil if there is none.
func (n *nodes) below(key []byte) *Leaf {
	l := n.floor(key)
	if l == nil || !bytes.Equal(l.Key, key) {
		return l
	}
	return n.beside(key, same, 0)
}

// find is the leaf of a key, or else the one next to its place: 0 on the left, 1 on the right of it. There are keys.
func (n *nodes) find(key []byte, side byte) *Leaf {
	r := n.root
	for !r.isLeaf() {
		in := n.inner(r)
		r = in.child[bit(key, in.bit)]
	}
	b := differ(key, n.leaf(r).Key)
	if b == same {
		return n.leaf(r)
	}
	for r = n.root; !r.isLeaf() && n.inner(r).bit < b; {
		in := n.inner(r)
		r = in.child[bit(key, in.bit)]
	}
	if bit(key, b) != side { // all of the node
		return n.edge(r, 1-side)
	}
	return n.beside(key, b, side)
}

// beside is the leaf next to the first node on the way of a key that is not above bit b: 0 on the left, 1 on the right
// of it.
func (n *nodes) beside(key []byte, b uint32, side byte) *Leaf {
	var beside ref
	for r := n.root; !r.isLeaf() && n.inner(r).bit < b; {
		in := n.inner(r)
		to := bit(key, in.bit)
		if to != side {
			beside = in.child[side]
		}
		r = in.child[to]
	}
	if beside == 0 {
		return nil
	}
	return n.edge(beside, 1-side)
}

// edge is the first leaf below a node for 0, the last for 1.
func (n *nodes) edge(r ref, side byte) *Leaf {
	for !r.isLeaf() {
		r = n.inner(r).child[side]
	}
	return n.leaf(r)
}
