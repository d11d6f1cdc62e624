package scope

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
)

// name executes a naming; failure is the reason why it cannot be done. All checks
// come before the first change. The response names the object.
func (x *execution) name(m *CheckedMutation) (_ []Response, failure, err error) {
	n := m.Naming
	for _, key := range [][]byte{n.Key, n.To, n.From} {
		if failure := x.next.own.owns(key, nil); failure != nil && len(key) > 0 {
			return nil, failure, nil
		}
	}
	var v KeyValue // under Key
	if n.Kind != Fork {
		var ok bool
		if v, ok, err = x.newest(n.Key); err != nil {
			return nil, nil, err
		}
		if !ok || v.UID != n.Object && !n.Object.IsZero() {
			return nil, ErrUnnamed, nil
		}
	}
	if failure, err := x.mayName(m); failure != nil || err != nil {
		return nil, failure, err
	}
	if n.Kind != Unbind && x.next.head.Full(x.policy) {
		return nil, ErrNoSpace, nil
	}
	resp := Response{Kind: OpPut, UID: v.UID}
	switch n.Kind {
	case Bind, Move:
		failure, err = x.bind(n, &v)
	case Unbind:
		err = x.unname(&v, "")
	case Fork:
		failure, err = x.fork(n, &resp)
	case Rollback:
		failure, err = x.rollback(n)
	}
	if failure != nil || err != nil {
		return nil, failure, err
	}
	resp.Revision = x.revision()
	return []Response{resp}, nil, nil
}

// free reports why a key cannot come to name an object of some bytes.
func (x *execution) free(key []byte, size int) (failure, err error) {
	_, ok, err := x.newest(key)
	if ok {
		return ErrNamed, err
	}
	if failure := x.spend(given(size)); failure != nil || err != nil {
		return failure, err
	}
	return x.bill(key, int64(len(key)+size))
}

// bind executes a Bind or a Move.
func (x *execution) bind(n *Naming, v *KeyValue) (failure, err error) {
	failure, err = x.free(n.To, len(v.Value))
	if failure == nil && n.Until != 0 {
		failure = x.mayRedirect(n.Until)
	}
	if failure != nil || err != nil {
		return failure, err
	}
	list, last, err := x.chain(v)
	if err != nil {
		return nil, err
	}
	class := lineage.AliasMove
	if n.Kind == Bind {
		class = lineage.AliasBind
		if list != nil && len(list.Held) >= x.bounds.Aliases {
			return ErrAliases, nil
		}
	}
	if err := x.deleteRedirect(n.To); err != nil {
		return nil, err
	}
	if list == nil {
		list = &aliases{Last: last, Held: []held{{Key: n.Key}}}
		x.names.Objects++
	}
	list.Held = append(list.Held, held{Key: n.To, Before: list.before(n.Key) + v.Version - 1})
	if err := x.writeUnderAlias(list, KeyValue{Key: n.To, Value: v.Value, Version: 1, UID: v.UID}, class, aweigh.Hash{}); err != nil {
		return nil, err
	}
	if err := x.storeAliases(v.UID, list); err != nil || n.Kind == Bind {
		return nil, err
	}
	if err := x.unname(v, ""); err != nil || n.Until == 0 {
		return nil, err
	}
	return nil, x.redirectTo(n.Key, redirect{Object: v.UID, To: n.To, Until: n.Until})
}

// version is the one of an object that a naming is about.
func (x *execution) version(n *Naming) (v KeyValue, failure, err error) {
	at := revision{n.Revision, n.Sub}
	v, ok, err := x.exactly(n.From, at)
	if err != nil {
		return v, nil, err
	}
	if !ok || v.UID != n.Object || v.Version == 0 {
		return v, ErrNoVersion, nil
	}
	// What compaction closed may still be there, but only what it left open counts.
	if compacted := x.next.head.Compacted; at.main < compacted {
		open, ok, err := x.before(n.From, compacted)
		if err != nil || !ok || open.at() != at {
			return v, ErrNoVersion, err
		}
	}
	return v, x.spend(given(len(v.Value))), nil
}

func (x *execution) fork(n *Naming, resp *Response) (failure, err error) {
	v, failure, err := x.version(n)
	if failure == nil && err == nil {
		failure, err = x.free(n.To, len(v.Value))
	}
	if failure != nil || err != nil {
		return failure, err
	}
	if err := x.deleteRedirect(n.To); err != nil {
		return nil, err
	}
	u := aweigh.NewUID(x.mutation.ID, x.changes)
	list := &aliases{
		Parent: &Parent{Object: n.Object, Key: n.From, Revision: n.Revision, Sub: n.Sub},
		Held:   []held{{Key: n.To}},
	}
	x.ops = append(x.ops, kv.Set(x.space.at(atObject, u[:]...), object{Key: n.To}.record()))
	if err := x.writeUnderAlias(list, KeyValue{Key: n.To, Value: v.Value, Version: 1, UID: u}, lineage.Insert, v.Digest()); err != nil {
		return nil, err
	}
	x.names.Objects++
	resp.UID = u
	return nil, x.storeAliases(u, list)
}

func (x *execution) rollback(n *Naming) (failure, err error) {
	v, failure, err := x.version(n)
	op := Op{Kind: OpPut, Key: n.Key, Value: v.Value, IgnoreLease: true}
	if failure == nil && err == nil {
		failure, err = x.checkPut(&op)
	}
	if failure != nil || err != nil {
		return failure, err
	}
	err = x.put(&op, new(Response))
	must.Hold(x.changes > 0 || err != nil, "a rollback of %s changed nothing", n.Object)
	return nil, err
}
