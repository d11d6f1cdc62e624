package scope

import (
	"math"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
)

// checkLeases derives again what follows from leases and versions, and compares
// it with the store.
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
