package scope

import (
	"bytes"
	"fmt"
	"math"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/keytree"
)

// Kinds of leaves in the tree of what the keys of a scope hold (P61).
const (
	// HoldsVersion is the kind of a key that is there: its digest is KeyValue.Digest of its newest version.
	HoldsVersion keytree.Kind = iota
	// HoldsScope is the kind of a prefix that was delegated: its digest is the ID of the scope that governs all keys
	// which begin so.
	HoldsScope
)

// leanKeys is up to how many keys a tree is made again from the records rather than kept in memory while no block
// comes.
const leanKeys = 1000

// rebuiltAtOnce is how many leaves are put into a tree together when it is made from the records.
const rebuiltAtOnce = 4096

// growing is a tree that is made from records.
type growing struct {
	tree keytree.Tree
	next []keytree.Change
}

func (g *growing) add(kind keytree.Kind, key []byte, digest aweigh.Hash) {
	g.next = append(g.next, keytree.Change{Leaf: keytree.Leaf{Key: bytes.Clone(key), Kind: kind, Digest: digest}})
	if len(g.next) >= rebuiltAtOnce {
		g.finish()
	}
}

func (g *growing) finish() keytree.Tree {
	g.tree, g.next = g.tree.With(g.next), g.next[:0]
	return g.tree
}

// Current is the tree of what the keys hold, of which the head names the root. Where it is not in memory it is made
// from the records: that reads the newest version of each key. Errors are those of the store, or wrap ErrCorrupt.
func (s *State) Current() (keytree.Tree, error) {
	if s.current != nil {
		return *s.current, nil
	}
	tree, err := s.treeAsOf(math.MaxInt64, s.head.Height, nil)
	if err != nil {
		return keytree.Tree{}, err
	}
	if root := tree.Root(); root != s.head.Current {
		return tree, fmt.Errorf("%w: %d keys with root %s, where the head names %s", ErrCorrupt, tree.Len(), root.Short(), s.head.Current.Short())
	}
	return tree, nil
}

// treeAsOf is the tree of what the keys held as of a revision, with what was delegated up to a height. It calls stop
// from time to time, unless that is nil, and ends with its error.
func (s *State) treeAsOf(rev int64, height aweigh.Height, stop func() error) (keytree.Tree, error) {
	var g growing
	var scratch []byte
	err := s.each(nil, []byte{0}, rev, nil, func(k, record []byte) error {
		if stop != nil && len(g.next) == 0 {
			if err := stop(); err != nil {
				return err
			}
		}
		var digest aweigh.Hash
		digest, scratch = element(scratch, k, record)
		escaped, _, _ := s.space.splitVersion(k)
		g.add(HoldsVersion, keyOf(escaped), digest)
		return nil
	})
	if err != nil {
		return keytree.Tree{}, err
	}
	given, err := s.Delegations()
	if err != nil {
		return keytree.Tree{}, err
	}
	for i := range given {
		if given[i].Height <= height {
			g.add(HoldsScope, given[i].Prefix, given[i].Child)
		}
	}
	if s.head.Folded > 0 {
		err := s.eachFold(0, func(f FoldRecord, _ []byte) bool {
			if f.Since <= height && height < f.Height {
				g.add(HoldsScope, f.Prefix, f.Child)
			}
			return true
		})
		if err != nil {
			return keytree.Tree{}, err
		}
	}
	return g.finish(), nil
}

// Grown returns the state with its tree in memory if that is one that Lean keeps: then no block has to wait for it, and
// what the records show is what the head says. Errors are those of Current.
func (s *State) Grown() (*State, error) {
	tree, err := s.Current()
	if err != nil || tree.Len() <= s.bounds.LeanKeys {
		return s, err
	}
	grown := *s
	grown.current = &tree
	return &grown, nil
}

// IsGrown reports whether the state has its tree in memory.
func (s *State) IsGrown() bool { return s.current != nil }

// Sharing returns the state with the tree of another in memory, if that holds the same.
func (s *State) Sharing(other *State) *State {
	if s.current != nil || other == nil || other.current == nil || other.head.Current != s.head.Current {
		return s
	}
	shares := *s
	shares.current = other.current
	return &shares
}

// setLeaf puts what a key holds now into the tree when the block ends; gone: it holds nothing any more.
func (x *execution) setLeaf(key []byte, kind keytree.Kind, digest aweigh.Hash, gone bool) {
	x.held = append(x.held, keytree.Change{Leaf: keytree.Leaf{Key: key, Kind: kind, Digest: digest}, Gone: gone})
}

// storeCurrent brings the tree up to date.
func (x *execution) storeCurrent() error {
	if len(x.held) == 0 {
		return nil
	}
	tree, err := x.next.Current() // which is still that of the parent
	if err != nil {
		return err
	}
	tree = tree.With(x.held)
	x.next.current, x.next.head.Current = &tree, tree.Root()
	return nil
}
