package node

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// A lease is granted in the root scope. A key of another scope that is to be attached
// to it makes it known there, with the whole TTL from then on: each scope ends it by
// its own blocks' time. What keeps it alive, or
// revokes it, does so wherever this node knows it; elsewhere the scope's anchors do
// (lease_follow.go).

// attach makes a lease of the root scope known in another scope as well. known reports whether the root scope knows
// it.
func (n *Node) attach(ctx context.Context, to proposer, id int64) (known bool, err error) {
	g, ok, err := n.root.granted(ctx, id)
	if err != nil || !ok {
		return false, err
	}
	grant := scope.LeaseRequest{Kind: scope.LeaseGrant, IDs: []int64{id}, TTL: g.TTL, Asked: n.root.runner.now()}
	r, err := to.propose(ctx, scope.Lease, canon.Encode(grant), n.root.filled(Once{Justification: "a key of this scope is attached to it"}))
	if err == nil && r.Code == scope.Failed {
		if err = scope.Failure(r.Reason); errors.Is(err, scope.ErrLeaseExists) { // another was faster
			err = nil
		}
	}
	var u *UndecidedError
	if errors.As(err, &u) { // the error names the grant; the caller's own mutation was not even proposed
		err = u.Cause
	}
	if err != nil {
		return false, err
	}
	if _, ok, err := n.root.granted(ctx, id); err != nil || ok {
		return ok, err
	}
	_, err = to.propose(ctx, scope.Lease, canon.Encode(revocation(id)), n.root.filled(Once{Justification: "it was revoked meanwhile"}))
	return false, err
}

// remoteLeases holds the scopes, not held by this node, in which it attached keys to leases: of the latest maxAfar
// leases. If a lease is revoked that it has forgotten, the lease ends there when its time is over.
type remoteLeases struct {
	mu sync.Mutex
	of *lru.Cache[int64, []*remoteScope]
}

const maxAfar = 10_000

func (a *remoteLeases) add(f *remoteScope, ids ...int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		var err error
		a.of, err = lru.New[int64, []*remoteScope](maxAfar)
		must.OK(err, "a cache of leases")
	}
	for _, id := range ids {
		if all, _ := a.of.Get(id); !slices.Contains(all, f) {
			a.of.Add(id, append(slices.Clip(all), f))
		}
	}
}

func (a *remoteLeases) take(id int64) (all []*remoteScope) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of != nil {
		all, _ = a.of.Get(id)
		a.of.Remove(id)
	}
	return all
}

func (n *Replica) granted(ctx context.Context, id int64) (g scope.Granted, ok bool, err error) {
	v, err := n.Read(ctx, true)
	if err != nil {
		return g, false, err
	}
	g, ok, err = v.Lease(id)
	return g, ok, errors.Join(err, v.Close())
}

// attaches returns the leases to which a transaction may attach keys.
func attaches(t *scope.Txn) (ids []int64) {
	for _, branch := range [][]scope.Op{t.Success, t.Failure} {
		for i := range branch {
			switch op := &branch[i]; {
			case op.Kind == scope.OpTxn:
				ids = append(ids, attaches(op.Txn)...)
			case op.Lease != 0:
				ids = append(ids, op.Lease)
			}
		}
	}
	return ids
}

// attached proposes a mutation in a scope, and makes the leases that it names known there if need be.
func (n *Node) attached(ctx context.Context, to proposer, class scope.Class, content []byte, once Once, leases []int64) (machine.Receipt, error) {
	if f, ok := to.(*remoteScope); ok && len(leases) > 0 {
		n.remoteLeases.add(f, leases...) // though it fails: it may be decided later
	}
	r, err := to.propose(ctx, class, content, once)
	if len(leases) == 0 || to == n.root || err != nil || r.Code != scope.Failed && r.Code != scope.Duplicate || !errors.Is(scope.Failure(r.Reason), scope.ErrLeaseNotFound) {
		return r, err
	}
	for _, id := range leases {
		if known, err := n.attach(ctx, to, id); err != nil || !known {
			return r, err
		}
	}
	once.Nonce = nonceAgain(once.Nonce)
	return to.propose(ctx, class, content, once)
}

// nonceAgain returns the nonce with which a request is sent again as another mutation if the first one is on record as
// failed. It is the same for the same request.
func nonceAgain(nonce []byte) []byte {
	h := aweigh.Sum([]byte("aweigh/again/1"), nonce)
	return h[:]
}

// elsewhereWithin is how long a request about a lease waits for scopes other than the root: one that cannot decide
// must not hold up the request, and its leases do not end.
const elsewhereWithin = time.Second

// askOthers calls functions for other scopes at once, and waits a moment for them. Their errors are ignored.
func (n *Node) askOthers(all []func(context.Context) error) {
	if len(all) == 0 {
		return
	}
	done := make(chan struct{})
	if !n.tasks.start("leases in other scopes", func(ctx context.Context) {
		defer close(done)
		ctx, cancel := context.WithTimeout(ctx, n.cfg.Timeout)
		defer cancel()
		var doing sync.WaitGroup
		for _, do := range all {
			doing.Go(func() {
				if err := do(ctx); err != nil {
					n.root.log.Debug("a lease could not be changed in another scope", "error", err)
				}
			})
		}
		doing.Wait()
	}) {
		return
	}
	wait := time.NewTimer(elsewhereWithin)
	defer wait.Stop()
	select {
	case <-done:
	case <-wait.C:
	}
}

// elsewhere returns a call of do for each of the other scopes that know some of the leases, as of this node's state.
func (n *Node) elsewhere(ids []int64, do func(ctx context.Context, p *Replica, known []int64) error) (all []func(context.Context) error) {
	for _, p := range n.Replicas()[1:] {
		if known, err := p.knownLeases(ids); err == nil && len(known) > 0 {
			all = append(all, func(ctx context.Context) error { return do(ctx, p, known) })
		}
	}
	return all
}

// knownLeases returns those leases that the scope knows, as of this node's state.
func (n *Replica) knownLeases(ids []int64) (known []int64, err error) {
	s, err := n.views.open()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		_, ok, leaseErr := s.Lease(id)
		if ok {
			known = append(known, id)
		}
		err = errors.Join(err, leaseErr)
	}
	return known, errors.Join(err, n.views.release(s))
}

// Revoke proposes to end a lease, and to delete the keys attached to it, in all scopes that know it. The receipt is
// that of the root scope; if a scope cannot decide, the keys there are deleted when the lease's time is over.
func (n *Node) Revoke(ctx context.Context, id int64, once Once) (machine.Receipt, error) {
	r, err := n.root.Revoke(ctx, id, once)
	if err != nil || r.Code == scope.Failed && !errors.Is(scope.Failure(r.Reason), scope.ErrLeaseNotFound) {
		return r, err
	}
	once = Once{Justification: once.Justification, Caller: once.Caller} // also if it is gone there: this may be asked again, as it was not done elsewhere
	all := n.elsewhere([]int64{id}, func(ctx context.Context, p *Replica, _ []int64) error {
		_, err := p.Revoke(ctx, id, once)
		return err
	})
	for _, f := range n.remoteLeases.take(id) {
		all = append(all, func(ctx context.Context) error {
			_, err := f.propose(ctx, scope.Lease, canon.Encode(revocation(id)), n.root.filled(once))
			if err != nil {
				n.remoteLeases.add(f, id)
			}
			return err
		})
	}
	n.askOthers(all)
	return r, nil
}

// KeepAlive renews leases for their whole TTL, in all scopes that know them.
func (n *Node) KeepAlive(ctx context.Context, ids []int64) ([]int64, error) {
	ttls, err := n.root.KeepAlive(ctx, ids)
	if err != nil {
		return nil, err
	}
	n.askOthers(n.elsewhere(ids, func(ctx context.Context, p *Replica, known []int64) error {
		_, err := p.KeepAlive(ctx, known)
		return err
	}))
	return ttls, nil
}

// Lease returns a lease of the root scope as of a linearizable read, and the keys attached to it if keys is set: those
// of other scopes as of this node's states.
func (n *Node) Lease(ctx context.Context, id int64, keys bool) (g scope.Granted, attached [][]byte, ok bool, head scope.Head, err error) {
	v, err := n.root.Read(ctx, true)
	if err != nil {
		return g, nil, false, head, err
	}
	head = v.Head()
	if g, ok, err = v.Lease(id); err == nil && ok && keys {
		attached, err = v.LeaseKeys(id)
	}
	if err = errors.Join(err, v.Close()); err != nil || !ok || !keys {
		return g, attached, ok, head, err
	}
	for _, p := range n.Replicas()[1:] {
		s, err := p.views.open()
		if err != nil {
			continue // it has no state
		}
		some, err := s.LeaseKeys(id)
		if err := errors.Join(err, p.views.release(s)); err != nil {
			return g, nil, false, head, err
		}
		attached = append(attached, some...)
	}
	slices.SortFunc(attached, bytes.Compare)
	return g, attached, ok, head, nil
}

// Compact proposes to drop the content of revisions below one, in all scopes. If there are several, their revisions
// follow the clock, so one revision serves for all. The root scope says whether it can be done; a scope that cannot
// decide is compacted another time.
func (n *Node) Compact(ctx context.Context, revision int64, once Once) (machine.Receipt, error) {
	if len(n.root.Delegations()) == 0 {
		return n.root.Compact(ctx, revision, once)
	}
	at, newest := revision, int64(0)
	heads := make(map[*Replica]scope.Head)
	for _, p := range n.Replicas() {
		h, err := p.head(ctx)
		if err != nil {
			continue // it has no state
		}
		heads[p], newest = h, max(newest, h.ClosedTimestamp()) // up to which clients may have heard
	}
	newest = max(newest, n.ClosedTimestamp(ctx)) // of scopes that it does not hold, too
	if own := heads[n.root]; revision <= newest && revision > own.Revision {
		at = own.Revision
	}
	r, err := n.root.Compact(ctx, at, once)
	if err != nil {
		return r, err
	}
	did := make(chan machine.Receipt, len(heads))
	if !n.tasks.start("compacting other scopes", func(context.Context) {
		defer close(did)
		ctx, stop := n.tasks.within(ctx)
		defer stop()
		var doing sync.WaitGroup
		for p, h := range heads {
			if at := min(revision, h.Revision); p != n.root && at > h.Compacted && revision <= newest {
				doing.Go(func() {
					if r, err := p.Compact(ctx, at, Once{Justification: once.Justification, Caller: once.Caller}); err == nil && r.Code == scope.Applied {
						did <- r
					}
				})
			}
		}
		doing.Wait()
	}) {
		return r, nil
	}
	wait := time.NewTimer(elsewhereWithin)
	defer wait.Stop()
	for {
		select {
		case other, more := <-did:
			if !more {
				return r, nil
			}
			if r.Code == scope.Failed { // the root scope was at rest, and had nothing to drop
				r = other
			}
		case <-wait.C:
			return r, nil
		}
	}
}
