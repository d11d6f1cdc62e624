package quorum

import (
	"fmt"

	"github.com/aweigh/aweigh"
)

// Kind is the statement of a vote about a view (P5).
type Kind uint8

const (
	// Notarize means that a block is the first valid proposal seen for the view.
	// The leader proposes a block by its own vote to notarize it.
	Notarize Kind = 1
	// Nullify means that the view is to end without a block.
	Nullify Kind = 2
	// Finalize means that the block was notarized, and the view not nullified.
	Finalize Kind = 3
)

// String returns the kind in lower case.
func (k Kind) String() string {
	switch k {
	case Notarize:
		return "notarize"
	case Nullify:
		return "nullify"
	case Finalize:
		return "finalize"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Valid reports whether k is one of the three kinds.
func (k Kind) Valid() bool { return k >= Notarize && k <= Finalize }

// NoBlock is what a nullify ballot of mode Fast names if its anchor notarized no block in the view (P57).
var NoBlock = aweigh.Sum([]byte("aweigh/no block/1"))

// Subject is the content of a vote: a kind, a view, and a block. For Nullify, the block is zero, except in mode Fast,
// where it is the block that the anchor notarized in the view, or NoBlock.
type Subject struct {
	_     struct{} `cbor:",toarray"`
	Kind  Kind
	View  aweigh.View
	Block aweigh.Hash
}

// Valid reports whether the subject is well-formed.
func (s Subject) Valid() bool {
	return s.Kind.Valid() && s.View > 0 && (s.Kind == Nullify || !s.Block.IsZero())
}

// String returns a text such as "notarize 7 4bf5122f".
func (s Subject) String() string {
	switch {
	case s.Block.IsZero():
		return fmt.Sprintf("%s %d", s.Kind, s.View)
	case s.Block == NoBlock:
		return fmt.Sprintf("%s %d none", s.Kind, s.View)
	}
	return fmt.Sprintf("%s %d %s", s.Kind, s.View, s.Block.Short())
}

// Conflicts reports whether an honest anchor may never vote for both (P7, P36): two notarizations or finalizations of
// different blocks in one view, nullify and finalize of one view, or nullify that names another block, or none, than
// notarize of one view.
func (s Subject) Conflicts(t Subject) bool {
	if s.View != t.View {
		return false
	}
	if s.Kind == t.Kind {
		return s.Block != t.Block
	}
	if s.Kind != Nullify {
		s, t = t, s
	}
	named := !s.Block.IsZero() && s.Block != t.Block
	return s.Kind == Nullify && (t.Kind == Finalize || t.Kind == Notarize && named)
}

// Signature is one anchor's signature, opaque to this package.
type Signature struct {
	_      struct{} `cbor:",toarray"`
	Anchor aweigh.AnchorID
	Bytes  []byte
}

// Vote is a subject signed by one anchor.
type Vote struct {
	Subject
	Signature
}

// Certificate is a subject with signatures whose weight meets the rule for its
// kind (P6), ordered by anchor.
type Certificate struct {
	_          struct{} `cbor:",toarray"`
	Subject    Subject
	Signatures []Signature
}

// IsZero reports whether c is the zero Certificate, "none".
func (c Certificate) IsZero() bool { return c.Subject.View == 0 }

// Tally counts the distinct signers of the certificate.
func (c Certificate) Tally(w Weights) (t Tally) {
	for _, s := range c.Signatures {
		t.Add(w, s.Anchor)
	}
	return t
}
