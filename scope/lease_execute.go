package scope

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
)

// leasing executes a request for leases.
func (x *execution) leasing(m *CheckedMutation, out *Outcome) (failure, err error) {
	r := m.Lease
	from := max(x.block.Header.Time, r.Asked)
	if r.Kind == LeaseKeepAlive {
		if failure = x.spend(lookUnits * int64(len(r.IDs))); failure == nil {
			out.TTLs, err = x.keepAlive(r.IDs, from)
		}
		return failure, err
	}
	id := r.IDs[0]
	l, ok, err := x.lease(id)
	switch {
	case err != nil:
		return nil, err
	case r.Kind == LeaseRevoke && !ok:
		return ErrLeaseNotFound, nil
	case r.Kind == LeaseRevoke:
		if failure := x.spend(l.keys*deleted(0) + l.bytes/readBytes); failure != nil {
			return failure, nil
		}
		if failure, err := x.revocable(m, id); failure != nil || err != nil {
			return failure, err
		}
		return nil, x.end(id, &l, fmt.Sprintf("lease %x was revoked", uint64(id)))
	case ok:
		return ErrLeaseExists, nil
	case x.next.head.Full(x.policy):
		return ErrNoSpace, nil
	case x.next.head.Leases >= x.bounds.Leases:
		return ErrManyLeases, nil
	}
	names, failure := x.countedFor(heldLeases)
	if failure != nil {
		return failure, nil
	}
	ttl := max(r.TTL, MinLeaseTTL)
	x.setLease(id, nil, &lease{ttl: ttl, expires: leaseEnd(from, ttl), keeper: m.Author})
	x.next.head.Leases++
	out.TTLs = []int64{ttl}
	return nil, x.charge(x.space.chargeOfLease(id), heldLeases, charge{Entries: names, Amount: 1})
}

// ErrGuarded refuses to revoke a lease whose keys only approval can remove.
var ErrGuarded = errors.New("scope: the policy asks for approval of the deletion of keys that the lease holds; delete them, which can wait for it. When the lease expires, they stay without it")

// revocable reports why a lease cannot be revoked.
func (x *execution) revocable(m *CheckedMutation, id int64) (failure, err error) {
	judged := x.restricted(m)
	if len(x.policy.Approvals) == 0 && !judged {
		return nil, nil
	}
	var p plan
	err = x.attached(id, func(key []byte) bool {
		op := Op{Kind: OpDelete, Key: key}
		if x.policy.guards(key) {
			failure = ErrGuarded
		} else if judged {
			op.Key = bytes.Clone(key)
			p.ops = append(p.ops, op)
		}
		return failure == nil
	})
	if failure != nil || err != nil {
		return failure, err
	}
	return x.permitted(m, &p)
}

// keepAlive renews leases from an instant on, for their whole TTL and half as much again, and never shortens one.
func (x *execution) keepAlive(ids []int64, from aweigh.Instant) (ttls []int64, err error) {
	ttls = make([]int64, len(ids))
	for i, id := range ids {
		l, ok, err := x.lease(id)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		ttls[i] = l.ttl
		longer := l
		longer.expires = max(l.expires, leaseEnd(from, l.ttl))
		x.setLease(id, &l, &longer)
	}
	return ttls, nil
}

// setLease replaces the record of a lease; nil deletes it.
func (x *execution) setLease(id int64, was, is *lease) {
	if was != nil && is != nil && *was == *is {
		return
	}
	k := x.space.leaseAt(id)
	moved := was == nil || is == nil || was.expires != is.expires
	if was != nil {
		x.removeElement(k, was.record())
		if moved {
			x.versions.Apply(kv.Del(x.space.leaseEnd(was.expires, id)))
		}
	}
	x.leased = x.leased || moved
	if is == nil {
		x.versions.Apply(kv.Del(k))
		return
	}
	record := is.record()
	x.addElement(k, record)
	x.versions.Apply(kv.Set(k, record))
	if moved {
		x.versions.Apply(kv.Set(x.space.leaseEnd(is.expires, id), nil))
	}
}

// end ends a lease and deletes its keys. Keys whose deletion requires approval stay, without a lease.
func (x *execution) end(id int64, l *lease, why string) error {
	keys := make([][]byte, 0, l.keys)
	if err := x.attached(id, func(key []byte) bool { keys = append(keys, bytes.Clone(key)); return true }); err != nil {
		return err
	}
	must.Hold(int64(len(keys)) == l.keys, "lease %x has %d keys, not %d", uint64(id), len(keys), l.keys)
	x.setLease(id, l, nil)
	x.next.head.Leases--
	x.changes = 0
	if err := x.discharge(x.space.chargeOfLease(id), heldLeases); err != nil {
		return err
	}
	for _, key := range keys {
		x.versions.Apply(kv.Del(x.space.leaseKey(id, key)))
		v, ok, err := x.newest(key)
		if err != nil {
			return err
		}
		must.Hold(ok && v.Lease == id, "%q is attached to lease %x, which it does not name", key, uint64(id))
		if x.policy.guards(key) {
			err = x.detach(&v, why)
		} else {
			err = x.unnameExpired(&v, why)
		}
		if err != nil {
			return err
		}
	}
	x.next.head.Revision = x.revision()
	return nil
}

// guards reports whether the deletion of a key takes approval, or more than one.
func (p *Policy) guards(key []byte) bool {
	a, failure := p.longest(&Op{Kind: OpDelete, Key: key}, true, "")
	return a != nil || failure != nil
}

// detach writes a key again, as it is, without the lease that ends.
func (x *execution) detach(prev *KeyValue, why string) error {
	list, last, err := x.chain(prev)
	if err != nil {
		return err
	}
	at, v := x.place(), *prev
	v.Lease, v.ModRevision, v.Sub, v.Version, v.Entry = 0, at.main, at.sub, prev.Version+1, x.nextEntry()
	e := lineage.Entry{
		Class: lineage.Update, Key: v.Key, Object: v.UID, Prev: last, Prior: prev.Digest(),
		Reason: why + "; the policy asks for approval of this key's deletion, so it stays, without a lease",
	}
	if e.Posterior, err = x.store(&v); err != nil {
		return err
	}
	x.enter(e)
	return x.follow(list, &v)
}

// expireLeases ends the leases whose time the block's time has passed, the first
// ones first, each at a revision of its own.
func (x *execution) expireLeases() error {
	h, now := &x.next.head, x.block.Header.Time
	if h.LeaseDue == 0 || now < h.LeaseDue {
		return nil
	}
	if now.Sub(max(h.LeaseDue, h.Time)) > x.bounds.LeaseHalt {
		h.Resumed = now
	}
	var due []int64
	err := x.expiring(now, func(_ aweigh.Instant, id int64) bool {
		due = append(due, id)
		return len(due) < x.bounds.ExpireLeases
	})
	if err != nil {
		return err
	}
	x.mutation = &CheckedMutation{} // no mutation caused this
	room := volume{x.bounds.ExpireKeys, x.bounds.ExpireBytes}
	for i, id := range due {
		l, ok, err := x.lease(id)
		if err == nil && !ok {
			err = fmt.Errorf("%w: lease %x is to end, and is not there", ErrCorrupt, uint64(id))
		}
		if err != nil {
			return err
		}
		if later := l.until(h.Resumed); later > now {
			longer := l
			longer.expires = later
			x.setLease(id, &l, &longer)
			continue
		}
		if !room.take(l.keys, l.bytes) && i > 0 {
			break
		}
		if err := x.end(id, &l, fmt.Sprintf("lease %x expired", uint64(id))); err != nil {
			return err
		}
	}
	return nil
}

// nextLease keeps in the head when the next lease ends.
func (x *execution) nextLease() error {
	if !x.leased {
		return nil
	}
	x.next.head.LeaseDue = 0
	return x.expiring(math.MaxInt64, func(at aweigh.Instant, _ int64) bool {
		x.next.head.LeaseDue = at
		return false
	})
}

// size is what a version counts for among the keys of its lease.
func (v *KeyValue) size() int64 { return int64(len(v.Key) + len(v.Value)) }

// attach moves a key from the lease of its version before, if it had one, to that
// of the new one, if that names one. A version without a key stands for none.
func (x *execution) attach(prev, v *KeyValue) error {
	if prev.Lease == v.Lease {
		return x.resize(v.Lease, 0, v.size()-prev.size())
	}
	if err := x.unattach(prev, prev.size()); err != nil {
		return err
	}
	if id := v.Lease; id != 0 {
		x.versions.Apply(kv.Set(x.space.leaseKey(id, v.Key), nil))
		return x.resize(id, +1, v.size())
	}
	return nil
}

// unattach takes a key from the lease of its newest version, if it has one; size is that
// version's.
func (x *execution) unattach(v *KeyValue, size int64) error {
	if v.Lease == 0 {
		return nil
	}
	x.versions.Apply(kv.Del(x.space.leaseKey(v.Lease, v.Key)))
	return x.resize(v.Lease, -1, -size)
}

// resize changes what is attached to a lease.
func (x *execution) resize(id, keys, size int64) error {
	if id == 0 || keys == 0 && size == 0 {
		return nil
	}
	l, ok, err := x.lease(id)
	if err == nil && !ok {
		err = fmt.Errorf("%w: a key names lease %x, which is not there", ErrCorrupt, uint64(id))
	}
	if err != nil {
		return err
	}
	is := l
	is.keys += keys
	is.bytes += size
	x.setLease(id, &l, &is)
	return nil
}

// leasable reports why a put cannot be attached to its lease. prev is the
// version before the transaction, zero if there was none.
func (x *execution) leasable(op *Op, prev *KeyValue) (failure, err error) {
	v := KeyValue{Key: op.Key, Value: op.Value, Lease: op.Lease}
	if op.IgnoreValue {
		v.Value = prev.Value
	}
	if op.IgnoreLease {
		v.Lease = prev.Lease
	}
	if v.Lease == 0 {
		return nil, nil
	}
	room, ok := x.room[v.Lease]
	if !ok {
		l, ok, err := x.lease(v.Lease)
		if err != nil || !ok {
			return ErrLeaseNotFound, err
		}
		room = volume{x.bounds.LeaseKeys - l.keys, x.bounds.LeaseBytes - l.bytes}
		if x.room == nil {
			x.room = make(map[int64]volume)
		}
	}
	keys, size := int64(1), v.size()
	if prev.Lease == v.Lease {
		keys, size = 0, size-prev.size()
	}
	fits := room.take(keys, size)
	x.room[v.Lease] = room
	if !fits && (keys > 0 || size > 0) {
		return ErrLeaseFull, nil
	}
	return nil, nil
}
