package scope

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
)

// accumulator is a hash of a set of records that can follow every change of the
// set at a cost that does not depend on the set's size: LtHash, the lattice
// based multiset hash of Bellare and Micciancio ("A New Paradigm for
// Collision-Free Hashing: Incrementality at Reduced Cost", 1997), in the form
// and with the parameters of Lewi, Kim, Maykov and Weis ("Securing Update
// Propagation with Homomorphic Hashing", 2019): 1,024 lanes of 16 bits, each the
// sum modulo 2^16 of that lane of all elements. It offers about 200 bits of
// security against a collision.
//
// An element's lanes are the AES-256-CTR keystream, from a zero counter block,
// under the element's hash as the key, read as little-endian numbers. Four lanes
// share a machine word. The zero value is the hash of the empty set.
type accumulator [accumulatorBytes / 8]uint64

const accumulatorBytes = 2048

// element is what stands for one record in the accumulator, and, for version
// records, in the lineage as the object's digest. It does not depend on the
// scope. scratch is overwritten and returned for use in the next call.
func element(scratch, storeKey, record []byte) (aweigh.Hash, []byte) {
	scratch = append(scratch[:0], "aweigh/element/1"...)
	scratch = append(scratch, storeKey[len(space{}):]...)
	scratch = append(scratch, record...)
	return sha256.Sum256(scratch), scratch
}

const (
	laneTops = 0x8000_8000_8000_8000
	laneRest = ^uint64(laneTops)
)

// lanes is room for the lanes of one element.
type lanes [accumulatorBytes]byte

// add puts an element in: four additions modulo 2^16 in one word, whose carries
// are kept from crossing lanes by adding the top bits apart.
func (a *accumulator) add(h aweigh.Hash, room *lanes) {
	room.expand(&h)
	for i := range a {
		x, y := a[i], binary.LittleEndian.Uint64(room[8*i:])
		a[i] = (x&laneRest + y&laneRest) ^ (x^y)&laneTops
	}
}

// remove takes an element out that was put in before.
func (a *accumulator) remove(h aweigh.Hash, room *lanes) {
	room.expand(&h)
	for i := range a {
		x, y := a[i], binary.LittleEndian.Uint64(room[8*i:])
		a[i] = ((x | laneTops) - y&laneRest) ^ (x^^y)&laneTops
	}
}

// noLanes is what the keystream is added to, by exclusive or, to stand alone.
var noLanes lanes

// expand fills l with the keystream of h.
func (l *lanes) expand(h *aweigh.Hash) {
	block, err := aes.NewCipher(h[:])
	must.OK(err, "making a cipher of a 32-byte key")
	cipher.NewCTR(block, noLanes[:aes.BlockSize]).XORKeyStream(l[:], noLanes[:])
}

// bytes is the accumulator as little-endian words.
func (a *accumulator) bytes() []byte { return a.append(make([]byte, 0, accumulatorBytes)) }

func (a *accumulator) append(b []byte) []byte {
	for _, w := range a {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// setBytes is the inverse of bytes; it reports false for another length.
func (a *accumulator) setBytes(b []byte) bool {
	if len(b) != accumulatorBytes {
		return false
	}
	for i := range a {
		a[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return true
}
