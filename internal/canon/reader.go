package canon

import (
	"math"
	"unicode/utf8"
)

// Reader takes an encoding apart item by item, where Decode would cost too much:
// on the path of every mutation. It accepts what Encode writes and nothing else,
// so nothing has to be encoded again, and gives parts of the input rather than
// copies. After the first item that is not as expected, all reads give zero.
//
// A test of each type that is read with it shows, with Decode as the oracle, that both
// accept the same.
type Reader struct {
	rest []byte
	bad  bool
}

// MaxLevels bounds how deep arrays may lie in each other. A transaction within a transaction takes three levels.
const MaxLevels = 31

// NewReader reads data, which must stay unchanged as long as the results are in use.
func NewReader(data []byte) *Reader { return &Reader{rest: data} }

// Close ends reading. It returns ErrNotCanonical if anything was not as expected,
// or is left over.
func (r *Reader) Close() error {
	if r.bad || len(r.rest) > 0 {
		return ErrNotCanonical
	}
	return nil
}

// Fail is for values that are of the right form, and cannot be.
func (r *Reader) Fail() { r.rest, r.bad = nil, true }

// Failed reports whether anything was not as expected.
func (r *Reader) Failed() bool { return r.bad }

// take is the next n bytes, nil if there are fewer.
func (r *Reader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.Fail()
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// head reads a head in its shortest form.
func (r *Reader) head() (major byte, n uint64) {
	if len(r.rest) == 0 {
		r.Fail()
		return 0, 0
	}
	first := r.rest[0]
	r.rest = r.rest[1:]
	major = first & 0xe0
	switch info := first & 0x1f; {
	case info < 24:
		return major, uint64(info)
	case info > 27:
		r.Fail()
		return 0, 0
	default:
		size := 1 << (info - 24)
		for _, b := range r.take(uint64(size)) {
			n = n<<8 | uint64(b)
		}
		if size == 1 && n < 24 || size > 1 && n>>(4*size) == 0 { // half the bytes would have done
			r.Fail()
			return 0, 0
		}
	}
	return major, n
}

// count reads a head of a major type, with an argument of at most limit.
func (r *Reader) count(major byte, limit uint64) uint64 {
	m, n := r.head()
	if m != major || n > limit {
		r.Fail()
		return 0
	}
	return n
}

// Array reads the head of an array of exactly n elements.
func (r *Reader) Array(n int) {
	if r.count(MajorArray, maxElements) != uint64(n) {
		r.Fail()
	}
}

// Elements reads the head of an array whose elements take at least so many bytes
// each, and gives their number: there is input for that many.
func (r *Reader) Elements(least int) int {
	n := r.count(MajorArray, maxElements)
	if n*uint64(least) > uint64(len(r.rest)) {
		r.Fail()
		return 0
	}
	return int(n)
}

// Uint reads an unsigned integer of at most limit.
func (r *Reader) Uint(limit uint64) uint64 { return r.count(MajorUint, limit) }

// Int reads an integer.
func (r *Reader) Int() int64 {
	switch major, n := r.head(); {
	case n > math.MaxInt64:
		r.Fail()
	case major == MajorUint:
		return int64(n)
	case major == MajorNegative:
		return ^int64(n) // -1 - n
	default:
		r.Fail()
	}
	return 0
}

// Bool reads a boolean.
func (r *Reader) Bool() bool {
	b := r.take(1)
	if b == nil || b[0] != simpleTrue && b[0] != simpleFalse {
		r.Fail()
		return false
	}
	return b[0] == simpleTrue
}

// Null reads what stands for an absent value, and reports false if that is not next.
func (r *Reader) Null() bool {
	if len(r.rest) == 0 || r.rest[0] != simpleNull {
		return false
	}
	r.rest = r.rest[1:]
	return true
}

// Bytes reads a byte string: a part of the input.
func (r *Reader) Bytes() []byte { return r.take(r.count(MajorBytes, math.MaxUint64)) }

// Fixed reads a byte string of exactly len(into) bytes.
func (r *Reader) Fixed(into []byte) {
	if b := r.Bytes(); len(b) == len(into) {
		copy(into, b)
	} else {
		r.Fail()
	}
}

// Text reads a text string.
func (r *Reader) Text() string {
	b := r.take(r.count(MajorText, math.MaxUint64))
	if !utf8.Valid(b) {
		r.Fail()
		return ""
	}
	return string(b)
}
