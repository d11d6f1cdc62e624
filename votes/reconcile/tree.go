package reconcile

import (
	"bytes"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
)

// leafSize is how many names a node holds itself; with more it has kids. So
// the shape of a tree, and every hash in it, follow from the set alone,
// whatever the order in which it came about.
const leafSize = 32

// Tree is a set of names that can change. Adding and removing cost O(log n),
// the fingerprints of all ranges are renewed by Snapshot at O(log n) for each
// change since the last. It holds about 60 bytes for each name. The zero value
// is the empty set. Not safe for concurrent use.
type Tree struct{ root *node }

// node is the range of a prefix. A sealed one is never changed again: it has
// its hash, and Sets may share it.
type node struct {
	sealed bool
	count  int
	hash   aweigh.Hash
	ids    []aweigh.Hash  // of a leaf, in order
	kids   *[fanout]*node // of an inner node; nil where there is nothing
}

// Len is the number of names.
func (t *Tree) Len() int { return t.root.len() }

// Has reports whether a name is in the set.
func (t *Tree) Has(id aweigh.Hash) bool { return t.root.has(&id, 0) }

// Add adds a name; it reports false if that was there.
func (t *Tree) Add(id aweigh.Hash) bool {
	if t.Has(id) {
		return false
	}
	t.root = t.root.add(&id, 0)
	return true
}

// Remove removes a name; it reports false if that was not there.
func (t *Tree) Remove(id aweigh.Hash) bool {
	if !t.Has(id) {
		return false
	}
	t.root = t.root.remove(&id, 0)
	return true
}

// Snapshot is the set as it is now. It stays so, whatever becomes of the tree,
// and is safe for concurrent use.
func (t *Tree) Snapshot() Set {
	t.root.seal()
	return Set{t.root}
}

func (n *node) len() int {
	if n == nil {
		return 0
	}
	return n.count
}

func (n *node) has(id *aweigh.Hash, depth int) bool {
	for ; n != nil && n.kids != nil; depth++ {
		n = n.kids[digit(id, depth)]
	}
	if n == nil {
		return false
	}
	_, found := n.find(id)
	return found
}

func (n *node) find(id *aweigh.Hash) (int, bool) {
	return slices.BinarySearchFunc(n.ids, *id, compare)
}

func compare(a, b aweigh.Hash) int { return bytes.Compare(a[:], b[:]) }

// own is n, or a copy if n is sealed.
func (n *node) own() *node {
	switch {
	case n == nil:
		return &node{}
	case !n.sealed:
		return n
	}
	c := &node{count: n.count, ids: slices.Clone(n.ids)}
	if n.kids != nil {
		kids := *n.kids
		c.kids = &kids
	}
	return c
}

// add puts a name that is not there below a node of some depth.
func (n *node) add(id *aweigh.Hash, depth int) *node {
	n = n.own()
	n.count++
	if n.kids == nil && n.count > leafSize {
		n.kids = new([fanout]*node)
		for i := range n.ids {
			d := digit(&n.ids[i], depth)
			n.kids[d] = n.kids[d].add(&n.ids[i], depth+1)
		}
		n.ids = nil
	}
	if n.kids != nil {
		d := digit(id, depth)
		n.kids[d] = n.kids[d].add(id, depth+1)
		return n
	}
	at, _ := n.find(id)
	n.ids = slices.Insert(n.ids, at, *id)
	return n
}

// remove takes a name that is there away. A node left empty is nil.
func (n *node) remove(id *aweigh.Hash, depth int) *node {
	if n.count == 1 {
		return nil
	}
	n = n.own()
	n.count--
	if n.kids == nil {
		at, found := n.find(id)
		must.Hold(found, "reconcile: a name that is there is not found")
		n.ids = slices.Delete(n.ids, at, at+1)
		return n
	}
	d := digit(id, depth)
	n.kids[d] = n.kids[d].remove(id, depth+1)
	if n.count <= leafSize {
		n.ids = make([]aweigh.Hash, 0, n.count)
		for _, kid := range n.kids {
			if kid != nil {
				must.Hold(kid.kids == nil, "reconcile: a kid of a small node has kids")
				n.ids = append(n.ids, kid.ids...)
			}
		}
		n.kids = nil
	}
	return n
}

var (
	leafMark  = []byte("aweigh/set/leaf/1\x00")
	innerMark = []byte("aweigh/set/inner/1\x00")
)

// seal gives n, and all below it, their hashes.
func (n *node) seal() {
	if n == nil || n.sealed {
		return
	}
	var room [leafSize * len(aweigh.Hash{})]byte
	b := room[:0]
	if n.kids == nil {
		for i := range n.ids {
			b = append(b, n.ids[i][:]...)
		}
		n.hash = aweigh.Sum(leafMark, b)
	} else {
		for _, kid := range n.kids {
			kid.seal()
			h := kid.sum()
			b = append(b, h[:]...)
		}
		n.hash = aweigh.Sum(innerMark, b)
	}
	n.sealed = true
}

// sum is the hash of a sealed node, zero for none.
func (n *node) sum() aweigh.Hash {
	if n == nil {
		return aweigh.Hash{}
	}
	return n.hash
}
