package quorum

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
)

// MaxTotal bounds the sum of weights, so that products with the numerators and
// denominators of rules stay within uint64.
const MaxTotal = 1<<32 - 1

// ErrWeights is wrapped by every error of NewWeights.
var ErrWeights = errors.New("quorum: bad weights")

// Share is the weight of one anchor.
type Share struct {
	_      struct{} `cbor:",toarray"`
	Anchor aweigh.AnchorID
	Weight uint64
}

// Weights holds the weights of the anchors of one epoch (P1). It is immutable and ordered by anchor; every weight is
// positive, and the sum is at most MaxTotal. The zero value is the empty set, under which no rule is ever met.
type Weights struct {
	shares []Share
	seats  map[aweigh.AnchorID]int // places in shares: every vote asks for one; nil if they are few
	total  uint64
	hash   aweigh.Hash
}

// fewSeats is the number of seats up to which they are found without a map, as fast and in a third of the memory:
// there may be thousands of scopes.
const fewSeats = 8

// NewWeights returns Weights of the shares, which may be in any order. Anchors must be distinct and weights positive;
// otherwise the error wraps ErrWeights. Without shares it returns the zero value.
func NewWeights(shares ...Share) (Weights, error) {
	if len(shares) == 0 {
		return Weights{}, nil
	}
	w := Weights{shares: slices.Clone(shares)}
	if len(shares) > fewSeats {
		w.seats = make(map[aweigh.AnchorID]int, len(shares))
	}
	slices.SortFunc(w.shares, func(a, b Share) int { return bytes.Compare(a.Anchor[:], b.Anchor[:]) })
	for i, s := range w.shares {
		switch {
		case s.Weight == 0:
			return Weights{}, fmt.Errorf("%w: anchor %s weighs nothing", ErrWeights, s.Anchor.Short())
		case i > 0 && s.Anchor == w.shares[i-1].Anchor:
			return Weights{}, fmt.Errorf("%w: anchor %s stands twice", ErrWeights, s.Anchor.Short())
		case s.Weight > MaxTotal || w.total+s.Weight > MaxTotal:
			return Weights{}, fmt.Errorf("%w: the sum exceeds %d", ErrWeights, uint64(MaxTotal))
		}
		w.total += s.Weight
		if w.seats != nil {
			w.seats[s.Anchor] = i
		}
	}
	w.hash = canon.Hash("aweigh/weights/1", w.shares)
	return w, nil
}

// Equal returns Weights that give weight 1 to each of the anchors.
func Equal(anchors ...aweigh.AnchorID) (Weights, error) {
	shares := make([]Share, len(anchors))
	for i, a := range anchors {
		shares[i] = Share{Anchor: a, Weight: 1}
	}
	return NewWeights(shares...)
}

// Of returns the weight of an anchor, 0 if it has none.
func (w Weights) Of(a aweigh.AnchorID) uint64 {
	if i, ok := w.Seat(a); ok {
		return w.shares[i].Weight
	}
	return 0
}

// Seat returns an anchor's place in the order of anchors, from 0; ok is false if it has no weight.
func (w Weights) Seat(a aweigh.AnchorID) (int, bool) {
	if len(w.shares) > fewSeats {
		seat, ok := w.seats[a]
		return seat, ok
	}
	for i := range w.shares {
		if w.shares[i].Anchor == a {
			return i, true
		}
	}
	return 0, false
}

// Total returns the sum W of all weights.
func (w Weights) Total() uint64 { return w.total }

// Len returns the number of anchors.
func (w Weights) Len() int { return len(w.shares) }

// At returns the share at a seat.
func (w Weights) At(seat int) Share { return w.shares[seat] }

// All ranges over the shares in the order of anchors.
func (w Weights) All() iter.Seq[Share] { return slices.Values(w.shares) }

// Hash returns a hash of the weights. Equal Weights have equal hashes.
func (w Weights) Hash() aweigh.Hash { return w.hash }
