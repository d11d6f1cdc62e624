package model

import (
	"fmt"
	"maps"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

// imagined is the keys as a motion would leave them.
type imagined struct {
	m         *Model
	keys      map[string]scope.KeyValue
	names     map[aweigh.UID][]string // of objects that have several, or had
	redirects map[string]bool
	changed   map[string]lineage.Class
	made      byte // objects
	scope.Impact
}

// impactOf is what a motion would change.
func (m *Model) impactOf(p *motion) *scope.Impact {
	i := &imagined{m: m, keys: maps.Clone(m.keys()), names: make(map[aweigh.UID][]string), redirects: make(map[string]bool), changed: make(map[string]lineage.Class)}
	for u, o := range m.view.objects { // order-free: a copy
		for _, h := range o.held {
			i.names[u] = append(i.names[u], h.key)
		}
	}
	for key := range m.view.redirects { // order-free: a copy
		i.redirects[key] = true
	}
	if p.mut.Naming != nil {
		i.rename(p.mut.Naming)
	} else {
		for _, op := range branch(p.mut.Txn, p.Success) {
			switch op.Kind {
			case scope.OpPut:
				i.put(&op)
			case scope.OpDelete:
				for _, v := range pairs(i.keys, op.Key, op.End) {
					i.remove(string(v.Key))
				}
			}
		}
	}
	i.Redirects = int64(len(i.redirects) - len(m.view.redirects))
	return i.report()
}

// beyond reports a bound of its approval that a motion on keys does not keep.
func beyond(p *motion) error {
	out := false
	for _, b := range p.Approval.Bounds {
		n := map[scope.Measure]int64{
			scope.ChangedKeys: p.Impact.Keys, scope.DeletedKeys: p.Impact.Deleted, scope.EndedObjects: p.Impact.Ended,
			scope.WrittenBytes: p.Impact.Bytes,
		}
		out = out || n[b.Of] > b.Limit
	}
	failure := p.Approval.Permits(p.Impact) // its words
	if out != (failure != nil) {
		panic(fmt.Sprintf("the model says %v, and the approval %v", out, failure))
	}
	return failure
}

// goesBeyond reports a bound that a motion would not keep now.
func (m *Model) goesBeyond(p *motion) error {
	if len(p.Approval.Bounds) == 0 {
		return nil
	}
	now := *p
	now.Impact = m.impactOf(p)
	return beyond(&now)
}

// object is a new one.
func (i *imagined) object() aweigh.UID {
	i.made++
	return aweigh.UID{i.made}
}

func (i *imagined) put(op *scope.Op) {
	key := string(op.Key)
	v, there := i.keys[key]
	i.changed[key] = lineage.Update
	if !there {
		v.Key, v.UID, i.changed[key] = op.Key, i.object(), lineage.Insert
		delete(i.redirects, key)
	}
	if !op.IgnoreValue {
		v.Value = op.Value
	}
	if !op.IgnoreLease {
		v.Lease = op.Lease
	}
	i.keys[key] = v
	for _, name := range i.names[v.UID] {
		if name != key {
			other := i.keys[name]
			other.Value = v.Value
			i.keys[name], i.changed[name] = other, lineage.AliasFollow
		}
	}
}

func (i *imagined) remove(key string) {
	u := i.keys[key].UID
	rest := slices.DeleteFunc(slices.Clone(i.names[u]), func(name string) bool { return name == key })
	delete(i.keys, key)
	if i.changed[key] = lineage.Delete; len(rest) == 0 {
		delete(i.names, u)
		return
	}
	i.changed[key], i.names[u] = lineage.AliasUnbind, rest
}

func (i *imagined) rename(n *scope.Naming) {
	key, to := string(n.Key), string(n.To)
	was := i.keys[key]
	old, _ := i.m.written(n)
	switch n.Kind {
	case scope.Bind, scope.Move:
		if len(i.names[was.UID]) == 0 {
			i.names[was.UID] = []string{key}
		}
		i.names[was.UID] = append(i.names[was.UID], to)
		delete(i.redirects, to)
		i.keys[to], i.changed[to] = scope.KeyValue{Key: n.To, Value: was.Value, UID: was.UID}, lineage.AliasBind
		if n.Kind == scope.Move {
			i.changed[to] = lineage.AliasMove
			i.remove(key)
		}
		if n.Until != 0 {
			i.redirects[key] = true
		}
	case scope.Unbind:
		i.remove(key)
	case scope.Fork:
		delete(i.redirects, to)
		i.keys[to], i.changed[to] = scope.KeyValue{Key: n.To, Value: old.Value, UID: i.object()}, lineage.Insert
	case scope.Rollback:
		i.put(&scope.Op{Key: n.Key, Value: old.Value, IgnoreLease: true})
	}
}

// named are the objects that keys name.
func named(keys map[string]scope.KeyValue) map[aweigh.UID]bool {
	all := make(map[aweigh.UID]bool)
	for _, v := range keys { // order-free: a set
		all[v.UID] = true
	}
	return all
}

// report counts what changed.
func (i *imagined) report() *scope.Impact {
	objects, leases, before := make(map[aweigh.UID]bool), make(map[int64]bool), i.m.keys()
	had, has := named(before), named(i.keys)
	bytes, room := 0, 16
	for _, key := range slices.Sorted(maps.Keys(i.changed)) {
		was, there := before[key]
		is, stays := i.keys[key]
		if !there && !stays {
			continue
		}
		t := scope.Touched{Key: []byte(key), Class: i.changed[key], Found: was.ModRevision, Was: int64(len(was.Value)), Size: int64(len(is.Value)), Lease: is.Lease}
		i.Keys++
		if there {
			t.Object, objects[was.UID], leases[was.Lease] = was.UID, true, true
			i.Grows -= int64(len(key) + len(was.Value))
		}
		if stays {
			objects[is.UID], leases[is.Lease] = true, true
			i.Bytes += int64(len(key) + len(is.Value))
			i.Grows += int64(len(key) + len(is.Value))
		} else {
			i.Deleted++
		}
		if stays && (!there || is.UID != was.UID) && had[is.UID] {
			i.Bound++
		}
		if there && (!stays || is.UID != was.UID) && has[was.UID] {
			i.Unbound++
		}
		if bytes += len(key); room > 0 && bytes <= 1024 {
			i.Touched = append(i.Touched, t)
			room--
		}
	}
	for u := range objects { // order-free: counts
		switch {
		case !had[u]:
			i.Born++
		case !has[u]:
			i.Ended++
		}
	}
	delete(leases, 0)
	i.Objects, i.Leases = int64(len(objects)), int64(len(leases))
	return &i.Impact
}
