package reconcile

import (
	"fmt"

	"github.com/aweigh/aweigh"
)

const (
	fanout   = 16                     // kids of a node: one for each value of 4 bits
	maxDepth = 2 * len(aweigh.Hash{}) // 4-bit digits of a name
)

// Prefix is the range of the names that begin with some 4-bit digits. The zero
// Prefix is the range of all.
type Prefix struct {
	digits aweigh.Hash // zero beyond
	n      uint8
}

// kid is the range of one more digit.
func (p Prefix) kid(digit int) Prefix {
	if p.n%2 == 0 {
		digit <<= 4
	}
	p.digits[p.n/2] |= byte(digit)
	p.n++
	return p
}

// parent is the range of one digit less, and that digit. The zero Prefix has none.
func (p Prefix) parent() (Prefix, int) {
	p.n--
	digit := digit(&p.digits, int(p.n))
	if p.n%2 == 0 {
		p.digits[p.n/2] = 0
	} else {
		p.digits[p.n/2] &= 0xf0
	}
	return p, digit
}

// digit is the 4-bit digit of a name at a place, from 0.
func digit(id *aweigh.Hash, at int) int {
	if at%2 == 0 {
		return int(id[at/2] >> 4)
	}
	return int(id[at/2] & 0x0f)
}

// append writes the number of digits and the bytes that hold them.
func (p Prefix) append(b []byte) []byte {
	return append(append(b, p.n), p.digits[:(p.n+1)/2]...)
}

// parsePrefix reads the form of append, of which there is one for each Prefix.
func parsePrefix(b []byte) (p Prefix, err error) {
	if len(b) == 0 || int(b[0]) > maxDepth || len(b) != 1+(int(b[0])+1)/2 {
		return p, fmt.Errorf("%w: prefix %x", ErrProtocol, b)
	}
	p.n = b[0]
	copy(p.digits[:], b[1:])
	if p.n%2 == 1 && b[len(b)-1]&0x0f != 0 {
		return p, fmt.Errorf("%w: prefix %x", ErrProtocol, b)
	}
	return p, nil
}

// String is the digits, in hexadecimal, and a star.
func (p Prefix) String() string { return p.digits.String()[:p.n] + "*" }
