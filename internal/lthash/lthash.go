// Package lthash is a hash of a multiset that follows every change of the set at
// a cost that does not depend on the set's size: LtHash, the lattice based hash
// of Bellare and Micciancio ("A New Paradigm for Collision-Free Hashing:
// Incrementality at Reduced Cost", 1997), in the form and with the parameters of
// Lewi, Kim, Maykov and Weis of Facebook ("Securing Update Propagation with
// Homomorphic Hashing", 2019): 1,024 lanes of 16 bits, each the sum modulo 2^16
// of that lane of all elements. It offers about 200 bits of security against a
// collision.
//
// The caller names an element by a collision resistant hash of it. The element's
// lanes are the AES-256-CTR keystream, from a zero counter block, under that hash
// as the key, read as little-endian numbers. The source expands elements with
// BLAKE2Xb instead.
package lthash

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"

	"github.com/aweigh/aweigh/internal/must"
)

// Size is the length of a Hash in bytes.
const Size = 2048

// Hash is the hash of a multiset. Hashes of equal multisets are equal, in whatever
// order elements came and went. The zero value is the hash of the empty set. Four
// lanes share a machine word.
type Hash [Size / 8]uint64

// Lanes is room for the lanes of one element, which Add and Remove overwrite.
type Lanes [Size]byte

const (
	laneTops = 0x8000_8000_8000_8000
	laneRest = ^uint64(laneTops)
)

// Add puts an element in: four additions modulo 2^16 in one word, whose carries
// are kept from crossing lanes by adding the top bits apart.
func (h *Hash) Add(element [32]byte, room *Lanes) {
	room.expand(&element)
	for i := range h {
		x, y := h[i], binary.LittleEndian.Uint64(room[8*i:])
		h[i] = (x&laneRest + y&laneRest) ^ (x^y)&laneTops
	}
}

// Remove takes an element out that was put in before.
func (h *Hash) Remove(element [32]byte, room *Lanes) {
	room.expand(&element)
	for i := range h {
		x, y := h[i], binary.LittleEndian.Uint64(room[8*i:])
		h[i] = ((x | laneTops) - y&laneRest) ^ (x^^y)&laneTops
	}
}

// noLanes is combined with the keystream, by exclusive or, to get the keystream itself.
var noLanes Lanes

// expand fills l with the keystream of an element.
func (l *Lanes) expand(element *[32]byte) {
	block, err := aes.NewCipher(element[:])
	must.OK(err, "making a cipher of a 32-byte key")
	cipher.NewCTR(block, noLanes[:aes.BlockSize]).XORKeyStream(l[:], noLanes[:])
}

// Bytes is the hash as little-endian words.
func (h *Hash) Bytes() []byte { return h.Append(make([]byte, 0, Size)) }

// Append is b with the Bytes of the hash after it.
func (h *Hash) Append(b []byte) []byte {
	for _, w := range h {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// SetBytes is the inverse of Bytes. It reports false for another length.
func (h *Hash) SetBytes(b []byte) bool {
	if len(b) != Size {
		return false
	}
	for i := range h {
		h[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return true
}
