package edge

import (
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// chance decides by hashes of a seed and of what is to be decided, whatever was decided before.
type chance uint64

// of is a stream of decisions of its own.
func (c chance) of(what ...any) chance {
	h := fnv.New64a()
	var b [8]byte
	put := func(x uint64) { h.Write(binary.LittleEndian.AppendUint64(b[:0], x)) }
	put(uint64(c))
	for _, w := range what {
		switch w := w.(type) {
		case string:
			h.Write([]byte(w))
		case []byte:
			h.Write(w)
		case int:
			put(uint64(w))
		case uint64:
			put(w)
		case chance:
			put(uint64(w))
		default:
			panic("a chance of an unknown type")
		}
	}
	x := h.Sum64() // FNV mixes its last bytes badly: the finalizer of SplitMix64 does the rest
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return chance(x ^ x>>31)
}

// below is a number below n.
func (c chance) below(n int) int { return int(uint64(c) % uint64(n)) }

// within is a duration of [least, most].
func (c chance) within(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(uint64(c)%uint64(most-least+1))
}

// happens is true in so many of a million cases.
func (c chance) happens(ppm int) bool { return c.below(1_000_000) < ppm }

// stream is a sequence of random numbers.
func (c chance) stream() *rand.Rand { return rand.New(rand.NewPCG(uint64(c), 0)) }

// Read makes a chance a source of keys: always the same bytes.
func (c chance) Read(b []byte) (int, error) {
	r := c.stream()
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return len(b), nil
}
