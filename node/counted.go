package node

import (
	"bytes"
	"math"
	"sync"

	"github.com/aweigh/aweigh/scope"
)

// rangeCounts remember how many keys there are in ranges that were counted, and after pages that were read. A page
// tells how many keys its range holds: a reader of many pages, all as of one revision, would have them counted again
// with every page, with the square of their number. What a scope holds as of a revision never changes, so a count stays
// right, and what changed since tells that as of a later one.
// The zero value is ready; safe for concurrent use.
type rangeCounts struct {
	mu   sync.Mutex
	kept []countedRange // a ring, once it is full
	next int
}

// countedRange is the number of keys in [from, end) as of a revision.
type countedRange struct {
	revision  int64
	from, end []byte
	count     int64
}

const (
	countsKept = 64      // of ranges, and of readers that go on from where they were
	countBytes = 4 << 10 // of both ends of a range that is remembered, at most
	countFrom  = 256     // keys in a range that is remembered, at least: fewer are soon counted
	countSince = 256     // changes since a count that are looked at, at most
	countWorth = 64      // keys that are passed in the time that it takes to look for one
)

// find is the newest count of [from, end) as of the revisions oldest to newest.
func (c *rangeCounts) find(oldest, newest int64, from, end []byte) (found countedRange, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.kept {
		k := &c.kept[i]
		if oldest <= k.revision && k.revision <= newest && bytes.Equal(k.from, from) && bytes.Equal(k.end, end) {
			found, oldest, ok = *k, k.revision+1, true
		}
	}
	return found, ok
}

func (c *rangeCounts) keep(revision int64, from, end []byte, count int64) {
	if count < countFrom || len(from)+len(end) > countBytes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.kept {
		if k := &c.kept[i]; k.revision == revision && bytes.Equal(k.from, from) && bytes.Equal(k.end, end) {
			return
		}
	}
	k := countedRange{revision, bytes.Clone(from), bytes.Clone(end), count}
	if len(c.kept) < countsKept {
		c.kept = append(c.kept, k)
		return
	}
	c.kept[c.next] = k
	c.next = (c.next + 1) % countsKept
}

// counting is Range of several keys that only counts them, or has a limit in order of key: it does not count what was
// counted before.
func (v *View) counting(key, end []byte, r scope.Range, take func(bytes int) error) (res scope.RangeResult, err error) {
	at := r.Revision
	if at <= 0 {
		at = v.Head().Revision
	}
	count, known, err := v.count(at, key, end)
	switch {
	case err != nil:
		return res, err
	case !known:
		res, err = v.PageTaking(key, end, r, 0, take)
	case r.CountOnly:
		res = scope.RangeResult{Count: count, Revision: v.Head().Revision}
	default:
		res, err = v.PageTaking(key, end, r, math.MaxInt, take)
		res.Count = count
	}
	if err != nil {
		return res, err
	}
	v.of.counted.keep(at, key, end, res.Count)
	if n := len(res.Kvs); res.More {
		v.of.counted.keep(at, append(bytes.Clone(res.Kvs[n-1].Key), 0), end, res.Count-int64(n))
	}
	return res, nil
}

// count is how many keys there are in [key, end) as of a revision, if that follows from an earlier count.
func (v *View) count(at int64, key, end []byte) (count int64, known bool, err error) {
	was, ok := v.of.counted.find(max(v.Head().Compacted, 1), at, key, end)
	if !ok || was.revision == at {
		return was.count, ok, nil
	}
	touched, err := v.Touching(key, end) // what went to another scope is no change
	if err != nil || len(touched) > 0 {
		return 0, false, err
	}
	changed, ok, err := v.Changed(was.revision+1, at, key, end, countSince)
	if err != nil || !ok || int64(len(changed))*countWorth > was.count {
		return 0, false, err
	}
	count = was.count
	for _, one := range changed {
		before, err := v.Range(one, nil, scope.Range{Revision: was.revision, CountOnly: true})
		if err != nil {
			return 0, false, err
		}
		after, err := v.Range(one, nil, scope.Range{Revision: at, CountOnly: true})
		if err != nil {
			return 0, false, err
		}
		count += after.Count - before.Count
	}
	return count, true, nil
}
