package scope

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
)

// lease is the record of a lease. A key is attached to it if its newest version
// names it: the lists of attached keys and of ends follow from these versions and
// from the leases. So the state's digest covers the leases alone, and a snapshot
// carries no more.
type lease struct {
	ttl     int64          // seconds
	expires aweigh.Instant // by the blocks' time; see until
	keys    int64          // attached
	bytes   int64          // of them and their values
	keeper  aweigh.Hash    // author of the request that granted it
}

// record is TTL, expiry, keys and bytes as unsigned LEB128, and the keeper.
func (l *lease) record() []byte {
	b := make([]byte, 0, 4*binary.MaxVarintLen64+len(l.keeper))
	for _, n := range []int64{l.ttl, int64(l.expires), l.keys, l.bytes} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return append(b, l.keeper[:]...)
}

// readLease reads what record wrote. Errors wrap ErrCorrupt.
func readLease(data []byte) (l lease, err error) {
	r := reader{data: data}
	l.ttl, l.expires = r.int64(), aweigh.Instant(r.int64())
	if l.keys, l.bytes = r.int64(), r.int64(); r.bad || copy(l.keeper[:], r.data) != len(r.data) || len(r.data) != len(l.keeper) {
		err = fmt.Errorf("%w: a lease of %d bytes", ErrCorrupt, len(data))
	}
	return l, err
}

// until returns when the lease ends. If the scope had stood still, so that no lease could be renewed, each lease lasts
// for its whole TTL from when the scope resumed.
func (l *lease) until(resumed aweigh.Instant) aweigh.Instant {
	if resumed == 0 {
		return l.expires
	}
	return max(l.expires, after(resumed, l.ttl))
}

// leaseEnd returns when a lease ends that is granted or kept alive at an instant: after its TTL and half as much again,
// rounded up to a second. So a request that comes in the first half of the TTL finds that the lease lasts for its whole
// TTL already, and needs no block (Granted.Lasts).
func leaseEnd(from aweigh.Instant, ttl int64) aweigh.Instant {
	return after(after(from, ttl), (ttl+1)/2)
}

// after is so many seconds after an instant, or the end of time.
func after(t aweigh.Instant, seconds int64) aweigh.Instant {
	if seconds > (math.MaxInt64-int64(t))/int64(time.Second) {
		return math.MaxInt64
	}
	return t.Add(time.Duration(seconds) * time.Second)
}

// leaseAt is the store's key of a lease.
func (s *space) leaseAt(id int64) []byte {
	return s.at(atLease, binary.BigEndian.AppendUint64(nil, uint64(id))...)
}

// leaseEnd is the store's key of a lease's place in the order of their ends.
func (s *space) leaseEnd(at aweigh.Instant, id int64) []byte {
	return s.at(atLeaseEnd, binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(at)), uint64(id))...)
}

// leaseKey is the store's key of a key that is attached to a lease.
func (s *space) leaseKey(id int64, key []byte) []byte {
	return append(s.at(atLeaseKey, binary.BigEndian.AppendUint64(nil, uint64(id))...), key...)
}

// lease is a lease, if it is there.
func (v *view) lease(id int64) (l lease, ok bool, err error) {
	raw, ok, err := v.r.Get(v.space.leaseAt(id))
	if err != nil || !ok {
		return l, false, err
	}
	l, err = readLease(raw)
	return l, err == nil, err
}

// expiring visits the leases up to an instant in the order of their ends, as they
// stand on record.
func (v *view) expiring(to aweigh.Instant, visit func(at aweigh.Instant, id int64) bool) error {
	from := v.space.at(atLeaseEnd)
	end := kv.PrefixEnd(from)
	if to < math.MaxInt64 {
		end = v.space.leaseEnd(to+1, 0)
	}
	return v.r.Scan(from, end, false, func(k, _ []byte) bool {
		rest := k[len(from):]
		return visit(aweigh.Instant(binary.BigEndian.Uint64(rest)), int64(binary.BigEndian.Uint64(rest[8:])))
	})
}

// attached visits the keys attached to a lease in ascending order. A key is valid
// until visit returns.
func (v *view) attached(id int64, visit func(key []byte) bool) error {
	from := v.space.leaseKey(id, nil)
	return v.r.Scan(from, kv.PrefixEnd(from), false, func(k, _ []byte) bool { return visit(k[len(from):]) })
}
