package scope

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
)

// name executes a naming, or opens a motion for it; failure is the reason why it cannot be done. The response names the
// object.
func (x *execution) name(m *CheckedMutation, out *Outcome) (failure error, pending bool, err error) {
	p, failure, err := x.renames(m)
	if failure != nil || err != nil {
		return failure, false, err
	}
	needed, failure, err := x.asked(m, &p)
	if failure != nil || err != nil {
		return failure, false, err
	}
	apply, failure, err := x.naming(m.Naming)
	switch {
	case failure != nil || err != nil:
		return failure, false, err
	case needed != nil:
		failure, err = x.propose(m, needed, &p)
		return failure, true, err
	case m.Patient:
		return ErrPatient, false, nil
	}
	resp := Response{Kind: OpPut}
	if resp.UID, err = apply(); err != nil {
		return nil, false, err
	}
	x.next.head.Revision = x.revision()
	resp.Revision = x.next.head.Revision
	out.Responses = []Response{resp}
	return nil, false, nil
}

// naming reports why a naming cannot be done, and changes nothing; apply does it, and returns its object.
func (x *execution) naming(n *Naming) (apply func() (aweigh.UID, error), failure, err error) {
	if n.Kind != Unbind && n.Kind != Send && x.next.head.Full(x.policy) {
		return nil, ErrNoSpace, nil
	}
	if n.Kind == Fork {
		return x.fork(n)
	}
	v, _, err := x.newest(n.Key) // it is there
	if err == nil {
		failure, err = x.departs(n.Key, nil, n.Kind == Unbind)
	}
	if failure != nil || err != nil {
		return nil, failure, err
	}
	var do func() error
	switch n.Kind {
	case Bind, Move:
		do, failure, err = x.bind(n, &v)
	case Unbind:
		do = func() error {
			if given, err := x.givesUp(&v); given || err != nil {
				return err
			}
			return x.unname(&v, "")
		}
	case Rollback:
		do, failure, err = x.rollback(n)
	case Send:
		do, failure, err = x.send(n, &v)
	}
	return func() (aweigh.UID, error) { return v.UID, do() }, failure, err
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

// bind is naming for a Bind or a Move.
func (x *execution) bind(n *Naming, v *KeyValue) (apply func() error, failure, err error) {
	failure, err = x.free(n.To, len(v.Value))
	if failure == nil && n.Until != 0 {
		failure = x.mayRedirect(n.Until)
	}
	if failure != nil || err != nil {
		return nil, failure, err
	}
	list, last, err := x.chain(v)
	if err != nil {
		return nil, nil, err
	}
	if n.Kind == Bind && list != nil && len(list.Held) >= x.bounds.Aliases {
		return nil, ErrAliases, nil
	}
	return func() error { return x.bound(n, v, list, last) }, nil, nil
}

// bound carries out a Bind or a Move. The object has a list of aliases, nil if it has but one, and a last entry.
func (x *execution) bound(n *Naming, v *KeyValue, list *aliases, last int64) error {
	class := lineage.AliasMove
	if n.Kind == Bind {
		class = lineage.AliasBind
	}
	if err := x.deleteRedirect(n.To); err != nil {
		return err
	}
	if list == nil {
		list = &aliases{Last: last, Held: []held{{Key: n.Key}}}
		x.names.Objects++
	}
	list.Held = append(list.Held, held{Key: n.To, Before: list.before(n.Key) + v.Version - 1})
	if err := x.writeUnderAlias(list, KeyValue{Key: n.To, Value: v.Value, Version: 1, UID: v.UID}, class, aweigh.Hash{}); err != nil {
		return err
	}
	if err := x.storeAliases(v.UID, list); err != nil || n.Kind == Bind {
		return err
	}
	if err := x.unname(v, ""); err != nil || n.Until == 0 {
		return err
	}
	return x.redirectTo(n.Key, redirect{Object: v.UID, To: n.To, Until: n.Until})
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

// fork is naming for a Fork.
func (x *execution) fork(n *Naming) (apply func() (aweigh.UID, error), failure, err error) {
	v, failure, err := x.version(n)
	if failure == nil && err == nil {
		failure, err = x.free(n.To, len(v.Value))
	}
	if failure != nil || err != nil {
		return nil, failure, err
	}
	return func() (aweigh.UID, error) {
		if err := x.deleteRedirect(n.To); err != nil {
			return aweigh.UID{}, err
		}
		u, err := x.unlike(aweigh.NewUID(x.mutation.ID, x.changes), x.changes)
		if err != nil {
			return u, err
		}
		list := &aliases{
			Parent: &Parent{Object: n.Object, Key: n.From, Revision: n.Revision, Sub: n.Sub},
			Held:   []held{{Key: n.To}},
		}
		x.ops = append(x.ops, kv.Set(x.space.at(atObject, u[:]...), object{Key: n.To}.record()))
		if err := x.writeUnderAlias(list, KeyValue{Key: n.To, Value: v.Value, Version: 1, UID: u}, lineage.Insert, v.Digest()); err != nil {
			return u, err
		}
		x.names.Objects++
		return u, x.storeAliases(u, list)
	}, nil, nil
}

// rollback is naming for a Rollback.
func (x *execution) rollback(n *Naming) (apply func() error, failure, err error) {
	v, failure, err := x.version(n)
	op := Op{Kind: OpPut, Key: n.Key, Value: v.Value, IgnoreLease: true}
	if failure == nil && err == nil {
		failure, err = x.checkPut(&op)
	}
	return func() error {
		err := x.put(&op, new(Response))
		must.Hold(x.changes > 0 || err != nil, "a rollback of %s changed nothing", n.Object)
		return err
	}, failure, err
}
