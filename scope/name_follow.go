package scope

import (
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
)

// chain returns an object's list of aliases, nil if it has none, and the index of
// its newest entry, plus one: the next entry follows it. prev is its newest
// version under one of its keys.
func (x *execution) chain(prev *KeyValue) (list *aliases, last int64, err error) {
	if x.names.Objects > 0 {
		if list, err = x.aliases(prev.UID); err != nil {
			return nil, 0, err
		}
	}
	if list == nil {
		return nil, prev.Entry + 1, nil
	}
	return list, list.Last, nil
}

// affordAliases charges a mutation for what a put writes under the other aliases of
// its object, and asks their leases for room.
func (x *execution) affordAliases(op *Op) (failure, err error) {
	if x.names.Objects == 0 {
		return nil, nil
	}
	v, ok, err := x.newest(op.Key)
	if err != nil || !ok {
		return nil, err
	}
	list, _, err := x.chain(&v)
	if err != nil || list == nil {
		return nil, err
	}
	if m := x.mutation.Txn; m != nil && !m.reachesAll(list) {
		return ErrReach, nil
	}
	others := len(list.Held) - 1
	if failure := x.spend(int64(others) * given(max(len(op.Value), len(v.Value)))); failure != nil {
		return failure, nil
	}
	for i := range list.Held {
		key := list.Held[i].Key
		if string(key) == string(op.Key) {
			continue
		}
		prev, ok, err := x.newest(key)
		if err != nil {
			return nil, err
		}
		shown := Op{Kind: OpPut, Key: key, Value: op.Value, Lease: prev.Lease}
		if op.IgnoreValue {
			shown.Value = v.Value
		}
		x.grows += putBytes(key, shown.Value)
		if failure, err := x.bill(key, int64(len(key)+len(shown.Value))); failure != nil || err != nil {
			return failure, err
		}
		if !ok || prev.Lease == 0 {
			continue
		}
		if failure, err := x.leasable(&shown, &prev); failure != nil || err != nil {
			return failure, err
		}
	}
	return nil, nil
}

// follow copies the content written under one alias to all others of its object, each with a version of its own, so
// that readers and watchers of any alias see the same. A lease belongs to a key: each alias keeps its own.
func (x *execution) follow(list *aliases, v *KeyValue) error {
	if list == nil {
		return nil
	}
	list.Last = v.Entry + 1
	for i := range list.Held {
		key := list.Held[i].Key
		if string(key) == string(v.Key) {
			continue
		}
		prev, ok, err := x.newest(key)
		if err != nil {
			return err
		}
		if !ok || prev.UID != v.UID {
			return fmt.Errorf("%w: object %s has an alias that does not name it", ErrCorrupt, v.UID)
		}
		next := KeyValue{
			Key: key, Value: v.Value, Lease: prev.Lease, CreateRevision: prev.CreateRevision, Version: prev.Version + 1, UID: v.UID,
		}
		if err := x.attach(&prev, &next); err != nil {
			return err
		}
		if err := x.writeUnderAlias(list, next, lineage.AliasFollow, prev.Digest()); err != nil {
			return err
		}
	}
	return x.storeAliases(v.UID, list)
}

// writeUnderAlias writes content of an object under one of its aliases and enters it into the
// object's chain. The version's place is filled in.
func (x *execution) writeUnderAlias(list *aliases, v KeyValue, class lineage.Class, prior aweigh.Hash) (err error) {
	at := x.place()
	v.ModRevision, v.Sub, v.Entry = at.main, at.sub, x.nextEntry()
	if v.Version == 1 {
		v.CreateRevision = at.main
	}
	e := lineage.Entry{Class: class, Key: v.Key, Object: v.UID, Prev: list.Last, Prior: prior}
	if e.Posterior, err = x.store(&v); err != nil {
		return err
	}
	x.enter(e)
	list.Last = v.Entry + 1
	return nil
}

// unname takes a key from the object that it names. If it is the last one, the object is retired: no key will ever
// name it again. why is the reason in the lineage if no mutation asked for it.
func (x *execution) unname(prev *KeyValue, why string) error {
	if err := x.unattach(prev, prev.size()); err != nil {
		return err
	}
	return x.unnameExpired(prev, why)
}

// unnameExpired is unname for a key whose lease ends with it.
func (x *execution) unnameExpired(prev *KeyValue, why string) error {
	return x.retire(prev, lineage.Delete, lineage.AliasUnbind, why)
}

// retire ends that a key names an object, with an entry of the one class if it is
// the object's last key here, and of the other if not.
func (x *execution) retire(prev *KeyValue, end, unbind lineage.Class, why string) error {
	return x.retireAs(prev, prev.Digest(), end, unbind, why)
}

// retireAs is retire of a version with a digest, whose value need not be at hand.
func (x *execution) retireAs(prev *KeyValue, digest aweigh.Hash, end, unbind lineage.Class, why string) error {
	list, last, err := x.chain(prev)
	if err != nil {
		return err
	}
	at := x.place()
	v := KeyValue{Key: prev.Key, ModRevision: at.main, Sub: at.sub, UID: prev.UID, Entry: x.nextEntry()}
	e := lineage.Entry{Class: end, Key: prev.Key, Object: prev.UID, Prev: last, Prior: digest, Reason: why}
	others := list != nil && len(list.Held) > 1
	if others {
		e.Class = unbind
	}
	if _, err := x.store(&v); err != nil {
		return err
	}
	x.enter(e)
	if others {
		list.Last = v.Entry + 1
		i := list.find(prev.Key)
		if i < 0 {
			return fmt.Errorf("%w: a key names object %s, which does not list it", ErrCorrupt, prev.UID)
		}
		list.Held = slices.Delete(list.Held, i, i+1)
		return x.storeAliases(prev.UID, list)
	}
	x.ops = append(x.ops, kv.Set(x.space.at(atObject, v.UID[:]...), object{End: v.Entry + 1, Key: v.Key}.record()))
	if list == nil {
		return nil
	}
	x.names.Objects--
	return x.replace(x.space.at(atAliases, prev.UID[:]...), nil)
}

func (x *execution) storeAliases(u aweigh.UID, list *aliases) error {
	return x.replace(x.space.at(atAliases, u[:]...), *list)
}
