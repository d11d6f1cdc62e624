package lineage

import (
	"errors"
	"fmt"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
)

// ErrProof is wrapped by errors about proofs that do not show what they claim.
var ErrProof = errors.New("lineage: the proof does not hold")

// maxPath is the longest path that a log of MaxSize entries can need.
const maxPath = 49

// Inclusion shows that an entry stands at Index in a log of Size entries: the
// Merkle audit path of RFC 6962, section 2.1.1, from the leaf up.
type Inclusion struct {
	_           struct{} `cbor:",toarray"`
	Index, Size int64
	Path        []aweigh.Hash
}

// Prove is the inclusion proof of the entry at index in the log's first size
// entries. The error wraps ErrRange or ErrCorrupt, or is the store's.
func (l *Log) Prove(index, size int64) (Inclusion, error) {
	if index < 0 || index >= size || size > l.size {
		return Inclusion{}, fmt.Errorf("%w: entry %d of %d of %d", ErrRange, index, size, l.size)
	}
	p, err := tlog.ProveRecord(size, index, tlog.HashReaderFunc(l.hashes))
	if err != nil {
		return Inclusion{}, fmt.Errorf("lineage: proving entry %d of %d: %w", index, size, err)
	}
	return Inclusion{Index: index, Size: size, Path: fromTlog(p)}, nil
}

// Verify returns nil if the proof shows that the entry with the given leaf hash
// (Entry.Hash) stands at p.Index in the log whose head the caller trusts. It
// needs the head's size, not only its root: the root of three entries looks
// like that of two whose second "entry" is a pair. Errors wrap ErrProof.
func (p Inclusion) Verify(leaf aweigh.Hash, head Head) error {
	if p.Size != head.Size {
		return fmt.Errorf("%w: it is for %d entries, the head for %d", ErrProof, p.Size, head.Size)
	}
	if err := p.check(); err != nil {
		return err
	}
	if err := tlog.CheckRecord(toTlog(p.Path), p.Size, tlog.Hash(head.Root), p.Index, tlog.Hash(leaf)); err != nil {
		return fmt.Errorf("%w: entry %d of %d", ErrProof, p.Index, p.Size)
	}
	return nil
}

// Before is the head of the log's first p.Index entries, which the path of a proof that holds (Verify) determines: the
// subtrees to the left of the entry are theirs.
func (p Inclusion) Before() Head {
	var tops []tlog.Hash
	at, end := int64(0), p.Size
	for i := len(p.Path) - 1; i >= 0 && end-at > 1; i-- {
		half := at + 1<<(bits.Len64(uint64(end-at-1))-1) // as RFC 6962 splits
		if p.Index < half {
			end = half
			continue
		}
		tops = append(tops, tlog.Hash(p.Path[i]))
		at = half
	}
	return Head{Size: p.Index, Root: rootOf(tops)}
}

func (p Inclusion) check() error {
	if p.Index < 0 || p.Index >= p.Size || p.Size > MaxSize || len(p.Path) > maxPath {
		return fmt.Errorf("%w: entry %d of %d with a path of %d", ErrProof, p.Index, p.Size, len(p.Path))
	}
	return nil
}

// Encode is the proof's canonical encoding.
func (p Inclusion) Encode() []byte { return canon.Encode(p) }

// DecodeInclusion reads what Encode wrote; its errors wrap ErrProof.
func DecodeInclusion(data []byte) (Inclusion, error) {
	var p Inclusion
	if err := canon.Decode(data, &p); err != nil {
		return Inclusion{}, fmt.Errorf("%w: %w", ErrProof, err)
	}
	if err := p.check(); err != nil {
		return Inclusion{}, err
	}
	return p, nil
}

// Consistency shows that a log of Size entries begins with the same entries as
// the log of Old entries did, in order: RFC 6962, section 2.1.2.
type Consistency struct {
	_         struct{} `cbor:",toarray"`
	Old, Size int64
	Path      []aweigh.Hash
}

// ProveConsistency is the proof that the log's first size entries begin with
// its first old entries. Errors as for Prove.
func (l *Log) ProveConsistency(old, size int64) (Consistency, error) {
	if old < 0 || old > size || size > l.size {
		return Consistency{}, fmt.Errorf("%w: %d and %d of %d", ErrRange, old, size, l.size)
	}
	c := Consistency{Old: old, Size: size}
	if old == 0 { // nothing is a prefix of everything
		return c, nil
	}
	p, err := tlog.ProveTree(size, old, tlog.HashReaderFunc(l.hashes))
	if err != nil {
		return Consistency{}, fmt.Errorf("lineage: proving %d within %d: %w", old, size, err)
	}
	c.Path = fromTlog(p)
	return c, nil
}

// Verify returns nil if the proof shows that the log with the newer head only
// appended to the log with the older one. Errors wrap ErrProof.
func (c Consistency) Verify(older, newer Head) error {
	if c.Old != older.Size || c.Size != newer.Size {
		return fmt.Errorf("%w: it is for %d and %d entries, the heads for %d and %d",
			ErrProof, c.Old, c.Size, older.Size, newer.Size)
	}
	if err := c.check(); err != nil {
		return err
	}
	holds := false
	switch {
	case c.Old == 0:
		holds = len(c.Path) == 0 && older.Root == emptyRoot && (c.Size > 0 || newer.Root == emptyRoot)
	default:
		holds = tlog.CheckTree(toTlog(c.Path), c.Size, tlog.Hash(newer.Root), c.Old, tlog.Hash(older.Root)) == nil
	}
	if !holds {
		return fmt.Errorf("%w: %d entries within %d", ErrProof, c.Old, c.Size)
	}
	return nil
}

func (c Consistency) check() error {
	if c.Old < 0 || c.Old > c.Size || c.Size > MaxSize || len(c.Path) > maxPath {
		return fmt.Errorf("%w: %d within %d with a path of %d", ErrProof, c.Old, c.Size, len(c.Path))
	}
	return nil
}

// Encode is the proof's canonical encoding.
func (c Consistency) Encode() []byte { return canon.Encode(c) }

// DecodeConsistency reads what Encode wrote; its errors wrap ErrProof.
func DecodeConsistency(data []byte) (Consistency, error) {
	var c Consistency
	if err := canon.Decode(data, &c); err != nil {
		return Consistency{}, fmt.Errorf("%w: %w", ErrProof, err)
	}
	if err := c.check(); err != nil {
		return Consistency{}, err
	}
	return c, nil
}

func fromTlog[P ~[]tlog.Hash](p P) []aweigh.Hash {
	out := make([]aweigh.Hash, len(p))
	for i, h := range p {
		out[i] = aweigh.Hash(h)
	}
	return out
}

func toTlog(p []aweigh.Hash) []tlog.Hash {
	out := make([]tlog.Hash, len(p))
	for i, h := range p {
		out[i] = tlog.Hash(h)
	}
	return out
}
