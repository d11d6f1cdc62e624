package keytree

import "github.com/aweigh/aweigh"

// Tree is a set of keys with their digests. It never changes, and is safe for concurrent use. The zero Tree has no
// keys.
//
// Trees that were made from each other share one set of nodes, which changes in place (Baker, "Shallow Binding Makes
// Functional Arrays Fast", 1991): it is that of the tree that was used last, and each other tree knows what to change
// to come to it. So work on the newest tree costs no copies, and work on another one first costs what lies between.
type Tree struct {
	at *version
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
	if t.at == nil {
		return aweigh.Hash{}
	}
	return t.at.root
}

// Len is the number of keys.
func (t Tree) Len() int {
	if t.at == nil {
		return 0
	}
	return t.at.size
}

// With is the tree after changes. Of several changes of one key the last counts, and taking away a key that is not
// there changes nothing. It sorts the changes, and keeps none of their memory.
func (t Tree) With(changes []Change) Tree {
	if len(changes) == 0 {
		return t
	}
	from := t.at
	if from == nil {
		from = &version{nodes: &nodes{}}
	}
	from.nodes.Lock()
	defer from.nodes.Unlock()
	return Tree{from.with(inOrder(changes))}
}
