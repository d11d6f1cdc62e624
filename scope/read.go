package scope

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
)

// RangeResult is what a Range read.
type RangeResult struct {
	_        struct{} `cbor:",toarray"`
	Kvs      []KeyValue
	More     bool  // the limit cut some off
	Count    int64 // live keys in the range, whatever the limit and the bounds on revisions
	Revision int64 // of the key space that was read from; not the one asked for
}

// Range reads the keys [key, end) in the sense of Op. The error is ErrCompacted
// or ErrFutureRevision if the revision asked for cannot be read.
func (s *State) Range(key, end []byte, r Range) (RangeResult, error) { return s.Page(key, end, r, 0) }

// Page is Range in order of key, but it ends, with More, where there is more after so many bytes of keys and values
// or after its limit, and counts no further. It gives one pair at least. With 0 it is Range.
func (s *State) Page(key, end []byte, r Range, most int) (RangeResult, error) {
	return s.PageTaking(key, end, r, most, nil)
}

// PageTaking is Page, and calls take with the bytes of each pair before it reads the next one. An error of take ends
// the read.
func (s *State) PageTaking(key, end []byte, r Range, most int, take func(bytes int) error) (RangeResult, error) {
	if err := s.head.readable(r.Revision); err != nil {
		return RangeResult{}, err
	}
	if r.Revision > 0 && s.head.Folded > 0 {
		own, err := s.region()
		if err == nil {
			err = own.wasElsewhere(key, end, r.Revision)
		}
		if err != nil {
			return RangeResult{}, err
		}
	}
	if len(end) == 0 {
		res, err := s.one(key, r, s.head.Revision)
		if err == nil && take != nil && len(res.Kvs) > 0 {
			err = take(len(res.Kvs[0].Key) + len(res.Kvs[0].Value))
		}
		return res, err
	}
	return s.pageOf(key, end, r, s.head.Revision, most, take)
}

// one is Range of one key, which passes no older versions: there may be thousands.
func (v *view) one(key []byte, r Range, current int64) (RangeResult, error) {
	res := RangeResult{Revision: current}
	rev := r.Revision
	if rev <= 0 {
		rev = math.MaxInt64
	}
	is, ok, err := v.asOf(key, rev)
	if err != nil || !ok {
		return res, err
	}
	res.Count = 1
	if r.CountOnly || !r.admits(&is) {
		return res, nil
	}
	is.Key = bytes.Clone(key)
	if r.KeysOnly {
		is.Value = nil
	}
	res.Kvs = []KeyValue{is}
	return res, nil
}

// readable reports whether content as of a revision can be read; 0 is the newest.
func (h *Head) readable(rev int64) error {
	switch {
	case rev <= 0:
		return nil
	case rev > max(h.Revision, h.ClosedTimestamp()):
		return ErrFutureRevision
	case rev < h.Compacted:
		return ErrCompacted
	}
	return nil
}

// Object finds an object by its UID: a key that names it, or last named it,
// and the count of its newest entry in the lineage, to start lineage.Log.Chain
// from. It reports false for a UID that was never given.
func (s *State) Object(u aweigh.UID) (key []byte, last int64, ok bool, err error) {
	raw, ok, err := s.r.Get(s.space.at(atObject, u[:]...))
	if err != nil || !ok {
		return nil, 0, false, err
	}
	o, err := readObject(raw)
	if err != nil {
		return nil, 0, false, err
	}
	if o.End != 0 {
		return o.Key, o.End, true, nil
	}
	list, err := s.aliases(u)
	if err != nil {
		return nil, 0, false, err
	}
	if list != nil {
		return list.Held[0].Key, list.Last, true, nil
	}
	v, ok, err := s.newest(o.Key)
	if err == nil && (!ok || v.UID != u) {
		err = fmt.Errorf("%w: the key of object %s names another", ErrCorrupt, u)
	}
	return o.Key, v.Entry + 1, err == nil, err
}

// view reads the versions of one scope's keys.
type view struct {
	r      kv.Reader
	space  space
	bounds *Bounds
}

// newest is the version of a key as of now, and whether it has one.
func (v *view) newest(key []byte) (kv KeyValue, ok bool, err error) {
	first, ok, err := v.first(key)
	if err != nil || !ok {
		if err == nil {
			return v.before(key, math.MaxInt64)
		}
		return kv, false, err
	}
	if first.record == nil || isTombstone(first.record) {
		return kv, false, nil
	}
	kv, err = v.decode(first.key, first.record)
	kv.Key = key
	return kv, err == nil, err
}

// first finds the newest version of a key without a look at the store, if it is in
// an overlay or the Reader below them is a Cache; ok is false if neither has it.
func (v *view) first(key []byte) (first newestVersion, ok bool, err error) {
	room := make([]byte, 0, 2*(len(v.space)+1+len(key)+2))
	prefix := v.space.appendKey(room, key, escapeEnd)
	end := v.space.appendKey(prefix[len(prefix):], key, escapeEnd+1)
	for r := v.r; ; {
		switch x := r.(type) {
		case *kv.Overlay:
			if op, found := x.First(prefix, end); found {
				return newestVersion{op.Key, op.Value}, !op.Delete, nil // compaction deletes what is older
			}
			r = x.Base()
		case *Cache:
			first, err = x.newest(prefix, end)
			return first, err == nil, err
		default:
			return first, false, nil
		}
	}
}

// before is the newest version of a key up to a revision, and whether it has
// one that is not a deletion.
func (v *view) before(key []byte, rev int64) (kv KeyValue, ok bool, err error) {
	kv, ok, err = v.upTo(key, rev)
	if !ok || kv.Version == 0 { // callers take the zero value for a key that is not there
		return KeyValue{}, false, err
	}
	return kv, true, err
}

// upTo is the newest change of a key up to a revision, which is a deletion if its Version is 0.
func (v *view) upTo(key []byte, rev int64) (kv KeyValue, ok bool, err error) {
	room := make([]byte, 0, 2*(len(v.space)+1+len(key)+2)+revBytes) // for both ends
	from := last(rev).appendInverted(v.space.appendKey(room, key, escapeEnd))
	to := v.space.appendKey(from[len(from):], key, escapeEnd+1)
	var bad error
	err = v.r.Scan(from, to, false, func(k, record []byte) bool {
		kv, bad = v.decode(k, record)
		kv.Key, ok = key, true
		return false
	})
	if err == nil {
		err = bad
	}
	return kv, ok && err == nil, err
}

// mostLives bounds how often NamedBefore looks past a time in which a key named an object.
const mostLives = 100

// NamedBefore is the object that a key named before the one of a change of that key. It reports false if there was
// none, if a compaction dropped it, or if the key named only that one object at the last 100 times.
func (s *State) NamedBefore(change *KeyValue) (u aweigh.UID, ok bool, err error) {
	at := *change
	for range mostLives {
		before := at.ModRevision - 1
		if at.Version != 0 {
			before = at.CreateRevision - 1
		}
		if at, ok, err = s.upTo(change.Key, before); err != nil || !ok {
			return u, false, err
		}
		if at.UID != change.UID {
			return at.UID, true, nil
		}
	}
	return u, false, nil
}

// NewestChange is the newest version of a key, which is a deletion if its
// Version is 0. Compaction takes deletions out of reach.
func (s *State) NewestChange(key []byte) (kv KeyValue, ok bool, err error) {
	from, to := s.space.versions(key, nil)
	var bad error
	err = s.r.Scan(from, to, false, func(k, record []byte) bool {
		kv, bad = s.decode(k, record)
		kv.Key, ok = bytes.Clone(key), true
		return false
	})
	if err == nil {
		err = bad
	}
	return kv, ok, err
}

// exactly is the version of a key at one place in the order of changes,
// deletions included.
func (v *view) exactly(key []byte, at revision) (KeyValue, bool, error) {
	k := v.space.version(key, at)
	record, ok, err := v.r.Get(k)
	if err != nil || !ok {
		return KeyValue{}, false, err
	}
	kv, err := v.decode(k, record)
	kv.Key = key
	return kv, err == nil, err
}

// decode reads a version, with a value of its own, without its key.
func (v *view) decode(k, record []byte) (kv KeyValue, err error) {
	kv, err = v.peek(k, record)
	kv.Value = bytes.Clone(kv.Value)
	return kv, err
}

// peek is decode with a value that shares the record's memory.
func (v *view) peek(k, record []byte) (kv KeyValue, err error) {
	_, at, ok := v.space.splitVersion(k)
	if !ok {
		return kv, fmt.Errorf("%w: a version under a key of %d bytes", ErrCorrupt, len(k))
	}
	kv.ModRevision, kv.Sub = at.main, at.sub
	return kv, kv.readRecord(record)
}

// each visits the live versions as of a revision of all keys [key, end), in order of key, but those that pass, if there
// is one, takes upon itself: their records are not read where their length shows that they live. The slices given to
// visit are valid until it returns.
func (v *view) each(key, end []byte, rev int64, pass func(at revision) bool, visit func(k, record []byte) error) error {
	from, to := v.space.versions(key, end)
	var done []byte // escaped key that was decided
	var of revision // its version
	var bad error
	want := func(k []byte, size int) bool {
		escaped, at, ok := v.space.splitVersion(k)
		if !ok {
			bad = fmt.Errorf("%w: a version under a key of %d bytes", ErrCorrupt, len(k))
			return true
		}
		if at.main > rev || bytes.Equal(escaped, done) {
			return false
		}
		done, of = append(done[:0], escaped...), at
		return pass == nil || size <= longestTombstone || !pass(at)
	}
	err := kv.Sift(v.r, from, to, want, func(k, record []byte) bool {
		if bad == nil && !isTombstone(record) && (pass == nil || len(record) > longestTombstone || !pass(of)) {
			bad = visit(k, record)
		}
		return bad == nil
	})
	return cmp.Or(err, bad)
}

// rangeOf is Range on a view whose newest revision is current.
func (v *view) rangeOf(key, end []byte, r Range, current int64) (RangeResult, error) {
	return v.pageOf(key, end, r, current, 0, nil)
}

func (v *view) pageOf(key, end []byte, r Range, current int64, most int, take func(bytes int) error) (RangeResult, error) {
	res := RangeResult{Revision: current}
	rev := r.Revision
	if rev <= 0 {
		rev = math.MaxInt64 // so that a transaction sees its own changes
	}
	room, size := int64(math.MaxInt64), 0
	if r.CountOnly {
		room = 0
	} else if r.Limit < room && r.Heads() {
		room = r.Limit + 1 // one more shows that there is more
	}
	full := func() bool { return int64(len(res.Kvs)) >= room }
	enough := func() bool { return most > 0 && !r.CountOnly && (full() || size >= most) }
	counted := func(at revision) bool { // it is only counted
		if enough() || !full() && r.admitsMod(at.main) {
			return false
		}
		res.Count++
		return true
	}
	err := v.each(key, end, rev, counted, func(k, record []byte) error {
		if enough() {
			res.More = true
			return errEnough
		}
		res.Count++
		kv, err := v.peek(k, record)
		if err != nil || !r.admits(&kv) {
			return err
		}
		if r.KeysOnly && r.Sort != ByValue {
			kv.Value = nil
		}
		kv.Value = bytes.Clone(kv.Value)
		escaped, _, _ := v.space.splitVersion(k)
		kv.Key = bytes.Clone(keyOf(escaped))
		if res.Kvs = append(res.Kvs, kv); !r.KeysOnly {
			size += len(kv.Value)
		}
		size += len(kv.Key)
		if take != nil {
			return take(len(kv.Key) + len(kv.Value))
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return RangeResult{}, err
	}
	r.cut(&res)
	return res, nil
}

// cut leaves of what was found what is asked for.
func (r *Range) cut(res *RangeResult) {
	r.Arrange(res.Kvs)
	if r.Limit > 0 && int64(len(res.Kvs)) > r.Limit {
		res.Kvs, res.More = res.Kvs[:r.Limit], true
	}
	if r.KeysOnly {
		for i := range res.Kvs {
			res.Kvs[i].Value = nil
		}
	}
}

// Of returns what the range gives where its keys hold kvs, which are in order. It has no Revision.
func (r *Range) Of(kvs []KeyValue) (res RangeResult) {
	res.Count = int64(len(kvs))
	if !r.CountOnly {
		for i := range kvs {
			if r.admits(&kvs[i]) {
				res.Kvs = append(res.Kvs, kvs[i])
			}
		}
		r.cut(&res)
	}
	return res
}

// Arrange puts pairs that are in order of key, ascending or as arranged before in
// parts, into the order asked for.
func (r *Range) Arrange(kvs []KeyValue) {
	var compare func(a, b KeyValue) int
	switch r.Sort {
	case ByVersion:
		compare = func(a, b KeyValue) int { return cmp.Compare(a.Version, b.Version) }
	case ByCreate:
		compare = func(a, b KeyValue) int { return cmp.Compare(a.CreateRevision, b.CreateRevision) }
	case ByMod:
		compare = func(a, b KeyValue) int { return cmp.Compare(a.ModRevision, b.ModRevision) }
	case ByValue:
		compare = func(a, b KeyValue) int { return bytes.Compare(a.Value, b.Value) }
	default:
		compare = func(a, b KeyValue) int { return bytes.Compare(a.Key, b.Key) }
		if r.Order != Descending { // they are
			return
		}
		if slices.IsSortedFunc(kvs, compare) {
			slices.Reverse(kvs)
			return
		}
	}
	if r.Order == Descending {
		slices.SortStableFunc(kvs, func(a, b KeyValue) int { return compare(b, a) })
	} else {
		slices.SortStableFunc(kvs, compare)
	}
}

// Heads reports whether there is a limit that leaves the first keys of the range.
func (r *Range) Heads() bool { return r.Limit > 0 && !r.CountOnly && r.inOrder() && !r.bounded() }

// inOrder reports whether a limit applies to the order of keys.
func (r *Range) inOrder() bool {
	return r.Order == Unordered || r.Order == Ascending && r.Sort == ByKey
}

func (r *Range) bounded() bool {
	return r.MinMod != 0 || r.MaxMod != 0 || r.MinCreate != 0 || r.MaxCreate != 0
}

func (r *Range) admitsMod(rev int64) bool {
	return (r.MinMod == 0 || rev >= r.MinMod) && (r.MaxMod == 0 || rev <= r.MaxMod)
}

func (r *Range) admits(v *KeyValue) bool {
	return r.admitsMod(v.ModRevision) && (r.MinCreate == 0 || v.CreateRevision >= r.MinCreate) && (r.MaxCreate == 0 || v.CreateRevision <= r.MaxCreate)
}
