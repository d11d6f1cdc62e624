package bench

import (
	"math/bits"
	"time"
)

// Histogram counts durations in buckets of about 3 % width, without allocating:
// 32 for every power of two of nanoseconds. The zero value is empty.
type Histogram struct {
	buckets [64 * perOctave]uint64
	count   uint64
	max     time.Duration
}

const (
	octaveBits = 5
	perOctave  = 1 << octaveBits
)

// add counts d; one below zero counts as zero.
func (h *Histogram) add(d time.Duration) {
	d = max(d, 0)
	h.buckets[bucketOf(uint64(d))]++
	h.count++
	h.max = max(h.max, d)
}

// bucketOf is the number itself below perOctave; above, the octave and the
// first five bits after the leading one.
func bucketOf(n uint64) int {
	if n < perOctave {
		return int(n)
	}
	shift := bits.Len64(n) - 1 - octaveBits
	return (shift+1)<<octaveBits + int(n>>shift) - perOctave
}

// upper is the largest number in a bucket.
func upper(bucket int) uint64 {
	if bucket < perOctave {
		return uint64(bucket)
	}
	shift := bucket>>octaveBits - 1
	return uint64(bucket&(perOctave-1)+perOctave+1)<<shift - 1
}

// merge adds what o counted.
func (h *Histogram) merge(o *Histogram) {
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
	h.count += o.count
	h.max = max(h.max, o.max)
}

// Max is the longest.
func (h *Histogram) Max() time.Duration { return h.max }

// Quantile is a duration that per out of of the durations do not exceed, up to
// the width of a bucket; 0 for none.
func (h *Histogram) Quantile(per, of uint64) time.Duration {
	rank := (h.count*per + of - 1) / of
	seen := uint64(0)
	for i, n := range h.buckets {
		if seen += n; seen >= rank && n > 0 {
			return min(time.Duration(upper(i)), h.max)
		}
	}
	return h.max
}
