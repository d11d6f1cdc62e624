package votes

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/aweigh/aweigh"
)

// Memory caches the answers of a Verifier. It is for a simulator, in which every node verifies the same signatures in
// one process. It is not safe for concurrent use.
type Memory struct {
	verify       Verifier
	entries      int
	older, newer map[aweigh.Hash]error
}

// NewMemory returns a Memory that keeps at least the newest entries of v's answers, and at most twice as many.
func NewMemory(v Verifier, entries int) *Memory { return &Memory{verify: v, entries: entries} }

// Verify is a Verifier that returns the cached answer, if there is one.
func (m *Memory) Verify(key PublicKey, ctx Context, message, signature []byte) error {
	id := memoKey(key, ctx, message, signature)
	if err, ok := m.newer[id]; ok {
		return err
	}
	err, ok := m.older[id]
	if !ok {
		err = m.verify(key, ctx, message, signature)
	}
	m.keep(id, err)
	return err
}

// Signed caches a signature that its key has just made, as reported by PrivateKey.Telling: it need not be verified.
func (m *Memory) Signed(key PublicKey, ctx Context, message, signature []byte) {
	m.keep(memoKey(key, ctx, message, signature), nil)
}

func (m *Memory) keep(id aweigh.Hash, err error) {
	if m.newer == nil || len(m.newer) >= m.entries {
		m.older, m.newer = m.newer, make(map[aweigh.Hash]error)
	}
	m.newer[id] = err
}

// memoKey returns a hash of everything that an answer depends on, each part preceded by its length.
func memoKey(key PublicKey, ctx Context, message, signature []byte) (id aweigh.Hash) {
	b := make([]byte, 0, 512)
	b = binary.BigEndian.AppendUint64(b, uint64(len(key.Scheme)))
	b = append(b, key.Scheme...)
	b = binary.BigEndian.AppendUint64(b, uint64(len(key.Bytes)))
	b = append(b, key.Bytes...)
	b = binary.BigEndian.AppendUint64(b, uint64(len(ctx)))
	b = append(b, ctx...)
	b = binary.BigEndian.AppendUint64(b, uint64(len(message)))
	b = append(b, message...)
	return sha256.Sum256(append(b, signature...))
}
