package forge

import (
	"reflect"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// form opens an encoding that stands in a message, and seals it again.
type form struct {
	open func([]byte) (any, error) // a pointer to what it holds
	seal func(any) []byte
}

// canonical is the form of a T by package canon.
func canonical[T any]() form {
	return form{
		open: func(raw []byte) (any, error) {
			v := new(T)
			return v, canon.Decode(raw, v)
		},
		seal: func(v any) []byte { return canon.Encode(reflect.ValueOf(v).Elem().Interface()) },
	}
}

var forms = map[Class]form{
	EncodedBundle:  canonical[scope.Bundle](),
	EncodedBlock:   canonical[Block](),
	EncodedMeeting: canonical[meeting](),
	EncodedBallot: {
		open: func(raw []byte) (any, error) {
			b, err := votes.DecodeMotionBallot(raw)
			return &b, err
		},
		seal: func(v any) []byte { return v.(*votes.MotionBallot).Encode() },
	},
}

// Block is a scope.Block as it is encoded.
type Block struct {
	_        struct{} `cbor:",toarray"`
	Header   scope.Header
	Bundles  [][]byte
	Evidence scope.Evidence
}

// OpenBlock decodes a block, and verifies nothing.
func OpenBlock(raw []byte) (b Block, err error) {
	err = canon.Decode(raw, &b)
	return b, err
}

// Encode is the encoding of the block.
func (b Block) Encode() []byte { return canon.Encode(b) }

// OpenBundle decodes a bundle, and verifies nothing.
func OpenBundle(raw []byte) (b scope.Bundle, err error) {
	err = canon.Decode(raw, &b)
	return b, err
}

// MeetingBallots are the encodings of motion ballots that a message of package votes/reconcile brings.
func MeetingBallots(raw []byte) ([][]byte, error) {
	var m meeting
	err := canon.Decode(raw, &m)
	return m.Items, err
}

// meeting is a message of package votes/reconcile as it is encoded.
type meeting struct {
	_      struct{} `cbor:",toarray"`
	Format uint16
	Hello  []hello
	Splits []split
	Lists  []list
	Wants  []list
	Items  [][]byte
	More   bool
}

type hello struct {
	_     struct{} `cbor:",toarray"`
	Topic aweigh.Hash
	Salt  []byte
	Sum   []byte
}

type split struct {
	_      struct{} `cbor:",toarray"`
	Prefix []byte
	Mask   uint16
	Sums   []byte
}

type list struct {
	_      struct{} `cbor:",toarray"`
	Prefix []byte
	Names  []byte
}
