package scope

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
)

// LeaseKind is the operation of a LeaseRequest.
type LeaseKind uint8

const (
	// LeaseGrant makes a lease.
	LeaseGrant LeaseKind = 1
	// LeaseRevoke ends a lease, and deletes the keys attached to it.
	LeaseRevoke LeaseKind = 2
	// LeaseKeepAlive renews leases for their whole TTL, and half as much again. Missing leases are ignored.
	LeaseKeepAlive LeaseKind = 3
)

// LeaseRequest is the content of a mutation of class Lease.
type LeaseRequest struct {
	_    struct{} `cbor:",toarray"`
	Kind LeaseKind
	IDs  []int64 // not 0; for LeaseKeepAlive 1 to MaxKeepAlives in ascending order, otherwise one
	TTL  int64   // LeaseGrant: in seconds, at most MaxLeaseTTL; one below MinLeaseTTL counts as that

	// Asked is when the request was made, by the requester's clock; not for LeaseRevoke. A lease lasts from then on,
	// or from its block's time if that is later, for its TTL and half as much again: a leader that backdates its block
	// does not shorten the lease.
	Asked aweigh.Instant
}

const (
	// MaxLeaseTTL is etcd's, in seconds.
	MaxLeaseTTL = 9_000_000_000
	// MinLeaseTTL is etcd's with its default settings, in seconds.
	MinLeaseTTL = 2
	// MaxKeepAlives is how many leases one mutation may keep alive.
	MaxKeepAlives = 1000
)

// What a scope takes of leases. All nodes must have the same bounds.
const (
	maxLeases     = 100_000  // at once
	maxLeaseKeys  = 10_000   // attached to one: they are deleted at one revision
	maxLeaseBytes = 16 << 20 // of those keys and their values
)

// What one block works off of leases that are over, so that it stays bounded; at
// least one.
const (
	expireLeases = 1000
	expireKeys   = maxLeaseKeys
	expireBytes  = maxLeaseBytes
)

// volume is room for so many keys and bytes.
type volume struct{ keys, bytes int64 }

func (v *volume) take(keys, bytes int64) bool {
	v.keys -= keys
	v.bytes -= bytes
	return v.keys >= 0 && v.bytes >= 0
}

// leaseHalt is by how much a block may be late for a lease that is over. If it is later than that, the scope stood
// still, and no lease could be renewed.
const leaseHalt = 5 * time.Second

// Check reports whether the request is well-formed.
func (r *LeaseRequest) Check() error {
	most := 1
	switch r.Kind {
	case LeaseKeepAlive:
		most = MaxKeepAlives
	case LeaseGrant, LeaseRevoke:
	default:
		return fmt.Errorf("unknown request %d for a lease", uint8(r.Kind))
	}
	if n := len(r.IDs); n == 0 || n > most {
		return fmt.Errorf("a request for %d leases, between 1 and %d are taken", n, most)
	}
	for i, id := range r.IDs {
		if id == 0 || i > 0 && id <= r.IDs[i-1] {
			return fmt.Errorf("lease %x is 0 or out of order", uint64(id))
		}
	}
	if r.TTL > MaxLeaseTTL {
		return ErrLeaseTTL
	}
	if r.Kind != LeaseGrant && r.TTL != 0 || r.Asked < 0 || r.Kind == LeaseRevoke && r.Asked != 0 {
		return fmt.Errorf("a request for a lease with content of another kind")
	}
	return nil
}

// Granted is the record of a lease.
type Granted struct {
	ID      int64
	TTL     int64          // seconds
	Expires aweigh.Instant // by the blocks' time; the first block from then on ends it
	Keys    int            // attached
	Keeper  aweigh.Hash    // author of the request that granted it
}

// Lasts reports whether the lease lasts for its whole TTL from an instant on, by the blocks' time, without a request to
// keep it alive.
func (g *Granted) Lasts(from aweigh.Instant) bool { return after(from, g.TTL) <= g.Expires }

// Left returns for how long a client can count on the lease at an instant, by the blocks' time: at most for its TTL,
// and not below 0. The lease may last for half its TTL more.
func (g *Granted) Left(at aweigh.Instant) time.Duration {
	if g.Lasts(at) {
		return time.Duration(g.TTL) * time.Second // MaxLeaseTTL fits
	}
	return max(0, g.Expires.Sub(at))
}

// Lease is a lease, if it is there.
func (s *State) Lease(id int64) (g Granted, ok bool, err error) {
	l, ok, err := s.lease(id)
	if err != nil || !ok {
		return g, false, err
	}
	return Granted{ID: id, TTL: l.ttl, Expires: l.until(s.head.Resumed), Keys: int(l.keys), Keeper: l.keeper}, true, nil
}

// LeaseDue is when the first lease is to be looked at: a block from then on ends
// it. It is 0 if there is none.
func (s *State) LeaseDue() aweigh.Instant { return s.head.LeaseDue }

// Leases are the IDs of all leases, those that are over first before the others.
func (s *State) Leases() ([]int64, error) {
	return s.LeasesUntil(math.MaxInt64)
}

// LeasesUntil are the leases that may end up to an instant, by the blocks' time.
func (s *State) LeasesUntil(at aweigh.Instant) (ids []int64, err error) {
	err = s.expiring(at, func(_ aweigh.Instant, id int64) bool {
		ids = append(ids, id)
		return true
	})
	return ids, err
}

// LeaseKeys are the keys attached to a lease, in ascending order.
func (s *State) LeaseKeys(id int64) (keys [][]byte, err error) {
	err = s.attached(id, func(key []byte) bool {
		keys = append(keys, slices.Clone(key))
		return true
	})
	return keys, err
}
