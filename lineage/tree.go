package lineage

import (
	"fmt"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/aweigh/aweigh"
)

// Tree is what a reader knows of a log whose entries it gets one after another: enough to compute the head after each
// of them. A run of entries that the reader does not get is represented by the roots of its subtrees (Log.Cover). The
// zero Tree is that of the log without entries.
type Tree struct {
	size int64
	tops []tlog.Hash // as Log.frontier
}

// Size is the number of entries, those that were skipped included.
func (t *Tree) Size() int64 { return t.size }

// Add appends the entry with a leaf hash (Entry.Hash). The error wraps ErrRange if no log can hold more.
func (t *Tree) Add(leaf aweigh.Hash) error {
	if t.size >= MaxSize {
		return fmt.Errorf("%w: a log of %d entries is full", ErrRange, t.size)
	}
	t.add(0, tlog.Hash(leaf))
	return nil
}

// Skip appends the entries up to the index to, and without it, by the hashes that Log.Cover(t.Size(), to) returns. The
// error wraps ErrProof if there are more or fewer hashes than that. That the hashes are the right ones shows in Head.
func (t *Tree) Skip(to int64, hashes []aweigh.Hash) error {
	if to < t.size || to > MaxSize {
		return fmt.Errorf("%w: entries up to %d after %d", ErrProof, to, t.size)
	}
	if n := countCover(t.size, to); n != len(hashes) {
		return fmt.Errorf("%w: %d hashes for the entries from %d up to %d, which take %d", ErrProof, len(hashes),
			t.size, to, n)
	}
	for _, h := range hashes {
		t.add(perfect(t.size, to), tlog.Hash(h))
	}
	return nil
}

// Head is the head of the log with the entries so far.
func (t *Tree) Head() Head { return Head{Size: t.size, Root: rootOf(t.tops)} }

// add appends a subtree of 2^level entries, which divides the size.
func (t *Tree) add(level int, h tlog.Hash) {
	for complete := bits.TrailingZeros64(^uint64(t.size >> level)); complete > 0; complete-- {
		top := len(t.tops) - 1
		h = tlog.NodeHash(t.tops[top], h)
		t.tops = t.tops[:top]
	}
	t.tops = append(t.tops, h)
	t.size += 1 << level
}

// rootOf is the root over perfect subtrees, the largest of which is first.
func rootOf(tops []tlog.Hash) aweigh.Hash {
	if len(tops) == 0 {
		return emptyRoot
	}
	top := len(tops) - 1
	h := tops[top]
	for i := top - 1; i >= 0; i-- {
		h = tlog.NodeHash(tops[i], h)
	}
	return aweigh.Hash(h)
}

// perfect is the level of the largest subtree that begins at an index and ends before another, which is larger.
func perfect(from, to int64) int {
	level := bits.Len64(uint64(to-from)) - 1
	if from > 0 {
		level = min(level, bits.TrailingZeros64(uint64(from)))
	}
	return level
}

func countCover(from, to int64) (n int) {
	for ; from < to; n++ {
		from += 1 << perfect(from, to)
	}
	return n
}

// Cover is the roots of the fewest perfect subtrees that together hold the entries from one index up to another, and
// without that. There are at most two for each bit of the log's size. Errors wrap ErrRange or ErrCorrupt, or are the
// store's.
func (l *Log) Cover(from, to int64) ([]aweigh.Hash, error) {
	if from < 0 || from > to || to > l.size {
		return nil, fmt.Errorf("%w: entries from %d up to %d of %d", ErrRange, from, to, l.size)
	}
	var indexes []int64
	for from < to {
		level := perfect(from, to)
		indexes = append(indexes, tlog.StoredHashIndex(level, from>>level))
		from += 1 << level
	}
	hashes, err := l.hashes(indexes)
	return fromTlog(hashes), err
}
