package keytree

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/aweigh/aweigh"
)

// hash is what names the leaf in a tree.
func (l *Leaf) hash() aweigh.Hash {
	b := make([]byte, 0, 256)
	b = append(append(b, 0, byte(l.Kind)), l.Digest[:]...)
	return sha256.Sum256(append(b, l.Key...))
}

// innerHash is the hash of a node over two others.
func innerHash(bit uint32, left, right aweigh.Hash) aweigh.Hash {
	b := make([]byte, 0, 1+4+2*len(left))
	b = binary.BigEndian.AppendUint32(append(b, 1), bit)
	return sha256.Sum256(append(append(b, left[:]...), right[:]...))
}
