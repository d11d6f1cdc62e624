// Package curve tells public keys of the Edwards curves that bind their holder
// from those that do not.
//
// On a curve with a cofactor some points have a small order. Under such a key one
// signature verifies for many messages, or for all, and no private key is needed to make
// it: it proves nothing (Brendel, Cremers, Jackson and Zhao, "The Provable Security of
// Ed25519", 2021). Some points also have several encodings, one for the canonical y below p
// and others for y + p or a sign of x = 0, and implementations differ on them (Chalkias,
// Garillot and Nikolaenko, "Taming the many EdDSAs", 2020). RFC 8032 allows a verifier to
// accept the former and requires in section 5.1.3 to refuse the latter.
package curve

import (
	"bytes"
	"encoding/hex"
	"errors"

	"github.com/aweigh/aweigh/internal/must"
)

var (
	// ErrSmallOrder means that everybody can sign for a key.
	ErrSmallOrder = errors.New("a point of small order, for which everybody can sign")
	// ErrNotCanonical means that a key is not encoded as RFC 8032 has it.
	ErrNotCanonical = errors.New("not the canonical encoding of a point")
	errLength       = errors.New("not the length of a key")
)

// field is what an encoding of a point is compared with. All numbers are
// little-endian, as in RFC 8032.
type field struct {
	size  int      // bytes of an encoding
	mask  byte     // of the last byte: the bits that belong to y
	sign  byte     // of the last byte: the bit that holds the sign of x
	prime []byte   // p
	small [][]byte // y of the points of small order
}

// The points of small order have few y, with one or two x each: 0 (order 4),
// 1 (the neutral point), -1 (order 2), and on edwards25519 two more (order 8).
var (
	fieldOf25519 = field{size: 32, mask: 0x7f, sign: 0x80,
		prime: number("edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
		small: [][]byte{
			number("0000000000000000000000000000000000000000000000000000000000000000"),
			number("0100000000000000000000000000000000000000000000000000000000000000"),
			number("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
			number("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
			number("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
		}}
	fieldOf448 = field{size: 57, mask: 0, sign: 0x80,
		prime: number("fffffffffffffffffffffffffffffffffffffffffffffffffffffffffeffffffffffffffffffffffffffffffffffffffffffffffffffffff00"),
		small: [][]byte{
			number("000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"),
			number("010000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"),
			number("fefffffffffffffffffffffffffffffffffffffffffffffffffffffffeffffffffffffffffffffffffffffffffffffffffffffffffffffff00"),
		}}
)

func number(digits string) []byte {
	b, err := hex.DecodeString(digits)
	must.OK(err, "a constant")
	return b
}

// Ed25519 is nil for a key of 32 bytes that may enter. It does not say whether the
// point is on the curve: no signature verifies under one that is not. The error is
// ErrSmallOrder or ErrNotCanonical, or says that the length is wrong.
func Ed25519(key []byte) error { return fieldOf25519.check(key) }

// Ed448 is Ed25519 for keys of 57 bytes.
func Ed448(key []byte) error { return fieldOf448.check(key) }

func (f *field) check(key []byte) error {
	if len(key) != f.size {
		return errLength
	}
	last := key[f.size-1]
	if last&^(f.mask|f.sign) != 0 {
		return ErrNotCanonical
	}
	var room [57]byte
	y := append(room[:0], key...)
	y[f.size-1] = last & f.mask
	for _, s := range f.small {
		if bytes.Equal(y, s) {
			return ErrSmallOrder
		}
	}
	for i := f.size - 1; i >= 0; i-- {
		if y[i] != f.prime[i] {
			if y[i] < f.prime[i] {
				return nil
			}
			return ErrNotCanonical
		}
	}
	return ErrNotCanonical
}
