package reconcile

import (
	"github.com/aweigh/aweigh"
)

// Set is a Tree at one moment. Immutable, and safe for concurrent use. The zero
// value is the empty set.
type Set struct{ root *node }

// Len is the number of names.
func (s Set) Len() int { return s.root.len() }

// Tree is the set as one that can change; what becomes of that changes nothing here.
func (s Set) Tree() Tree { return Tree(s) }

// Fingerprint names the set: equal sets have equal fingerprints, and no two
// sets with one fingerprint can be found. That of the empty set is zero.
func (s Set) Fingerprint() aweigh.Hash { return s.root.sum() }

// All visits the names from one on, in order, until visit returns false.
func (s Set) All(from aweigh.Hash, visit func(aweigh.Hash) bool) {
	s.root.walk(&from, 0, true, visit)
}

// Minus visits the names that are not in other, in order, until visit returns
// false. Ranges that both have are passed over: the cost follows the difference.
func (s Set) Minus(other Set, visit func(aweigh.Hash) bool) { minus(s.root, other.root, 0, visit) }

func minus(n, other *node, depth int, visit func(aweigh.Hash) bool) bool {
	switch {
	case n == nil || n.sum() == other.sum():
		return true
	case n.kids != nil:
		for d, kid := range n.kids {
			from := other
			if other != nil && other.kids != nil {
				from = other.kids[d]
			}
			if !minus(kid, from, depth+1, visit) {
				return false
			}
		}
		return true
	}
	for i := range n.ids {
		if !other.has(&n.ids[i], depth) && !visit(n.ids[i]) {
			return false
		}
	}
	return true
}

// at is the node of a range that has one of its own, and its names otherwise:
// then they are some of a leaf's.
func (s Set) at(p Prefix) view {
	n := s.root
	for depth := 0; n != nil && n.kids != nil && depth < int(p.n); depth++ {
		n = n.kids[digit(&p.digits, depth)]
		if depth+1 == int(p.n) {
			return view{node: n}
		}
	}
	if n == nil || p.n == 0 {
		return view{node: n}
	}
	v := view{part: true}
	for _, id := range n.ids {
		if p.holds(&id) {
			v.ids = append(v.ids, id)
		}
	}
	return v
}

func (p Prefix) holds(id *aweigh.Hash) bool {
	for i := range int(p.n) {
		if digit(id, i) != digit(&p.digits, i) {
			return false
		}
	}
	return true
}

// view is the part of a Set in a range.
type view struct {
	node *node
	part bool // of a leaf of a wider range: ids
	ids  []aweigh.Hash
}

func (v *view) len() int {
	if v.part {
		return len(v.ids)
	}
	return v.node.len()
}

// hash is what the range's node would have if the range were all.
func (v *view) hash() aweigh.Hash {
	if !v.part {
		return v.node.sum()
	}
	if len(v.ids) == 0 {
		return aweigh.Hash{}
	}
	n := node{count: len(v.ids), ids: v.ids}
	n.seal()
	return n.hash
}

// all visits the names from one on.
func (v *view) all(p Prefix, from aweigh.Hash, visit func(aweigh.Hash) bool) bool {
	if !v.part {
		return v.node.walk(&from, int(p.n), p.holds(&from), visit)
	}
	for _, id := range v.ids {
		if compare(id, from) >= 0 && !visit(id) {
			return false
		}
	}
	return true
}

// walk visits the names of n from one on. Unless bound is set, all of n's are.
func (n *node) walk(from *aweigh.Hash, depth int, bound bool, visit func(aweigh.Hash) bool) bool {
	if n == nil {
		return true
	}
	if n.kids == nil {
		for i := range n.ids {
			if (!bound || compare(n.ids[i], *from) >= 0) && !visit(n.ids[i]) {
				return false
			}
		}
		return true
	}
	first := 0
	if bound {
		first = digit(from, depth)
	}
	for d := first; d < fanout; d++ {
		if !n.kids[d].walk(from, depth+1, bound && d == first, visit) {
			return false
		}
	}
	return true
}
