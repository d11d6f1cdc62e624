package keytree

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"slices"
	"sort"

	"github.com/aweigh/aweigh"
)

// Tree is a set of keys with their digests. It never changes, and is safe for concurrent use. The zero Tree has no
// keys.
type Tree struct {
	root *node
	size int
}

// node is a leaf if left is nil.
type node struct {
	sum         aweigh.Hash // a leaf's digest, or an inner node's hash
	key         string      // of the leaf, or of a leaf below
	left, right *node
	bit         uint32 // which is 0 in all keys on the left, and 1 in those on the right
	kind        Kind   // of a leaf
}

// Kind says what the digest of a key is of. Its meaning is up to the user of the tree.
type Kind uint8

// Change gives a key a digest, or takes the key away.
type Change struct {
	Leaf
	Gone bool
}

// Root names the keys and their digests; it is zero if there are none.
func (t Tree) Root() aweigh.Hash {
	if t.root == nil {
		return aweigh.Hash{}
	}
	return t.root.hash()
}

// Len is the number of keys.
func (t Tree) Len() int { return t.size }

// With is the tree after changes. Of several changes of one key the last counts, and taking away a key that is not
// there changes nothing. It sorts the changes, and keeps none of their memory.
func (t Tree) With(changes []Change) Tree {
	slices.SortStableFunc(changes, func(a, b Change) int { return bytes.Compare(a.Key, b.Key) })
	last := changes[:0]
	for i := range changes {
		if i+1 == len(changes) || !bytes.Equal(changes[i].Key, changes[i+1].Key) {
			last = append(last, changes[i])
		}
	}
	t.root = t.change(t.root, last)
	return t
}

// change is the subtree of n after changes, which are in order and about a key each.
func (t *Tree) change(n *node, changes []Change) *node {
	switch {
	case len(changes) == 0:
		return n
	case n == nil:
		return t.build(changes)
	}
	// The keys that leave the others first are at an end of the list.
	b := min(differ(changes[0].Key, n.key), differ(changes[len(changes)-1].Key, n.key))
	switch {
	case b == same: // n.key alone is changed
		if n.left == nil {
			return t.changeLeaf(n, &changes[0])
		}
		b = n.bit
	case n.left != nil && b > n.bit:
		b = n.bit
	}
	low, high := divide(changes, b)
	if n.left != nil && b == n.bit {
		left, right := t.change(n.left, low), t.change(n.right, high)
		if left == n.left && right == n.right {
			return n
		}
		return join(b, left, right)
	}
	if bit(n.key, b) == 0 {
		return join(b, t.change(n, low), t.build(high))
	}
	return join(b, t.build(low), t.change(n, high))
}

func (t *Tree) changeLeaf(n *node, c *Change) *node {
	switch {
	case c.Gone:
		t.size--
		return nil
	case c.Digest == n.sum && c.Kind == n.kind:
		return n
	}
	return &node{sum: c.Digest, kind: c.Kind, key: n.key}
}

// build is the subtree of the keys that changes leave, none of which is in the tree.
func (t *Tree) build(changes []Change) *node {
	switch {
	case len(changes) == 0:
		return nil
	case len(changes) == 1:
		if changes[0].Gone {
			return nil
		}
		t.size++
		return &node{sum: changes[0].Digest, kind: changes[0].Kind, key: string(changes[0].Key)}
	}
	b := differ(changes[0].Key, changes[len(changes)-1].Key)
	low, high := divide(changes, b)
	return join(b, t.build(low), t.build(high))
}

// join is the inner node over two subtrees, or the one that is there.
func join(b uint32, left, right *node) *node {
	switch {
	case left == nil:
		return right
	case right == nil:
		return left
	}
	return &node{sum: inner(b, left.hash(), right.hash()), key: left.key, left: left, right: right, bit: b}
}

// divide parts changes by a bit. They are in order, and alike in all bits before it.
func divide(changes []Change, b uint32) (low, high []Change) {
	i := sort.Search(len(changes), func(i int) bool { return bit(changes[i].Key, b) == 1 })
	return changes[:i], changes[i:]
}

// hash is what names the subtree.
func (n *node) hash() aweigh.Hash {
	if n.left == nil {
		return leaf(n.kind, n.sum, n.key)
	}
	return n.sum
}

// leaf is the hash of a key with its digest.
func leaf[K string | []byte](kind Kind, digest aweigh.Hash, key K) aweigh.Hash {
	b := make([]byte, 0, 256)
	b = append(append(b, 0, byte(kind)), digest[:]...)
	return sha256.Sum256(append(b, key...))
}

// inner is the hash of a node over two others.
func inner(bit uint32, left, right aweigh.Hash) aweigh.Hash {
	b := make([]byte, 0, 1+4+2*len(left))
	b = binary.BigEndian.AppendUint32(append(b, 1), bit)
	return sha256.Sum256(append(append(b, left[:]...), right[:]...))
}

// same is what differ says of equal keys.
const same = ^uint32(0)

// differ is the first bit in which keys differ.
func differ[A, B string | []byte](a A, b B) uint32 {
	n := min(len(a), len(b))
	for i := range n {
		if x := a[i] ^ b[i]; x != 0 {
			return uint32(9*i + 1 + bits.LeadingZeros8(x))
		}
	}
	if len(a) == len(b) {
		return same
	}
	return uint32(9 * n)
}

// bit is a bit of a key.
func bit[K string | []byte](key K, at uint32) byte {
	i, j := int(at/9), int(at%9)
	switch {
	case i >= len(key):
		return 0
	case j == 0:
		return 1
	}
	return key[i] >> (8 - j) & 1
}
