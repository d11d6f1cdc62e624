package scope

import (
	"cmp"
	"maps"
	"math"
	"reflect"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
)

// modelLeases is the oracle's leases: a map that is looked through whole.
type modelLeases struct {
	all     map[int64]modelLease
	now     aweigh.Instant
	resumed aweigh.Instant
}

type modelLease struct {
	ttl     int64
	expires aweigh.Instant
}

func (l modelLease) until(resumed aweigh.Instant) aweigh.Instant {
	if resumed == 0 {
		return l.expires
	}
	return max(l.expires, resumed.Add(time.Duration(l.ttl)*time.Second))
}

// byEnd is the leases in the order in which they end.
func (m *modelLeases) byEnd() []int64 {
	return slices.SortedFunc(maps.Keys(m.all), func(a, b int64) int {
		return cmp.Or(cmp.Compare(m.all[a].expires, m.all[b].expires), cmp.Compare(uint64(a), uint64(b)))
	})
}

// begin is the start of a block.
func (m *model) begin(parent, now aweigh.Instant) {
	l := &m.leases
	l.now = now
	ids := l.byEnd()
	if len(ids) == 0 || l.all[ids[0]].expires > now {
		return
	}
	if now.Sub(max(parent, l.all[ids[0]].expires)) > 5*time.Second {
		l.resumed = now
	}
	for _, id := range ids {
		switch e := l.all[id]; {
		case e.expires > now:
		case e.until(l.resumed) > now:
			e.expires = e.until(l.resumed)
			l.all[id] = e
		default:
			m.revoke(id)
		}
	}
}

func (m *model) revoke(id int64) {
	delete(m.leases.all, id)
	snap := maps.Clone(m.snaps[m.rev()])
	var events []modelEvent
	for _, v := range pairs(snap, []byte{0}, []byte{0}) {
		if v.Lease == id {
			delete(snap, string(v.Key))
			m.dead = append(m.dead, v)
			events = append(events, modelEvent{deleted: true, kv: KeyValue{
				Key: v.Key, ModRevision: m.rev() + 1, Sub: uint32(len(events)), UID: v.UID}})
		}
	}
	if len(events) > 0 {
		m.snaps, m.events = append(m.snaps, snap), append(m.events, events)
	}
}

func (m *model) lease(r *LeaseRequest) (ttls []int64, err error) {
	l := &m.leases
	if l.all == nil {
		l.all = make(map[int64]modelLease)
	}
	from := max(l.now, r.Asked)
	switch e, ok := l.all[r.IDs[0]]; {
	case r.Kind == LeaseKeepAlive:
		for _, id := range r.IDs {
			e, ok := l.all[id]
			ttls = append(ttls, e.ttl)
			if ok {
				e.expires = max(e.expires, from.Add(time.Duration(e.ttl)*time.Second))
				l.all[id] = e
			}
		}
	case r.Kind == LeaseRevoke && !ok:
		return nil, ErrLeaseNotFound
	case r.Kind == LeaseRevoke:
		m.revoke(r.IDs[0])
	case ok:
		return nil, ErrLeaseExists
	default:
		e.ttl = max(2, r.TTL)
		e.expires = from.Add(time.Duration(e.ttl) * time.Second)
		l.all[r.IDs[0]] = e
		ttls = []int64{e.ttl}
	}
	return ttls, nil
}

var someLeases = []int64{-7, 1, 2}

func drawLease(t *rapid.T) int64 { return rapid.SampledFrom(someLeases).Draw(t, "lease") }

func drawLeaseRequest(t *rapid.T, w *world) LeaseRequest {
	r := LeaseRequest{Kind: LeaseKind(rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(t, "request")), IDs: []int64{drawLease(t)}}
	switch r.Kind {
	case LeaseGrant:
		r.TTL = rapid.SampledFrom(append([]int64{1000}, w.ttls...)).Draw(t, "ttl")
		r.Asked = w.now.Add(time.Duration(rapid.Int64Range(-9, 9).Draw(t, "asked")) * time.Second)
	case LeaseKeepAlive:
		if rapid.Bool().Draw(t, "all") {
			r.IDs = someLeases
		}
		r.Asked = w.now.Add(time.Duration(rapid.Int64Range(-9, 9).Draw(t, "asked")) * time.Second)
	}
	return r
}

// compareLeases compares all leases, and what is attached to them.
func compareLeases(t *rapid.T, w *world, m *model) {
	t.Helper()
	all, err := w.state.Leases()
	if want := m.leases.byEnd(); err != nil || !slices.Equal(all, want) {
		t.Fatalf("leases %v, %v; want %v", all, err, want)
	}
	for _, id := range someLeases {
		e, there := m.leases.all[id]
		got, ok, err := w.state.Lease(id)
		keys, err2 := w.state.LeaseKeys(id)
		if err != nil || err2 != nil || ok != there {
			t.Fatalf("lease %d is there: %v, want %v (%v, %v)", id, ok, there, err, err2)
		}
		var want [][]byte
		for _, v := range pairs(m.snaps[m.rev()], []byte{0}, []byte{0}) {
			if v.Lease == id {
				want = append(want, v.Key)
			}
		}
		if !reflect.DeepEqual(keys, want) || len(keys) > 0 && !ok {
			t.Fatalf("lease %d has keys %q, want %q", id, keys, want)
		}
		if got.Keeper = (aweigh.Hash{}); ok && got != (Granted{ID: id, TTL: e.ttl, Expires: e.until(m.leases.resumed), Keys: len(want)}) {
			t.Fatalf("lease %+v, want %+v with %d keys", got, e, len(want))
		}
	}
}

// checkLeases makes anew what follows from leases and versions, and compares it
// with what is stored.
func (w *world) checkLeases() {
	w.t.Helper()
	want := make(map[string]bool)
	kept := make(map[int64]lease)
	var due aweigh.Instant
	n := int64(0)
	prefix := w.state.space.at(atLease)
	_ = w.r.Scan(prefix, kv.PrefixEnd(prefix), false, func(k, v []byte) bool {
		l, err := readLease(v)
		if err != nil {
			w.t.Fatalf("%v", err)
		}
		id := leaseIDOf(k[len(prefix):])
		want[string(w.state.space.leaseEnd(l.expires, id))] = true
		kept[id] = lease{keys: l.keys, bytes: l.bytes}
		if due = min(due, l.expires); n == 0 {
			due = l.expires
		}
		n++
		return true
	})
	live, err := w.state.rangeOf([]byte{0}, []byte{0}, Range{}, math.MaxInt64)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	for _, v := range live.Kvs {
		if v.Lease != 0 {
			want[string(w.state.space.leaseKey(v.Lease, v.Key))] = true
			l := kept[v.Lease]
			l.keys--
			l.bytes -= int64(len(v.Key) + len(v.Value))
			kept[v.Lease] = l
		}
	}
	for id, l := range kept { // order-free: each is checked alone
		if l != (lease{}) {
			w.t.Fatalf("lease %d says %d keys and %d bytes too many", id, l.keys, l.bytes)
		}
	}
	for _, kind := range []byte{atLeaseKey, atLeaseEnd} {
		prefix := w.state.space.at(kind)
		_ = w.r.Scan(prefix, kv.PrefixEnd(prefix), false, func(k, _ []byte) bool {
			if !want[string(k)] {
				w.t.Fatalf("%q is stored without a reason", k[len(space{}):])
			}
			delete(want, string(k))
			return true
		})
	}
	if h := w.state.head; len(want) > 0 || h.Leases != n || h.LeaseDue != due {
		w.t.Fatalf("%d lists are incomplete; %d leases due at %d, the head says %d and %d", len(want), n, due, h.Leases, h.LeaseDue)
	}
}

func leaseIDOf(b []byte) (id int64) {
	for _, c := range b {
		id = id<<8 | int64(c)
	}
	return id
}
