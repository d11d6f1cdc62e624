package node

import (
	"bytes"
	"math"
	"sync"

	"github.com/aweigh/aweigh/scope"
)

// tails remember, for all who read, how many keys there are after pages that were read. A page tells how many keys its range holds, and who
// reads a range in pages, all as of one revision, would have them counted again with every page: with the
// square of their number. What a scope holds as of a revision never changes, so a count stays right.
// The zero value is ready; safe for concurrent use.
type tails struct {
	mu   sync.Mutex
	kept []tail // a ring, once it is full
	next int
}

// tail is the number of keys in [from, end) as of a revision.
type tail struct {
	revision  int64
	from, end []byte
	count     int64
}

const (
	tailsKept = 64      // readers that go on from where they were
	tailBytes = 4 << 10 // of both ends of a range that is remembered, at most
)

// find is how many keys there are in [from, end) as of a revision, if that is known.
func (t *tails) find(revision int64, from, end []byte) (count int64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.kept {
		if k := &t.kept[i]; k.revision == revision && bytes.Equal(k.from, from) && bytes.Equal(k.end, end) {
			return k.count, true
		}
	}
	return 0, false
}

// keep remembers how many there are after a key.
func (t *tails) keep(revision int64, after, end []byte, count int64) {
	if len(after)+len(end) > tailBytes {
		return
	}
	k := tail{revision, append(bytes.Clone(after), 0), bytes.Clone(end), count}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.kept) < tailsKept {
		t.kept = append(t.kept, k)
		return
	}
	t.kept[t.next] = k
	t.next = (t.next + 1) % tailsKept
}

// page is Range with a limit in order of key, which does not count what was counted before.
func (v *View) page(key, end []byte, r scope.Range) (res scope.RangeResult, err error) {
	at, tails := r.Revision, &v.of.tails
	if at <= 0 {
		at = v.Head().Revision
	}
	count, known := tails.find(at, key, end)
	if known {
		res, err = v.Page(key, end, r, math.MaxInt)
		res.Count = count
	} else {
		res, err = v.Range(key, end, r)
	}
	if n := len(res.Kvs); err == nil && res.More {
		tails.keep(at, res.Kvs[n-1].Key, end, res.Count-int64(n))
	}
	return res, err
}
