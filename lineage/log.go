package lineage

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/kv"
)

// MaxSize bounds the entries of a log, so that no arithmetic on sizes that come
// from others can overflow.
const MaxSize = 1 << 48

var (
	// ErrCorrupt means that the store lacks records of the log, or returns
	// others. It is this node's own fault: stop.
	ErrCorrupt = refusal.New(refusal.Internal, "lineage: the store does not hold the log it should")

	// ErrRange means that the caller asked for entries that the log does not have.
	ErrRange = errors.New("lineage: beyond the log")
)

// Head states a log's size and the root over that many entries, as block
// headers do. A root alone does not fix the size: only both together do.
type Head struct {
	_    struct{} `cbor:",toarray"`
	Size int64
	Root aweigh.Hash // RFC 6962, section 2.1; SHA-256 of nothing for size 0
}

// Log is one scope's Merkle log. Entries are appended by the block, and entries
// appended together are stored together, in runs. The store holds under the
// log's prefix
//
//	'e' index(8, big endian)   a run of entries, of which this is the last one's index
//	'h' index(8, big endian)   a run of hashes, with the last one's index of package tlog
//
// Append and Root work from the frontier, the roots of the at most log₂ n
// perfect subtrees that the log falls into, which is read once and then kept:
// appends can follow one another before their ops reach the store. Entry, Chain
// and the proofs read the store and see the ops that have reached it.
// Not safe for concurrent use.
type Log struct {
	r        kv.Reader
	prefix   []byte
	size     int64
	frontier []tlog.Hash // largest subtree first; valid if loaded
	loaded   bool
	bounds   Bounds
}

// Open is the log of the given size under prefix in r. It reads nothing yet.
func Open(r kv.Reader, prefix []byte, size int64) *Log {
	return &Log{r: r, prefix: bytes.Clone(prefix), size: size, loaded: size == 0, bounds: DefaultBounds()}
}

// Fork is an independent log that continues from this one's size and frontier
// over another reader, which must show all that this log has appended. It saves
// reading the frontier again for every block.
func (l *Log) Fork(r kv.Reader) *Log {
	f := *l
	f.r, f.frontier = r, slices.Clone(l.frontier)
	return &f
}

// Size is the number of entries.
func (l *Log) Size() int64 { return l.size }

// Append adds the entries and returns the ops that store them. On an error,
// which wraps ErrEntry or ErrCorrupt or is the store's, the log is unchanged.
func (l *Log) Append(entries ...Entry) ([]kv.Op, error) {
	if l.size > MaxSize-int64(len(entries)) {
		return nil, fmt.Errorf("%w: the log is full", ErrEntry)
	}
	for i := range entries {
		if err := entries[i].check(); err != nil {
			return nil, err
		}
		if at := l.size + int64(i); entries[i].Prev > at {
			return nil, fmt.Errorf("%w: entry %d follows entry %d", ErrEntry, at, entries[i].Prev-1)
		}
	}
	if err := l.load(); err != nil {
		return nil, err
	}
	first := tlog.StoredHashCount(l.size)
	last := tlog.StoredHashCount(l.size + int64(len(entries)))
	raw := make([][]byte, len(entries))
	hashes := make([]byte, 0, int(last-first)*tlog.HashSize)
	for i := range entries {
		raw[i] = canon.Encode(&entries[i])
		hashes = l.push(hashes, tlog.RecordHash(raw[i]))
	}
	return l.hashRuns(l.entryRuns(nil, raw), hashes), nil
}

// push puts a leaf on the frontier, merging the subtrees that it completes, and
// appends the leaf's hash and theirs, in the order in which they come to be: so
// their indexes are consecutive.
func (l *Log) push(hashes []byte, h tlog.Hash) []byte {
	hashes = append(hashes, h[:]...)
	for complete := bits.TrailingZeros64(^uint64(l.size)); complete > 0; complete-- {
		top := len(l.frontier) - 1
		h = tlog.NodeHash(l.frontier[top], h)
		l.frontier = l.frontier[:top]
		hashes = append(hashes, h[:]...)
	}
	l.frontier = append(l.frontier, h)
	l.size++
	return hashes
}

// Root is the RFC 6962 root over all entries. It costs at most log₂ n hashes.
func (l *Log) Root() (aweigh.Hash, error) {
	if err := l.load(); err != nil {
		return aweigh.Hash{}, err
	}
	return rootOf(l.frontier), nil
}

// emptyRoot is the root of the log without entries.
var emptyRoot = aweigh.Sum()

// Head is the log's size with its root.
func (l *Log) Head() (Head, error) {
	root, err := l.Root()
	return Head{Size: l.size, Root: root}, err
}

// load reads the frontier: one hash for every bit of the size that is set.
func (l *Log) load() error {
	if l.loaded {
		return nil
	}
	if l.size < 0 || l.size > MaxSize {
		return fmt.Errorf("%w: a log of %d entries", ErrRange, l.size)
	}
	var indexes []int64
	for level := bits.Len64(uint64(l.size)) - 1; level >= 0; level-- {
		if n := l.size >> level; n&1 == 1 {
			indexes = append(indexes, tlog.StoredHashIndex(level, n-1))
		}
	}
	frontier, err := l.hashes(indexes)
	if err != nil {
		return err
	}
	l.frontier, l.loaded = frontier, true
	return nil
}
