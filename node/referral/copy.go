package referral

import (
	"bytes"
	"errors"
	"math"

	"github.com/tidwall/btree"

	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

// Copy is what a node keeps of the keys [key, end), in the sense of scope.Op, of a scope that it does not hold. It is
// filled with what the scope's anchors gave as of one revision, and then follows the changes that they give.
// Like Scope, it does no I/O and is not safe for concurrent use.
type Copy struct {
	key, end []byte
	kvs      *btree.BTreeG[scope.KeyValue]
	bytes    int64
	next     int64 // it has all changes before this revision
}

// PairBytes is what a pair takes in memory besides its key and value, about.
const PairBytes = 256

// Errors of a copy that cannot follow its scope any more.
var (
	ErrCopyGap   = errors.New("node: the changes since were compacted")
	ErrCopyParts = errors.New("node: the scope has delegated some of the keys")
)

// NewCopy returns an empty copy.
func NewCopy(key, end []byte) *Copy {
	c := &Copy{key: bytes.Clone(key), end: bytes.Clone(end)}
	less := func(a, b scope.KeyValue) bool { return bytes.Compare(a.Key, b.Key) < 0 }
	c.kvs = btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
	return c
}

// Bytes returns the memory that the copy takes, about.
func (c *Copy) Bytes() int64 { return c.bytes }

// Revision returns the revision that the copy shows, 0 while it is not full.
func (c *Copy) Revision() int64 { return max(c.next-1, 0) }

// Fill gives the copy all of its keys, as of a revision.
func (c *Copy) Fill(kvs []scope.KeyValue, revision int64) {
	for i := range kvs {
		c.put(kvs[i])
	}
	c.next = revision + 1
}

func (c *Copy) put(kv scope.KeyValue) {
	c.bytes += sizeOf(&kv)
	if old, ok := c.kvs.Set(kv); ok {
		c.bytes -= sizeOf(&old)
	}
}

func sizeOf(kv *scope.KeyValue) int64 { return int64(PairBytes + len(kv.Key) + len(kv.Value)) }

// Watch returns the question for the changes that come next.
func (c *Copy) Watch() Watch { return Watch{Key: c.key, End: c.end, From: c.next} }

// Follow takes the answer to Watch, of anchors that had reached a revision. done is false if more changes are to be
// asked for. After an error, ErrCopyGap or ErrCopyParts, the copy is of no use.
func (c *Copy) Follow(got *Events, revision int64) (done bool, err error) {
	switch {
	case got.Given > 0: // what it has of these keys may be old
		return false, ErrCopyParts
	case got.Compacted > c.next:
		return false, ErrCopyGap
	}
	for i := range got.All {
		kv := got.All[i].Kv
		if got.All[i].Class != lineage.Delete {
			c.put(kv)
		} else if old, ok := c.kvs.Delete(kv); ok {
			c.bytes -= sizeOf(&old)
		}
	}
	c.next = max(c.next, got.Through(revision)+1)
	return got.Next == 0, nil
}

// Covers reports whether the copy has all keys of a range.
func (c *Copy) Covers(key, end []byte) bool { return Holds(c.key, c.end, key, end) }

// Holds reports whether all keys of a range, in the sense of scope.Op, are in the range [from, to).
func Holds(from, to, key, end []byte) bool {
	if len(end) == 0 {
		return scope.Within(key, from, to)
	}
	if len(to) == 0 || bytes.Compare(key, from) < 0 {
		return false
	}
	return scope.ToEnd(to) || !scope.ToEnd(end) && bytes.Compare(end, to) <= 0
}

// Range reads a range that the copy covers. r names no revision.
func (c *Copy) Range(key, end []byte, r *scope.Range) scope.RangeResult {
	var kvs []scope.KeyValue
	count, most := int64(0), int64(math.MaxInt64)
	if r.CountOnly {
		most = 0
	} else if r.Heads() {
		most = r.Limit + 1 // one more shows that there is more
	}
	c.kvs.Ascend(scope.KeyValue{Key: key}, func(kv scope.KeyValue) bool {
		if !scope.Within(kv.Key, key, end) {
			return false
		}
		if count++; count <= most {
			kvs = append(kvs, kv)
		}
		return true
	})
	res := r.Of(kvs)
	res.Count, res.Revision = count, c.Revision()
	return res
}
