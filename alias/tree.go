package alias

import (
	"bytes"
	"iter"
	"slices"
)

// Tree binds values to byte prefixes and finds the longest that a key starts
// with. The zero value is empty. Match costs a binary search and one step for
// each prefix that lies within another on the way; Bind and Unbind are linear,
// since prefixes are few and change seldom. Any number of goroutines may read a
// Tree that none changes.
type Tree[V any] struct{ nodes []node[V] }

// node is one bound prefix. Nodes are ordered by prefix, so those within a
// prefix follow it directly.
type node[V any] struct {
	prefix []byte
	value  V
	parent int // the node of the longest bound proper prefix of prefix, -1 if none
}

// Bind binds v to prefix, in place of what was bound to it. The empty prefix
// matches every key.
func (t *Tree[V]) Bind(prefix []byte, v V) {
	i, ok := t.find(prefix)
	if ok {
		t.nodes[i].value = v
		return
	}
	t.nodes = slices.Insert(t.nodes, i, node[V]{prefix: bytes.Clone(prefix), value: v})
	t.link()
}

// Unbind removes prefix, and reports whether it was bound.
func (t *Tree[V]) Unbind(prefix []byte) bool {
	i, ok := t.find(prefix)
	if ok {
		t.nodes = slices.Delete(t.nodes, i, i+1)
		t.link()
	}
	return ok
}

// Match is the value bound to the longest prefix of key, with that prefix,
// which must not be changed.
//
// A bound prefix of key sorts at or before key, and everything sorted between
// the two starts with it as well. So the last node at or before key lies within
// every bound prefix of key: they are all among its parents.
func (t *Tree[V]) Match(key []byte) (v V, prefix []byte, ok bool) {
	i, exact := t.find(key)
	if !exact {
		i--
	}
	for ; i >= 0; i = t.nodes[i].parent {
		if n := &t.nodes[i]; bytes.HasPrefix(key, n.prefix) {
			return n.value, n.prefix, true
		}
	}
	return v, nil, false
}

// Len is the number of bound prefixes.
func (t *Tree[V]) Len() int { return len(t.nodes) }

// All ranges over the bound prefixes in ascending order, each before those
// within it. The prefixes must not be changed.
func (t *Tree[V]) All() iter.Seq2[[]byte, V] {
	return func(yield func([]byte, V) bool) {
		for _, n := range t.nodes {
			if !yield(n.prefix, n.value) {
				return
			}
		}
	}
}

func (t *Tree[V]) find(prefix []byte) (int, bool) {
	return slices.BinarySearchFunc(t.nodes, prefix, func(n node[V], p []byte) int { return bytes.Compare(n.prefix, p) })
}

// link sets every node's parent.
func (t *Tree[V]) link() {
	for i := range t.nodes {
		up := i - 1
		for up >= 0 && !bytes.HasPrefix(t.nodes[i].prefix, t.nodes[up].prefix) {
			up = t.nodes[up].parent
		}
		t.nodes[i].parent = up
	}
}
