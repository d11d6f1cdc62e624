package reconcile

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
)

// inventory is a set as a value: for the other side of an exchange that has no
// line to talk over.
type inventory struct {
	_      struct{} `cbor:",toarray"`
	Format uint16
	Topic  aweigh.Hash
	Names  []byte // one after another, in order
}

// Encode is the canonical encoding of the set as one of a topic: about 32 bytes
// for each name. Its receiver can compute what the set lacks (Minus).
func (s Set) Encode(topic aweigh.Hash) []byte {
	v := inventory{Format: format, Topic: topic, Names: make([]byte, 0, s.Len()*len(aweigh.Hash{}))}
	s.All(aweigh.Hash{}, func(id aweigh.Hash) bool {
		v.Names = append(v.Names, id[:]...)
		return true
	})
	return canon.Encode(v)
}

// DecodeSet reads the form of Encode of a set of at most so many names. The
// error wraps ErrProtocol, ErrTopic or ErrLimit.
func DecodeSet(data []byte, topic aweigh.Hash, most int) (Set, error) {
	const size = len(aweigh.Hash{})
	if len(data) > sizeEmpty+size+most*size {
		return Set{}, fmt.Errorf("%w: %d bytes for %d names", ErrLimit, len(data), most)
	}
	var v inventory
	if err := canon.Decode(data, &v); err != nil {
		return Set{}, fmt.Errorf("%w: inventory: %w", ErrProtocol, err)
	}
	switch {
	case v.Format != format || len(v.Names)%size != 0:
		return Set{}, fmt.Errorf("%w: inventory of format %d with %d bytes of names", ErrProtocol, v.Format, len(v.Names))
	case v.Topic != topic:
		return Set{}, fmt.Errorf("%w: %s, this is %s", ErrTopic, v.Topic.Short(), topic.Short())
	case len(v.Names) > most*size:
		return Set{}, fmt.Errorf("%w: %d names, at most %d are taken", ErrLimit, len(v.Names)/size, most)
	}
	var t Tree
	var last aweigh.Hash
	for rest := v.Names; len(rest) > 0; rest = rest[size:] {
		id := aweigh.Hash(rest)
		if t.Len() > 0 && compare(last, id) >= 0 {
			return Set{}, fmt.Errorf("%w: names out of order", ErrProtocol)
		}
		t.Add(id)
		last = id
	}
	return t.Snapshot(), nil
}
