package lineage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
)

// MaxSize bounds the entries of a log, so that no arithmetic on sizes that come
// from others can overflow.
const MaxSize = 1 << 48

var (
	// ErrCorrupt means that the store lacks what the log wrote, or shows
	// something else. It is this node's own fault: stop.
	ErrCorrupt = errors.New("lineage: the store does not hold the log it should")

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

// Log is one scope's Merkle log. In the store, under the log's prefix, stand
//
//	'e' index(8, big endian)   the encoding of the entry
//	'h' index(8, big endian)   the hash with that index of package tlog, 32 bytes
//
// Append and Root work from the frontier, the roots of the at most log₂ n
// perfect subtrees that the log falls into, which is read once and then kept:
// appends can follow one another before their ops reach the store. Entry,
// Chain and the proofs read the store and see what has reached it.
// Not safe for concurrent use.
type Log struct {
	r        kv.Reader
	prefix   []byte
	size     int64
	frontier []tlog.Hash // largest subtree first; valid if loaded
	loaded   bool
}

// Open is the log of the given size under prefix in r. It reads nothing yet.
func Open(r kv.Reader, prefix []byte, size int64) *Log {
	return &Log{r: r, prefix: bytes.Clone(prefix), size: size, loaded: size == 0}
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
	ops := make([]kv.Op, 0, len(entries)+int(last-first))
	for i := range entries {
		raw := entries[i].Encode()
		ops = append(ops, kv.Set(l.entryKey(l.size), raw))
		ops = l.push(ops, tlog.RecordHash(raw))
	}
	return ops, nil
}

// push puts a leaf on the frontier, merging the subtrees that it completes, and
// appends the ops that store the leaf's hash and theirs. Hashes are stored in
// the order in which they come to be, so their indexes are consecutive.
func (l *Log) push(ops []kv.Op, h tlog.Hash) []kv.Op {
	index := tlog.StoredHashIndex(0, l.size)
	ops = append(ops, l.hashOp(index, h))
	for complete := bits.TrailingZeros64(^uint64(l.size)); complete > 0; complete-- {
		top := len(l.frontier) - 1
		h = tlog.NodeHash(l.frontier[top], h)
		l.frontier = l.frontier[:top]
		index++
		ops = append(ops, l.hashOp(index, h))
	}
	l.frontier = append(l.frontier, h)
	l.size++
	return ops
}

// Root is the RFC 6962 root over all entries. It costs at most log₂ n hashes.
func (l *Log) Root() (aweigh.Hash, error) {
	if err := l.load(); err != nil {
		return aweigh.Hash{}, err
	}
	if l.size == 0 {
		return emptyRoot, nil
	}
	top := len(l.frontier) - 1
	h := l.frontier[top]
	for i := top - 1; i >= 0; i-- {
		h = tlog.NodeHash(l.frontier[i], h)
	}
	return aweigh.Hash(h), nil
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

// hashes implements tlog.HashReaderFunc.
func (l *Log) hashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		v, ok, err := l.r.Get(l.hashKey(index))
		if err != nil {
			return nil, fmt.Errorf("lineage: reading hash %d: %w", index, err)
		}
		if !ok || len(v) != tlog.HashSize {
			return nil, fmt.Errorf("%w: hash %d", ErrCorrupt, index)
		}
		out[i] = tlog.Hash(v)
	}
	return out, nil
}

func (l *Log) entryKey(index int64) []byte { return l.key('e', index, 0) }
func (l *Log) hashKey(index int64) []byte  { return l.key('h', index, 0) }

// hashOp stores h under its index; key and value share one allocation.
func (l *Log) hashOp(index int64, h tlog.Hash) kv.Op {
	k := l.key('h', index, len(h))
	n := len(k)
	return kv.Set(k[:n:n], append(k, h[:]...)[n:])
}

// key has room for extra more bytes behind it.
func (l *Log) key(kind byte, index int64, extra int) []byte {
	k := make([]byte, 0, len(l.prefix)+9+extra)
	k = append(append(k, l.prefix...), kind)
	return binary.BigEndian.AppendUint64(k, uint64(index))
}
