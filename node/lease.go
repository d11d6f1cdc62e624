package node

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// Grant proposes a lease of ttl seconds. If id is 0, this node draws one at random, so that all nodes execute the same
// mutation. It returns the ID.
func (n *Replica) Grant(ctx context.Context, id, ttl int64, once Once) (int64, machine.Receipt, error) {
	for id == 0 {
		id = randomLease()
	}
	r, err := n.lease(ctx, scope.LeaseRequest{Kind: scope.LeaseGrant, IDs: []int64{id}, TTL: ttl, Asked: n.runner.now()}, once)
	return id, r, err
}

func randomLease() int64 {
	var b [8]byte
	rand.Read(b[:])
	return int64(binary.BigEndian.Uint64(b[:]) & math.MaxInt64)
}

// Revoke proposes to end a lease, and to delete the keys attached to it.
func (n *Replica) Revoke(ctx context.Context, id int64, once Once) (machine.Receipt, error) {
	return n.lease(ctx, revocation(id), once)
}

func revocation(id int64) scope.LeaseRequest {
	return scope.LeaseRequest{Kind: scope.LeaseRevoke, IDs: []int64{id}}
}

func (n *Replica) lease(ctx context.Context, r scope.LeaseRequest, once Once) (machine.Receipt, error) {
	if err := r.Check(); err != nil {
		return machine.Receipt{}, err
	}
	return n.proposeAt(ctx, scope.Lease, canon.Encode(r), once, r.Kind == scope.LeaseRevoke, false)
}

// KeepAlive makes leases, at most scope.MaxKeepAlives, last for their whole TTL from now on. It returns the TTL of each
// in seconds, 0 if there is no such lease. If a linearizable read shows that all of them last that long already,
// nothing is written; else all are renewed. Calls that come while a round of renewals is under way share the next one:
// one mutation for many leases.
func (n *Replica) KeepAlive(ctx context.Context, ids []int64) (ttls []int64, err error) {
	ctx, cancel := n.deadline(ctx)
	defer cancel()
	ttls, all, err := n.lasting(ctx, ids)
	if err != nil || all {
		return ttls, err
	}
	return n.renew(ctx, ids)
}

// lasting returns the TTLs of leases as of a linearizable read, 0 for those that are not there; all reports whether
// each of the others lasts for its TTL from now on. Now is the latest of the clocks of this node and of the anchors
// that answered, one of which at least is honest, since the clock of this node may be behind: its machine may have been
// suspended. A clock that is ahead costs a renewal.
func (n *Replica) lasting(ctx context.Context, ids []int64) (ttls []int64, all bool, err error) {
	v, err := n.Read(ctx, true)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	ttls, now := make([]int64, len(ids)), max(v.Now, n.runner.now(), v.Head().Time)
	for i, id := range ids {
		g, ok, err := v.Lease(id)
		if err != nil || ok && !g.Lasts(now) {
			return nil, false, err
		}
		if ok {
			ttls[i] = g.TTL
		}
	}
	return ttls, true, nil
}

// renew renews leases by a mutation, and returns the TTL of each.
func (n *Replica) renew(ctx context.Context, ids []int64) (ttls []int64, err error) {
	r, runs := n.renewals.join(ids)
	if runs && !n.of.tasks.start("keeping leases alive", func(ctx context.Context) { r.run(ctx, n, &n.renewals) }) {
		n.renewals.seal(r)
		r.err = ErrStopped
		close(r.done)
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return nil, n.undecided(ctx.Err(), aweigh.Hash{}, n.runner.now().Add(defaultValidity))
	}
	if r.err != nil {
		return nil, r.err
	}
	if r.ttls == nil {
		return n.ttls(ctx, ids)
	}
	for _, id := range ids {
		ttls = append(ttls, r.ttls[id])
	}
	return ttls, nil
}

// renewals gathers the leases to be renewed while a round is under way.
type renewals struct {
	running chan struct{} // holds a token while a round is on its way

	mu   sync.Mutex
	next *renewal // gathers
}

// renewal is one round.
type renewal struct {
	ids  map[int64]bool
	done chan struct{}
	ttls map[int64]int64 // once done; nil if this node knows no more than that it is final
	err  error           // once done
}

// join puts leases into the next round; runs says that the caller must run it.
func (q *renewals) join(ids []int64) (r *renewal, runs bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	r = q.next
	if r == nil || len(r.ids)+len(ids) > scope.MaxKeepAlives {
		r = &renewal{ids: make(map[int64]bool), done: make(chan struct{})}
		q.next, runs = r, true
	}
	for _, id := range ids {
		r.ids[id] = true
	}
	return r, runs
}

// seal returns the leases of a round. No other call can join the round any more.
func (q *renewals) seal(r *renewal) []int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.next == r {
		q.next = nil
	}
	return slices.Sorted(maps.Keys(r.ids))
}

// run proposes a round and waits until it is final. It continues if the call that began it has returned, because other
// calls wait for it as well.
func (r *renewal) run(ctx context.Context, n *Replica, q *renewals) {
	defer close(r.done)
	q.running <- struct{}{}
	defer func() { <-q.running }()
	ids := q.seal(r)
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Timeout)
	defer cancel()
	receipt, err := n.lease(ctx, scope.LeaseRequest{Kind: scope.LeaseKeepAlive, IDs: ids, Asked: n.runner.now()}, Once{})
	if err == nil && receipt.Code != scope.Applied {
		err = scope.Failure(cmp.Or(receipt.Reason, receipt.Code.String()))
	}
	if r.err = err; err != nil || len(receipt.TTLs) != len(ids) {
		return
	}
	r.ttls = make(map[int64]int64, len(ids))
	for i, id := range ids {
		r.ttls[id] = receipt.TTLs[i]
	}
}

// ttls looks up what a receipt from the record lacks.
func (n *Replica) ttls(ctx context.Context, ids []int64) (ttls []int64, err error) {
	v, err := n.Read(ctx, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	for _, id := range ids {
		g, _, err := v.Lease(id)
		if err != nil {
			return nil, err
		}
		ttls = append(ttls, g.TTL)
	}
	return ttls, nil
}
