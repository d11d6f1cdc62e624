package keytree

// floor is the leaf of the last key up to a key, nil if there is none.
func (t Tree) floor(key []byte) *node { return t.find(key, 0) }

// below is the leaf of the last key before a key, nil if there is none.
func (t Tree) below(key []byte) *node {
	n := t.floor(key)
	if n == nil || n.key != string(key) {
		return n
	}
	return t.beside(key, 0)
}

// ceiling is the leaf of the first key from a key on, nil if there is none.
func (t Tree) ceiling(key []byte) *node { return t.find(key, 1) }

// find is the leaf of a key, or else the one next to its place: 0 on the left, 1 on the right of it.
func (t Tree) find(key []byte, side byte) *node {
	if t.root == nil {
		return nil
	}
	n := t.root
	for n.left != nil {
		n = n.child(bit(key, n.bit))
	}
	b := differ(key, n.key)
	if b == same {
		return n
	}
	var beside *node // of the path
	for n = t.root; n.left != nil && n.bit < b; {
		to := bit(key, n.bit)
		if to != side {
			beside = n.child(side)
		}
		n = n.child(to)
	}
	if bit(key, b) != side { // all of n
		return n.edge(1 - side)
	}
	if beside == nil {
		return nil
	}
	return beside.edge(1 - side)
}

// beside is the leaf next to the one of a key of the tree: 0 on the left, 1 on the right of it.
func (t Tree) beside(key []byte, side byte) *node {
	var beside *node
	for n := t.root; n.left != nil; {
		to := bit(key, n.bit)
		if to != side {
			beside = n.child(side)
		}
		n = n.child(to)
	}
	if beside == nil {
		return nil
	}
	return beside.edge(1 - side)
}

func (n *node) child(side byte) *node {
	if side == 0 {
		return n.left
	}
	return n.right
}

// edge is the first leaf for 0, the last for 1.
func (n *node) edge(side byte) *node {
	for n.left != nil {
		n = n.child(side)
	}
	return n
}

func (n *node) first() *node { return n.edge(0) }
func (n *node) last() *node  { return n.edge(1) }
