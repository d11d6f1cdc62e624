package model

import (
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

// put writes a key, and shows what it wrote under all other names of the object.
func (m *Model) put(op *scope.Op, r *scope.Response) {
	key := string(op.Key)
	old, there := m.block.keys[key]
	v := scope.KeyValue{Key: op.Key, Value: op.Value, Lease: op.Lease, Version: 1}
	e := lineage.Entry{Class: lineage.Insert, Reason: m.block.merged}
	if there {
		v.CreateRevision, v.Version, v.UID = old.CreateRevision, old.Version+1, old.UID
		e.Class, e.Prior = lineage.Update, old.Digest()
		if op.IgnoreValue {
			v.Value = old.Value
		}
		if op.IgnoreLease {
			v.Lease = old.Lease
		}
		if op.Prev {
			r.Prev = []scope.KeyValue{old}
		}
	} else {
		v.UID = m.uid(key)
		delete(m.view.redirects, key)
	}
	r.UID = v.UID
	m.follow(m.write(v, e))
}

// write adds a version of a key. Its place is filled in.
func (m *Model) write(v scope.KeyValue, e lineage.Entry) scope.KeyValue {
	v.ModRevision, v.Sub = m.at()
	if v.Version == 1 {
		v.CreateRevision = v.ModRevision
	}
	v = m.change(event{kv: v}, e)
	m.block.keys[string(v.Key)] = v
	return v
}

// change adds a change to the transaction, and the entry that tells of it.
func (m *Model) change(c event, e lineage.Entry) scope.KeyValue {
	x := m.block
	if x.isle != nil {
		c.isle = x.isle.id
	}
	x.changes++
	m.entry(e, &c)
	m.repay(&c)
	m.stored.add(&c.kv)
	m.stored.changes = append(m.stored.changes, place{c.kv.ModRevision, c.kv.Sub, string(c.kv.Key)})
	x.events = append(x.events, c)
	return c.kv
}

// delete deletes the keys of a range, in order.
func (m *Model) delete(op *scope.Op, r *scope.Response) {
	gone := pairs(m.block.keys, op.Key, op.End)
	if r.Deleted = int64(len(gone)); op.Prev {
		r.Prev = gone
	}
	for i := range gone {
		m.remove(gone[i], "")
	}
}

// remove takes a key from the object that it names; the last one ends it. why is the reason where no mutation asks
// for it.
func (m *Model) remove(v scope.KeyValue, why string) {
	if m.givesUp(string(v.Key)) {
		return
	}
	e := lineage.Entry{Class: lineage.Delete, Reason: why}
	if m.unlist(v.UID, string(v.Key)) {
		e.Class = lineage.AliasUnbind
	}
	m.deleteKey(v, e, false)
}

// deleteKey takes a key away.
func (m *Model) deleteKey(v scope.KeyValue, e lineage.Entry, handed bool) {
	e.Prior = v.Digest()
	rev, sub := m.at()
	delete(m.block.keys, string(v.Key))
	m.change(event{deleted: true, handed: handed, kv: scope.KeyValue{Key: v.Key, ModRevision: rev, Sub: sub, UID: v.UID}}, e)
}
