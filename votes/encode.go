package votes

import (
	"math"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/quorum"
)

// Every anchor encodes and decodes every ballot, so ballots have a codec of
// their own: the same bytes as package canon, which is its oracle in the tests,
// at a fraction of the cost. It handles the parts of CBOR that a ballot needs (RFC
// 8949, section 3): unsigned integers, byte strings and arrays. The heads are canon's.

func appendHash(b []byte, h *aweigh.Hash) []byte {
	return append(append(b, canon.MajorBytes|24, byte(len(h))), h[:]...)
}

func appendDomain(b []byte, d *Domain) []byte {
	b = canon.AppendHead(b, canon.MajorArray, 5)
	b = appendHash(b, &d.Network)
	b = appendHash(b, &d.Scope)
	b = canon.AppendHead(b, canon.MajorUint, uint64(d.Epoch))
	b = appendHash(b, &d.Roster)
	return appendHash(b, &d.Policy)
}

func appendSubject(b []byte, s *quorum.Subject) []byte {
	b = canon.AppendHead(b, canon.MajorArray, 3)
	b = canon.AppendHead(b, canon.MajorUint, uint64(s.Kind))
	b = canon.AppendHead(b, canon.MajorUint, uint64(s.View))
	return appendHash(b, &s.Block)
}

// decoder reads what the functions above append, and nothing else. After the first unexpected byte, bad stays set and
// all reads return zero.
type decoder struct {
	rest  []byte
	bad   bool
	short bool // bad because the input ended
}

// take returns the next n bytes, nil if there are fewer.
func (d *decoder) take(n uint64) []byte {
	if d.bad || n > uint64(len(d.rest)) {
		d.short = d.short || !d.bad
		d.bad = true
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

// head reads a head of the major type, in its shortest form, with an argument of at most limit.
func (d *decoder) head(major byte, limit uint64) (n uint64) {
	first := d.take(1)
	if first == nil || first[0]&0xe0 != major {
		d.bad = true
		return 0
	}
	switch info := first[0] & 0x1f; {
	case info < 24:
		n = uint64(info)
	case info <= 27:
		size := 1 << (info - 24)
		for _, b := range d.take(uint64(size)) {
			n = n<<8 | uint64(b)
		}
		if size == 1 {
			d.bad = d.bad || n < 24
		} else {
			d.bad = d.bad || n>>(4*size) == 0 // half the bytes would have sufficed
		}
	default:
		d.bad = true
	}
	if d.bad || n > limit {
		d.bad = true
		return 0
	}
	return n
}

func (d *decoder) array(n uint64) { d.bad = d.head(canon.MajorArray, n) != n || d.bad }

func (d *decoder) uint(limit uint64) uint64 { return d.head(canon.MajorUint, limit) }

func (d *decoder) bytes() []byte { return d.take(d.head(canon.MajorBytes, math.MaxUint64)) }

func (d *decoder) hash() (h aweigh.Hash) {
	b := d.bytes()
	copy(h[:], b)
	d.bad = d.bad || len(b) != len(h)
	return h
}

func (d *decoder) domain() (v Domain) {
	d.array(5)
	v.Network, v.Scope = d.hash(), d.hash()
	v.Epoch = aweigh.Epoch(d.uint(math.MaxUint64))
	v.Roster, v.Policy = d.hash(), d.hash()
	return v
}

func (d *decoder) subject() (v quorum.Subject) {
	d.array(3)
	v.Kind = quorum.Kind(d.uint(math.MaxUint8))
	v.View = aweigh.View(d.uint(math.MaxUint64))
	v.Block = d.hash()
	return v
}
