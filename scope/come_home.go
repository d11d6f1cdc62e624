package scope

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
)

// comeHome takes what a folded scope held, all of which is there, or nothing and records why no scope can have held it.
// Every key is written anew, at one revision: the history of a scope has no changes that come later than it says.
func (x *execution) comeHome(d *decided) error {
	prefix := d.Decision.Child.Prefix
	given, ok := x.next.own.given.find(prefix)
	must.Hold(ok && bytes.Equal(given.Prefix, prefix) && given.Revocation != nil, "%q comes home, and was not delegated", prefix)
	order := given.Revocation.Hash()
	x.begin(new(CheckedMutation)) // what was decided is the order, of which the last entry tells
	k := x.space.homing(given.Child)
	var rec homing
	if ok, err := x.view.record(k, &rec); err != nil || !ok {
		return errOr(err, "%w: no record of what %q held", ErrCorrupt, prefix)
	}
	parts := make([][]byte, len(rec.Parts))
	for i := range parts {
		raw, ok, err := x.r.Get(x.space.homePart(given.Child, int64(i)))
		if err != nil || !ok {
			return errOr(err, "%w: no part %d of what %q held", ErrCorrupt, i, prefix)
		}
		parts[i] = raw
	}
	for i := range parts {
		if err := x.dropRecord(x.space.homePart(given.Child, int64(i))); err != nil {
			return err
		}
	}
	held, failure := unpack(x.bounds, prefix, rec.Home, parts)
	if failure == nil && rec.Home.Revision >= x.nextRevision() {
		failure = errHomeAhead
	}
	if failure != nil { // more lied there than may: the keys come home, and nothing of what they are to have held
		x.enter(lineage.Entry{Class: lineage.Failed, Key: prefix, Reason: reason(failure)})
		held = new(handover)
	}
	x.setLeaf(prefix, HoldsScope, given.Child, true)
	at := x.place()
	if err := x.takeBack(prefix, given.Child, held); err != nil {
		return err
	}
	head := &x.next.head
	g := folded{Prefix: prefix, Went: given.Revision, Since: given.Height, Height: x.block.Header.Height}
	var was delegated
	z := x.space.at(atDelegated, prefix...)
	if ok, err := x.view.record(z, &was); err != nil || !ok {
		return errOr(err, "%w: the delegation of %q", ErrCorrupt, prefix)
	}
	g.Genesis = was.Genesis
	x.enter(lineage.Entry{Class: lineage.Folded, Key: prefix, Prior: given.Child, Posterior: order})
	if err := x.dropRecord(z); err != nil {
		return err
	}
	if err := x.dropRecord(k); err != nil {
		return err
	}
	x.setRecord(x.space.foldedAt(at.main), canon.Encode(g))
	head.Revision = at.main
	head.Delegated--
	head.Folded++
	if h := x.next.warm; given.ByItself && h.Splits > 0 {
		h = h.clone()
		h.Splits--
		x.next.warm = h
	}
	x.next.own = x.next.own.taking(FoldRecord{
		Prefix: prefix, Child: given.Child, Went: g.Went, Home: at.main, Since: g.Since, Height: g.Height,
	})
	return nil
}

// errOr is an error of the store, or else another one.
func errOr(err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	return fmt.Errorf(format, args...)
}

// homedFrom begins the reason of the entry of an object that came home.
const homedFrom = "from scope "

func homeReason(from aweigh.ScopeID) string { return homedFrom + from.String() }

// ParseHome reads the reason of an entry of class CameHome: the scope from which the object came.
func ParseHome(reason string) (from aweigh.ScopeID, ok bool) {
	rest, ok := strings.CutPrefix(reason, homedFrom)
	id, err := aweigh.ParseHash(rest)
	return aweigh.ScopeID(id), ok && err == nil
}

// takeBack writes what a scope with a prefix held.
func (x *execution) takeBack(prefix []byte, from aweigh.ScopeID, held *handover) error {
	if err := x.settles(held.received); err != nil {
		return err
	}
	now := x.block.Header.Time
	for _, id := range held.order {
		l := held.leases[id]
		was, ok, err := x.lease(id)
		if err != nil {
			return err
		}
		// Nothing could keep it alive on the way.
		until := min(max(l.expires, after(now, l.ttl)), leaseEnd(now, l.ttl))
		if ok {
			longer := was
			longer.expires = max(was.expires, min(until, leaseEnd(now, was.ttl)))
			x.setLease(id, &was, &longer)
			continue
		}
		x.setLease(id, nil, &lease{ttl: l.ttl, expires: until, keeper: l.keeper})
		x.next.head.Leases++
		if name := x.pays(held.charges.leases[id], heldLeases, nil); name != "" {
			if err := x.charge(x.space.chargeOfLease(id), heldLeases, charge{Entries: []string{name}, Amount: 1}); err != nil {
				return err
			}
		}
	}
	uids, chains := make(map[aweigh.UID]aweigh.UID), make(map[aweigh.UID]int64)
	for i := range held.keys {
		v := held.keys[i]
		prior, of, list := v.Digest(), v.UID, held.lists[v.UID]
		class, prev := lineage.CameHome, int64(0)
		if chains[of] != 0 {
			class, prev, v.UID = lineage.AliasFollow, chains[of], uids[of]
		} else {
			uid, last, err := x.homeUID(prefix, uint32(i), of)
			if err != nil {
				return err
			}
			uids[of], v.UID, prev = uid, uid, last
			k := x.space.at(atObject, uid[:]...)
			if last > 0 {
				x.ops = append(x.ops, kv.Del(k)) // so that an Undo knows what was there
			}
			x.ops = append(x.ops, kv.Set(k, object{Key: v.Key}.record()))
		}
		at := x.place()
		v.ModRevision, v.Sub, v.Version, v.Entry = at.main, at.sub, v.Version+1, x.nextEntry()
		if err := x.attach(&KeyValue{}, &v); err != nil {
			return err
		}
		e := lineage.Entry{Class: class, Key: v.Key, Object: v.UID, Prev: prev, Prior: prior, Reason: homeReason(from)}
		var err error
		if e.Posterior, err = x.store(&v); err != nil {
			return err
		}
		x.enter(e)
		if list != nil || class == lineage.AliasFollow {
			chains[of] = v.Entry + 1
		}
		if name := x.pays(held.charges.keys[string(v.Key)], heldBytes, v.Key); name != "" {
			if err := x.charge(x.space.chargeOfKey(v.Key), heldBytes, charge{Entries: []string{name}, Amount: v.size()}); err != nil {
				return err
			}
		}
	}
	for _, of := range held.named {
		list := *held.lists[of]
		list.Last = chains[of]
		x.names.Objects++
		if err := x.storeAliases(uids[of], &list); err != nil {
			return err
		}
	}
	for i := range held.received {
		k := x.space.received(held.received[i].Key, held.received[i].ID)
		if _, known, err := x.r.Get(k); known || err != nil { // then the one below lied
			if err != nil {
				return err
			}
			continue
		}
		x.names.Received++
		if err := x.replace(k, held.received[i].Received); err != nil {
			return err
		}
	}
	for i := range held.redirects {
		r := &held.redirects[i]
		_, names, err := x.newest(r.Key)
		if err != nil {
			return err
		}
		until := min(r.Until, now.Add(MaxRedirect))
		if names || x.mayRedirect(until) != nil { // it is over, or there is no room for it
			continue
		}
		if _, ok := uids[r.Object]; ok {
			r.Object = uids[r.Object]
		}
		if err := x.redirectTo(r.Key, redirect{Object: r.Object, To: r.To, Until: until}); err != nil {
			return err
		}
	}
	return nil
}

// pays is the entry of the policy to which something is charged that came home, by what it was charged to below; "" if
// there is no such entry with such a quota, or if it does not permit the key.
func (x *execution) pays(c charge, what measure, key []byte) string {
	for i := range x.policy.Authors {
		a := &x.policy.Authors[i]
		if slices.Contains(c.Entries, a.Name) && a.Quota.most(what) > 0 && (key == nil || a.permits(VerbPut, key, nil)) {
			return a.Name
		}
	}
	return ""
}

// homeUID is the identity that an object has which comes home, and the place of its last entry here, plus one, if it
// was here before. It keeps its own, unless another object of this scope has it: then liars gave it.
func (x *execution) homeUID(prefix []byte, sub uint32, u aweigh.UID) (is aweigh.UID, last int64, err error) {
	free, last, err := x.mayHave(prefix, u)
	for hash := x.block.Hash(); !free && err == nil; hash = aweigh.Sum(hash[:]) { // which nothing below could know
		u = aweigh.NewUID(hash, sub)
		free, last, err = x.mayHave(prefix, u)
	}
	if x.homes == nil {
		x.homes = make(map[aweigh.UID]bool)
	}
	x.homes[u] = true
	return u, last, err
}

// mayHave reports whether an object that comes home can have an identity, and the place of its last entry here.
func (x *execution) mayHave(prefix []byte, u aweigh.UID) (ok bool, last int64, err error) {
	if x.homes[u] {
		return false, 0, nil
	}
	if last, ok := x.left[u]; ok {
		return true, last, nil
	}
	raw, was, err := x.r.Get(x.space.at(atObject, u[:]...))
	if err != nil || !was {
		return err == nil, 0, err
	}
	o, err := readObject(raw)
	if err != nil || o.End == 0 {
		return false, 0, err
	}
	e, err := x.entryAt(o.End - 1)
	switch {
	case err != nil:
		return false, 0, err
	case e.Class == lineage.HandedOver && (x.policy.Transfers || bytes.HasPrefix(o.Key, prefix)): // or it was sent on from there
	case e.Class != lineage.Left:
		return false, 0, nil
	}
	return true, o.End, nil
}
