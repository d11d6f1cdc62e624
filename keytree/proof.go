package keytree

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
)

// Proof shows a run of leaves that stand next to each other in a tree, to a reader that knows the tree's root: no
// other key lies between them. A tree has exactly one proof of a run.
type Proof struct {
	_      struct{} `cbor:",toarray"`
	Left   []Step   // subtrees of the keys before the run, from left to right: their bits rise
	Leaves []Leaf   // in order
	Right  []Step   // subtrees of the keys after the run, from left to right: their bits fall
}

// Step is a subtree beside the run: the bit of the node above it, and its hash.
type Step struct {
	_    struct{} `cbor:",toarray"`
	Bit  uint32
	Hash aweigh.Hash
}

// Leaf is a key with its digest.
type Leaf struct {
	_      struct{} `cbor:",toarray"`
	Key    []byte
	Kind   Kind
	Digest aweigh.Hash
}

// ErrProof is wrapped by errors about proofs that do not show what they claim.
var ErrProof = errors.New("keytree: the proof does not hold")

// ErrMany refuses a proof of more keys than were asked for.
var ErrMany = errors.New("keytree: more keys than asked for")

// Prove shows all keys from one on, up to another: from <= key < to; a nil to means "to the end". The run is as long
// as Covers asks for, and no longer: it begins with the last key before them, unless from is a key of the tree, and
// ends with the first key after them, unless none of the tree can come before to. It fails with ErrMany if that
// takes more than so many leaves.
func (t Tree) Prove(from, to []byte, most int) (*Proof, error) {
	p := &Proof{}
	if t.Len() == 0 {
		return p, nil
	}
	n := t.at.nodes
	n.proving.Lock()
	defer n.proving.Unlock()
	n.Lock()
	defer n.Unlock()
	t.at.take()
	first := n.floor(from)
	if first == nil {
		first = n.edge(n.root, 0)
	}
	last := n.edge(n.root, 1)
	if to != nil {
		if l := n.below(to); l != nil && bytes.Compare(l.Key, from) >= 0 && ends(l.Key, to) {
			last = l
		} else if l := n.ceiling(to); l != nil {
			last = l
		}
	}
	if !n.run(p, n.root, first, last, most) {
		return nil, fmt.Errorf("%w: there are more than %d", ErrMany, most)
	}
	return p, nil
}

// run appends the leaves below a node from first on up to last to the proof, and what is beside them. A nil first or
// last lies outside of the node. It reports false if these are too many.
func (n *nodes) run(p *Proof, r ref, first, last *Leaf, most int) bool {
	if r.isLeaf() {
		p.Leaves = append(p.Leaves, *n.leaf(r))
		return len(p.Leaves) <= most
	}
	in := n.inner(r)
	inLeft := first == nil || bit(first.Key, in.bit) == 0
	inRight := last == nil || bit(last.Key, in.bit) == 1
	switch {
	case inLeft && inRight:
		return n.run(p, in.child[0], first, nil, most) && n.run(p, in.child[1], nil, last, most)
	case inLeft:
		ok := n.run(p, in.child[0], first, last, most)
		p.Right = append(p.Right, Step{Bit: in.bit, Hash: n.sums(r)[1]})
		return ok
	}
	p.Left = append(p.Left, Step{Bit: in.bit, Hash: n.sums(r)[0]})
	return n.run(p, in.child[1], first, last, most)
}

// ends reports whether no key lies between key and to.
func ends(key, to []byte) bool {
	return len(to) == len(key)+1 && to[len(key)] == 0 && bytes.Equal(to[:len(key)], key)
}

// Covers reports whether the run shows all keys with from <= key < to; a nil to means "to the end".
func (p *Proof) Covers(from, to []byte) bool {
	n := len(p.Leaves)
	if n == 0 {
		return true // of a tree without keys
	}
	begins := len(p.Left) == 0 || bytes.Compare(p.Leaves[0].Key, from) <= 0
	last := p.Leaves[n-1].Key
	return begins && (len(p.Right) == 0 || to != nil && (bytes.Compare(last, to) >= 0 || ends(last, to)))
}

// Shown is the leaves with from <= key < to; a nil to means "to the end".
func (p *Proof) Shown(from, to []byte) []Leaf {
	at := func(key []byte) int {
		i, _ := slices.BinarySearchFunc(p.Leaves, key, func(l Leaf, k []byte) int { return bytes.Compare(l.Key, k) })
		return i
	}
	end := len(p.Leaves)
	if to != nil {
		end = at(to)
	}
	return p.Leaves[min(at(from), end):end]
}

// Root is the root of the tree that the proof is of. Errors wrap ErrProof: no tree has such a proof.
func (p *Proof) Root() (root aweigh.Hash, err error) {
	if len(p.Leaves) == 0 {
		if len(p.Left)+len(p.Right) > 0 {
			return root, fmt.Errorf("%w: no key, beside others", ErrProof)
		}
		return root, nil
	}
	var s stack
	for i := range p.Left {
		if err := s.push(p.Left[i].Hash); err != nil {
			return root, err
		}
		s.next = p.Left[i].Bit
	}
	for i := range p.Leaves {
		if i > 0 {
			if s.next = differ(p.Leaves[i-1].Key, p.Leaves[i].Key); bytes.Compare(p.Leaves[i-1].Key, p.Leaves[i].Key) >= 0 {
				return root, fmt.Errorf("%w: keys out of order", ErrProof)
			}
		}
		if err := s.push(p.Leaves[i].hash()); err != nil {
			return root, err
		}
	}
	for i := range p.Right {
		s.next = p.Right[i].Bit
		if err := s.push(p.Right[i].Hash); err != nil {
			return root, err
		}
	}
	return s.root()
}

// stack joins subtrees that come from left to right: what stands between two of them is the bit in which they differ,
// and the tree has the lowest bits on top.
type stack struct {
	subtrees []subtree
	next     uint32 // between the last subtree and the one to come
}

type subtree struct {
	before uint32 // between it and the one on the left
	hash   aweigh.Hash
}

func (s *stack) push(h aweigh.Hash) error {
	if len(s.subtrees) > 0 {
		if err := s.join(s.next); err != nil {
			return err
		}
	}
	s.subtrees = append(s.subtrees, subtree{s.next, h})
	return nil
}

// join joins subtrees at the end as long as their bits are above one.
func (s *stack) join(above uint32) error {
	for n := len(s.subtrees); n > 1; n-- {
		l, r := &s.subtrees[n-2], &s.subtrees[n-1]
		if r.before == above {
			return fmt.Errorf("%w: three subtrees differ in bit %d", ErrProof, above)
		}
		if r.before < above {
			return nil
		}
		l.hash = innerHash(r.before, l.hash, r.hash)
		s.subtrees = s.subtrees[:n-1]
	}
	return nil
}

func (s *stack) root() (aweigh.Hash, error) {
	for n := len(s.subtrees); n > 1; n-- {
		l, r := &s.subtrees[n-2], &s.subtrees[n-1]
		l.hash = innerHash(r.before, l.hash, r.hash)
		s.subtrees = s.subtrees[:n-1]
	}
	return s.subtrees[0].hash, nil
}
