package model

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

// pairs is the pairs of a key space in a range, in order of key.
func pairs(keys map[string]scope.KeyValue, key, end []byte) (out []scope.KeyValue) {
	if len(end) == 0 {
		if v, ok := keys[string(key)]; ok {
			return []scope.KeyValue{v}
		}
		return nil
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if k >= string(key) && (string(end) == "\x00" || k < string(end)) {
			out = append(out, keys[k])
		}
	}
	return out
}

// ranged follows etcd's executeRange. current is the newest revision.
func ranged(keys map[string]scope.KeyValue, current int64, key, end []byte, r scope.Range) scope.RangeResult {
	kvs := pairs(keys, key, end)
	res := scope.RangeResult{Count: int64(len(kvs)), Revision: current}
	if r.CountOnly {
		return res
	}
	bounded := r.MinMod != 0 || r.MaxMod != 0 || r.MinCreate != 0 || r.MaxCreate != 0
	inOrder := r.Order == scope.Unordered || r.Order == scope.Ascending && r.Sort == scope.ByKey
	if r.Limit > 0 && inOrder && !bounded && int64(len(kvs)) > r.Limit+1 {
		kvs = kvs[:r.Limit+1]
	}
	kvs = slices.DeleteFunc(kvs, func(v scope.KeyValue) bool {
		return r.MinMod != 0 && v.ModRevision < r.MinMod || r.MaxMod != 0 && v.ModRevision > r.MaxMod ||
			r.MinCreate != 0 && v.CreateRevision < r.MinCreate || r.MaxCreate != 0 && v.CreateRevision > r.MaxCreate
	})
	less := map[scope.SortBy]func(a, b scope.KeyValue) int{
		scope.ByKey:     func(a, b scope.KeyValue) int { return bytes.Compare(a.Key, b.Key) },
		scope.ByVersion: func(a, b scope.KeyValue) int { return cmp.Compare(a.Version, b.Version) },
		scope.ByCreate:  func(a, b scope.KeyValue) int { return cmp.Compare(a.CreateRevision, b.CreateRevision) },
		scope.ByMod:     func(a, b scope.KeyValue) int { return cmp.Compare(a.ModRevision, b.ModRevision) },
		scope.ByValue:   func(a, b scope.KeyValue) int { return bytes.Compare(a.Value, b.Value) },
	}[r.Sort]
	slices.SortStableFunc(kvs, func(a, b scope.KeyValue) int {
		if r.Order == scope.Descending {
			return less(b, a)
		}
		return less(a, b)
	})
	if r.Limit > 0 && int64(len(kvs)) > r.Limit {
		kvs, res.More = kvs[:r.Limit], true
	}
	if r.KeysOnly {
		for i := range kvs {
			kvs[i].Value = nil
		}
	}
	res.Kvs = kvs
	return res
}

// readable reports why a revision cannot be read; 0 is the newest.
func (v *View) readable(rev int64) error {
	newest := v.Revision
	if v.clocked {
		newest = max(newest, scope.ClockRevision(v.model.started(), v.Time)-1)
	}
	switch {
	case rev <= 0:
		return nil
	case rev > newest:
		return scope.ErrFutureRevision
	case rev < v.Compacted:
		return scope.ErrCompacted
	}
	return nil
}

// Range reads the keys [key, end), as scope.State.Range does.
func (v *View) Range(key, end []byte, r scope.Range) (scope.RangeResult, error) {
	if err := v.readable(r.Revision); err != nil {
		return scope.RangeResult{}, err
	}
	if r.Revision > 0 && v.wasElsewhere(key, end, r.Revision) {
		return scope.RangeResult{}, scope.ErrCompacted
	}
	at := v.Revision
	if r.Revision > 0 {
		at = min(at, r.Revision)
	}
	return ranged(v.model.asOf(at), v.Revision, key, end, r), nil
}

// events are the changes of the keys [key, end) from a revision on: each once, in order, with what was there before.
// Those of keys that went to another scope are none.
func (v *View) events(from int64, key, end []byte) (events []scope.Event, err error) {
	if from < max(v.Compacted, v.homeSince(key, end)) {
		return nil, scope.ErrCompacted
	}
	last := v.model.asOf(from - 1)
	for _, r := range v.model.since(from - 1) {
		if r.number > v.Revision {
			break
		}
		before := last
		last = r.keys
		for _, c := range r.events {
			if c.handed || !scope.Within(c.kv.Key, key, end) {
				continue
			}
			e := scope.Event{Class: lineage.Update, Kv: c.kv}
			switch {
			case c.deleted:
				e.Class = lineage.Delete
			case c.kv.CreateRevision == c.kv.ModRevision:
				e.Class = lineage.Insert
			}
			if was, ok := before[string(c.kv.Key)]; ok && r.number > v.Compacted && e.Class != lineage.Insert {
				e.Prev = &was
			}
			events = append(events, e)
		}
	}
	return events, nil
}

// Get is what is under a key.
func (v *View) Get(key []byte) (scope.KeyValue, bool) {
	kv, ok := v.model.asOf(v.Revision)[string(key)]
	return kv, ok
}
