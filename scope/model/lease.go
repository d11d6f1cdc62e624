package model

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

// Lease is a lease as it stands on record.
type Lease struct {
	TTL     int64 // seconds
	Expires aweigh.Instant
	Keeper  aweigh.Hash
}

// until is when it ends: where the scope stood still, all leases last for their whole TTL from then on.
func (l Lease) until(resumed aweigh.Instant) aweigh.Instant {
	if resumed == 0 {
		return l.Expires
	}
	return max(l.Expires, after(resumed, l.TTL))
}

// end is when a lease ends that begins at an instant, or is kept alive then: a half of its TTL later than promised.
func end(from aweigh.Instant, ttl int64) aweigh.Instant {
	t := after(from, ttl)
	if ttl%2 != 0 {
		ttl++
	}
	return after(t, ttl/2)
}

// after is so many seconds after an instant, or the end of time.
func after(t aweigh.Instant, seconds int64) aweigh.Instant {
	if seconds > (math.MaxInt64-int64(t))/int64(time.Second) {
		return math.MaxInt64
	}
	return t.Add(time.Duration(seconds) * time.Second)
}

// byEnd is the leases in the order in which they end.
func (v *View) byEnd() []int64 {
	return slices.SortedFunc(maps.Keys(v.leases), func(a, b int64) int {
		return cmp.Or(cmp.Compare(v.leases[a].Expires, v.leases[b].Expires), cmp.Compare(uint64(a), uint64(b)))
	})
}

// expireLeases ends leases that are over, each at a revision of its own, as many as a block may. parent is the time of
// the block before.
func (m *Model) expireLeases(parent aweigh.Instant) {
	v, now := m.view, m.block.Header.Time
	ids := v.byEnd()
	if len(ids) == 0 || v.leases[ids[0]].Expires > now {
		return
	}
	if now.Sub(max(parent, v.leases[ids[0]].Expires)) > m.bounds.LeaseHalt {
		v.resumed = now
	}
	keys, bytes := m.bounds.ExpireKeys, m.bounds.ExpireBytes
	for i, id := range ids {
		l := v.leases[id]
		if l.Expires > now || i == m.bounds.ExpireLeases {
			break
		}
		if later := l.until(v.resumed); later > now {
			l.Expires = later
			v.leases[id] = l
			continue
		}
		for _, kv := range m.keys() { // order-free: sums
			if kv.Lease == id {
				keys, bytes = keys-1, bytes-int64(len(kv.Key)+len(kv.Value))
			}
		}
		if i > 0 && (keys < 0 || bytes < 0) {
			break
		}
		m.begin(&scope.CheckedMutation{}) // no client's
		m.end(id, fmt.Sprintf("lease %x expired", uint64(id)))
		m.commit()
	}
}

// end takes a lease away, and its keys with it, but for those whose deletion takes approval: they stay without it.
func (m *Model) end(id int64, why string) {
	delete(m.view.leases, id)
	m.charge(leaseCharge(id), nil, 0)
	for _, v := range pairs(m.block.keys, []byte{0}, []byte{0}) {
		if v.Lease != id {
			continue
		}
		v = m.block.keys[string(v.Key)] // it may have followed another name since
		if !m.guards(v.Key) {
			m.remove(v, why)
			continue
		}
		e := lineage.Entry{
			Class: lineage.Update, Prior: v.Digest(),
			Reason: why + "; the policy asks for approval of this key's deletion, so it stays, without a lease",
		}
		v.Lease = 0
		v.Version++
		m.follow(m.write(v, e))
	}
}

// leasing executes a request for leases.
func (m *Model) leasing(mut *scope.CheckedMutation) (ttls []int64, failure error) {
	r, all := mut.Lease, m.view.leases
	from := max(m.block.Header.Time, r.Asked)
	if r.Kind == scope.LeaseKeepAlive {
		if failure = m.spend(int64(len(r.IDs))); failure != nil {
			return nil, failure
		}
		for _, id := range r.IDs {
			l, ok := all[id]
			ttls = append(ttls, l.TTL)
			if ok {
				l.Expires = max(l.Expires, end(from, l.TTL))
				all[id] = l
			}
		}
		return ttls, nil
	}
	id := r.IDs[0]
	_, ok := all[id]
	switch {
	case r.Kind == scope.LeaseRevoke && !ok:
		return nil, scope.ErrLeaseNotFound
	case r.Kind == scope.LeaseRevoke:
		if failure := m.revocable(mut, id); failure != nil {
			return nil, failure
		}
		m.end(id, fmt.Sprintf("lease %x was revoked", uint64(id)))
		return nil, nil
	case ok:
		return nil, scope.ErrLeaseExists
	case m.full():
		return nil, scope.ErrNoSpace
	case int64(len(all)) >= m.bounds.Leases:
		return nil, scope.ErrManyLeases
	}
	names, failure := m.counted(mut, byLeases, ofLease)
	if failure != nil {
		return nil, failure
	}
	m.charge(leaseCharge(id), names, 1)
	ttl := max(r.TTL, scope.MinLeaseTTL)
	all[id] = Lease{TTL: ttl, Expires: end(from, ttl), Keeper: mut.Author}
	return []int64{ttl}, nil
}

// revocable reports why a lease cannot be revoked: its keys are deleted with it.
func (m *Model) revocable(mut *scope.CheckedMutation, id int64) error {
	var gone []change
	guarded, size := false, 0
	for _, v := range pairs(m.keys(), []byte{0}, []byte{0}) {
		if v.Lease == id {
			gone, size = append(gone, change{key: v.Key, deletes: true}), size+len(v.Key)+len(v.Value)
			guarded = guarded || m.guards(v.Key)
		}
	}
	if failure := m.spend(int64(len(gone))*9 + int64(size)/4096); failure != nil {
		return failure
	}
	if guarded {
		return scope.ErrGuarded
	}
	return m.permitted(mut, gone)
}
