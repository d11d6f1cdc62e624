package reconcile

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/refusal"
)

// Errors, by consequence. After one the session is over; members received
// before stay valid.
var (
	// ErrProtocol: no honest peer sends this; blame the sender.
	ErrProtocol = refusal.New(refusal.Unasked, "reconcile: not of the protocol")
	// ErrTopic: the peer's set is of something else; there is nothing to reconcile.
	ErrTopic = refusal.New(refusal.Foreign, "reconcile: sets of two topics")
	// ErrLimit: the session has done all that one may. If the peer is honest, a
	// new session goes on where this one ended.
	ErrLimit = refusal.New(refusal.Full, "reconcile: over the session's limit")
)

const (
	format   = 1
	saltSize = 16
	sumSize  = 12 // of a fingerprint on the wire: two that differ look alike once in 2^96
	nameSize = 8  // of a name on the wire, among the at most leafSize of a range
)

// Salt makes the hashes on the wire different in each session. It should come
// from crypto/rand.
type Salt [saltSize]byte

func (s *Salt) cut(what byte, h aweigh.Hash) aweigh.Hash {
	return aweigh.Sum([]byte("aweigh/set/wire/1\x00"), s[:], []byte{what}, h[:])
}

type (
	sum  [sumSize]byte
	name [nameSize]byte
)

// sum is the fingerprint of a range on the wire; that of nothing is zero.
func (s *Salt) sum(h aweigh.Hash) (v sum) {
	if !h.IsZero() {
		h = s.cut('f', h)
		copy(v[:], h[:])
	}
	return v
}

func (s *Salt) name(id aweigh.Hash) (v name) {
	id = s.cut('n', id)
	copy(v[:], id[:])
	return v
}

// Message is a message of the two sides, which take turns.
type message struct {
	_      struct{} `cbor:",toarray"`
	Format uint16
	Hello  []hello // one in the first message, none in others
	Splits []split // ranges of which the sender has many names
	Lists  []list  // ranges of which it has few
	Wants  []list  // names of the peer's lists that it does not have
	Items  [][]byte
	More   bool // it has more to send
}

type hello struct {
	_     struct{} `cbor:",toarray"`
	Topic aweigh.Hash
	Salt  []byte
	Sum   []byte // of the whole set
}

// split has a fingerprint for each kid of a range: in kid order, those set in
// the mask (bit 0 for digit 0). Where none is set, the sender has no name.
type split struct {
	_      struct{} `cbor:",toarray"`
	Prefix []byte
	Mask   uint16
	Sums   []byte
}

type list struct {
	_      struct{} `cbor:",toarray"`
	Prefix []byte
	Names  []byte // in the order of the names that they stand for
}

// empty reports whether the message asks for nothing and brings nothing.
func (m *message) empty() bool {
	return len(m.Hello)+len(m.Splits)+len(m.Lists)+len(m.Wants)+len(m.Items) == 0
}

func decode(data []byte, limit int) (m message, err error) {
	if len(data) > limit {
		return m, fmt.Errorf("%w: a message of %d bytes, at most %d are taken", ErrProtocol, len(data), limit)
	}
	if err := canon.Decode(data, &m); err != nil {
		return m, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if m.Format != format {
		return m, fmt.Errorf("%w: format %d, this program knows %d", ErrProtocol, m.Format, format)
	}
	if m.empty() && m.More {
		return m, fmt.Errorf("%w: there is more, but nothing comes", ErrProtocol)
	}
	return m, nil
}

func (h *hello) read() (salt Salt, root sum, err error) {
	if len(h.Salt) != saltSize || len(h.Sum) != sumSize {
		return salt, root, fmt.Errorf("%w: hello", ErrProtocol)
	}
	return Salt(h.Salt), sum(h.Sum), nil
}

// read gives all the kids' sums, zero for those with nothing.
func (s *split) read() (p Prefix, sums [fanout]sum, err error) {
	if p, err = parsePrefix(s.Prefix); err != nil {
		return p, sums, err
	}
	if int(p.n) == maxDepth || s.Mask == 0 || len(s.Sums) != sumSize*bits.OnesCount16(s.Mask) {
		return p, sums, fmt.Errorf("%w: split of %s", ErrProtocol, p)
	}
	rest := s.Sums
	for d := range sums {
		if s.Mask>>d&1 == 1 {
			sums[d] = sum(rest)
			rest = rest[sumSize:]
		}
	}
	return p, sums, nil
}

func (l *list) read() (p Prefix, names []name, err error) {
	if p, err = parsePrefix(l.Prefix); err != nil {
		return p, nil, err
	}
	if len(l.Names)%nameSize != 0 || len(l.Names) > leafSize*nameSize {
		return p, nil, fmt.Errorf("%w: list of %s with %d bytes", ErrProtocol, p, len(l.Names))
	}
	for rest := l.Names; len(rest) > 0; rest = rest[nameSize:] {
		names = append(names, name(rest))
	}
	return p, names, nil
}

// sizes, at most, of parts on the wire
const (
	sizeEmpty = 32
	sizeHeads = 10 // of an array, its strings and a mask
	sizeSplit = sizeHeads + 1 + maxDepth/2 + fanout*sumSize
	sizeList  = sizeHeads + 1 + maxDepth/2 + leafSize*nameSize
)

func sizeItem(item []byte) int { return binary.MaxVarintLen64 + len(item) }
