package scope

import (
	"bytes"
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/aweigh/aweigh"
)

// model is the oracle: etcd's key space in plain Go maps, one whole snapshot
// for every revision, slow and obvious. It knows nothing of this package but
// its types.
type model struct {
	snaps     []map[string]KeyValue // by revision
	events    [][]modelEvent        // by revision
	compacted int64
	dead      []KeyValue // last versions of deleted objects
	leases    modelLeases
}

type modelEvent struct {
	kv      KeyValue
	deleted bool
}

func newModel() *model {
	return &model{snaps: []map[string]KeyValue{{}, {}}, events: make([][]modelEvent, 2)}
}

func (m *model) rev() int64 { return int64(len(m.snaps) - 1) }

func (m *model) readable(rev int64) error {
	switch {
	case rev > m.rev():
		return ErrFutureRevision
	case rev > 0 && rev < m.compacted:
		return ErrCompacted
	}
	return nil
}

// pairs is the snapshot's pairs in a range, in order of key.
func pairs(snap map[string]KeyValue, key, end []byte) (out []KeyValue) {
	for _, k := range slices.Sorted(maps.Keys(snap)) {
		in := k == string(key)
		if len(end) == 1 && end[0] == 0 {
			in = k >= string(key)
		} else if len(end) > 0 {
			in = k >= string(key) && k < string(end)
		}
		if in {
			out = append(out, snap[k])
		}
	}
	return out
}

// ranged follows etcd's executeRange.
func (m *model) ranged(snap map[string]KeyValue, current int64, key, end []byte, r Range) (res RangeResult) {
	if r.Revision > 0 {
		snap = m.snaps[r.Revision]
		if r.Revision == current {
			snap = m.snaps[current]
		}
	}
	kvs := pairs(snap, key, end)
	res.Count, res.Revision = int64(len(kvs)), current
	if r.CountOnly {
		return res
	}
	fetch := r.Limit
	if r.Order == Descending || r.Order == Ascending && r.Sort != ByKey ||
		r.MinMod != 0 || r.MaxMod != 0 || r.MinCreate != 0 || r.MaxCreate != 0 {
		fetch = 0
	}
	if fetch > 0 && int64(len(kvs)) > fetch+1 {
		kvs = kvs[:fetch+1]
	}
	kvs = slices.DeleteFunc(kvs, func(v KeyValue) bool {
		return r.MinMod != 0 && v.ModRevision < r.MinMod || r.MaxMod != 0 && v.ModRevision > r.MaxMod ||
			r.MinCreate != 0 && v.CreateRevision < r.MinCreate || r.MaxCreate != 0 && v.CreateRevision > r.MaxCreate
	})
	less := map[SortBy]func(a, b KeyValue) int{
		ByKey:     func(a, b KeyValue) int { return bytes.Compare(a.Key, b.Key) },
		ByVersion: func(a, b KeyValue) int { return cmp.Compare(a.Version, b.Version) },
		ByCreate:  func(a, b KeyValue) int { return cmp.Compare(a.CreateRevision, b.CreateRevision) },
		ByMod:     func(a, b KeyValue) int { return cmp.Compare(a.ModRevision, b.ModRevision) },
		ByValue:   func(a, b KeyValue) int { return bytes.Compare(a.Value, b.Value) },
	}[r.Sort]
	slices.SortStableFunc(kvs, func(a, b KeyValue) int {
		if r.Order == Descending {
			return less(b, a)
		}
		return less(a, b)
	})
	if r.Limit > 0 && int64(len(kvs)) > r.Limit {
		kvs, res.More = kvs[:r.Limit], true
	}
	for i := range kvs {
		if r.KeysOnly {
			kvs[i].Value = nil
		}
	}
	res.Kvs = kvs
	return res
}

// compare follows etcd's applyCompare.
func (m *model) compare(c Compare) bool {
	one := func(v KeyValue) bool {
		n := map[Target]int{
			OnVersion: cmp.Compare(v.Version, c.Number),
			OnCreate:  cmp.Compare(v.CreateRevision, c.Number),
			OnMod:     cmp.Compare(v.ModRevision, c.Number),
			OnLease:   cmp.Compare(v.Lease, c.Number),
			OnValue:   bytes.Compare(v.Value, c.Value),
		}[c.Target]
		return map[Relation]bool{Equal: n == 0, NotEqual: n != 0, Greater: n > 0, Less: n < 0}[c.Relation]
	}
	kvs := pairs(m.snaps[m.rev()], c.Key, c.End)
	if len(kvs) == 0 {
		return c.Target != OnValue && one(KeyValue{})
	}
	for _, v := range kvs {
		if !one(v) {
			return false
		}
	}
	return true
}

// path evaluates all compares before anything is done: etcd's compareToPath.
func (m *model) path(t *Txn) []bool {
	path := []bool{true}
	for _, c := range t.Compare {
		path[0] = path[0] && m.compare(c)
	}
	for _, op := range branch(t, path[0]) {
		if op.Kind == OpTxn {
			path = append(path, m.path(op.Txn)...)
		}
	}
	return path
}

func branch(t *Txn, succeeded bool) []Op {
	if succeeded {
		return t.Success
	}
	return t.Failure
}

// check follows etcd's checkTxn.
func (m *model) check(t *Txn, path *[]bool) error {
	ops := branch(t, (*path)[0])
	*path = (*path)[1:]
	for _, op := range ops {
		switch op.Kind {
		case OpRange:
			if op.Range != nil {
				if err := m.readable(op.Range.Revision); err != nil {
					return err
				}
			}
		case OpPut:
			if _, ok := m.snaps[m.rev()][string(op.Key)]; !ok && (op.IgnoreValue || op.IgnoreLease) {
				return ErrKeyNotFound
			}
			if _, ok := m.leases.all[op.Lease]; op.Lease != 0 && !ok {
				return ErrLeaseNotFound
			}
		case OpTxn:
			if err := m.check(op.Txn, path); err != nil {
				return err
			}
		}
	}
	return nil
}

// txn executes a transaction and returns its responses, or why it failed.
func (m *model) txn(id aweigh.Hash, t *Txn) (ok bool, responses []Response, err error) {
	path := m.path(t)
	ok = path[0]
	checked := slices.Clone(path)
	if err := m.check(t, &checked); err != nil {
		return false, nil, err
	}
	snap := maps.Clone(m.snaps[m.rev()])
	var events []modelEvent
	responses = m.run(id, t, &path, snap, &events)
	if len(events) > 0 {
		m.snaps, m.events = append(m.snaps, snap), append(m.events, events)
	}
	return ok, responses, nil
}

func (m *model) run(id aweigh.Hash, t *Txn, path *[]bool, snap map[string]KeyValue, events *[]modelEvent) []Response {
	ops := branch(t, (*path)[0])
	*path = (*path)[1:]
	next := m.rev() + 1
	out := make([]Response, len(ops))
	for i, op := range ops {
		r := &out[i]
		r.Kind = op.Kind
		switch op.Kind {
		case OpRange:
			var opt Range
			if op.Range != nil {
				opt = *op.Range
			}
			current := m.rev()
			if len(*events) > 0 {
				current++
			}
			if opt.Revision > 0 {
				r.Range = m.ranged(m.snaps[opt.Revision], current, op.Key, op.End, opt)
			} else {
				r.Range = m.ranged(snap, current, op.Key, op.End, opt)
			}
		case OpPut:
			sub := uint32(len(*events))
			v := KeyValue{Key: op.Key, Value: op.Value, CreateRevision: next, ModRevision: next, Sub: sub, Version: 1, Lease: op.Lease, UID: aweigh.NewUID(id, sub)}
			if old, ok := snap[string(op.Key)]; ok {
				v.CreateRevision, v.Version, v.UID = old.CreateRevision, old.Version+1, old.UID
				if op.IgnoreValue {
					v.Value = old.Value
				}
				if op.IgnoreLease {
					v.Lease = old.Lease
				}
				if op.Prev {
					r.Prev = []KeyValue{old}
				}
			}
			r.UID = v.UID
			snap[string(op.Key)] = v
			*events = append(*events, modelEvent{kv: v})
		case OpDelete:
			gone := pairs(snap, op.Key, op.End)
			for _, v := range gone {
				delete(snap, string(v.Key))
				m.dead = append(m.dead, v)
				*events = append(*events, modelEvent{deleted: true, kv: KeyValue{
					Key: v.Key, ModRevision: next, Sub: uint32(len(*events)), UID: v.UID}})
			}
			r.Deleted = int64(len(gone))
			if op.Prev {
				r.Prev = gone
			}
		case OpTxn:
			r.Succeeded = (*path)[0]
			r.Responses = m.run(id, op.Txn, path, snap, events)
		}
		r.Revision = m.rev()
		if len(*events) > 0 {
			r.Revision = next
		}
	}
	return out
}

func (m *model) compact(rev int64) error {
	switch {
	case rev <= m.compacted:
		return ErrCompacted
	case rev > m.rev():
		return ErrFutureRevision
	}
	m.compacted = rev
	return nil
}

// normal makes answers comparable: no lineage index, which the model does not
// know, and one form of what is empty.
func normal(rs []Response) []Response {
	out := slices.Clone(rs)
	for i := range out {
		out[i].Prev = normalKvs(out[i].Prev)
		out[i].Range.Kvs = normalKvs(out[i].Range.Kvs)
		out[i].Responses = normal(out[i].Responses)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func normalKvs(kvs []KeyValue) []KeyValue {
	out := slices.Clone(kvs)
	for i := range out {
		out[i] = normalKv(out[i])
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func normalKv(v KeyValue) KeyValue {
	v.Entry = 0
	if len(v.Value) == 0 {
		v.Value = nil
	}
	return v
}

const everything = math.MaxInt
