package node

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// A lease is granted in the root scope. A key of another scope that is to be attached
// to it makes it known there, with the whole TTL from then on: each scope ends it by
// its own blocks' time, and never before what was granted. What keeps it alive, or
// revokes it, does so wherever it is known.

// attach has a lease that the root scope knows known in another scope as well; known
// says that the root scope knows it.
func (n *Node) attach(ctx context.Context, p *Part, id int64) (known bool, err error) {
	g, ok, err := n.Part.granted(ctx, id)
	if err != nil || !ok {
		return false, err
	}
	_, r, err := p.Grant(ctx, id, g.TTL, Once{Justification: "a key of this scope is attached to it"})
	if err == nil && r.Code == scope.Failed {
		if err = scope.Failure(r.Reason); errors.Is(err, scope.ErrLeaseExists) { // another was faster
			err = nil
		}
	}
	if err != nil {
		return false, err
	}
	if _, ok, err := n.Part.granted(ctx, id); err != nil || ok {
		return ok, err
	}
	_, err = p.Revoke(ctx, id, Once{Justification: "it was revoked meanwhile"})
	return false, err
}

func (n *Part) granted(ctx context.Context, id int64) (g scope.Granted, ok bool, err error) {
	v, err := n.Read(ctx, true)
	if err != nil {
		return g, false, err
	}
	g, ok, err = v.Lease(id)
	return g, ok, errors.Join(err, v.Close())
}

// attaches are the leases to which a transaction may attach keys.
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

// attached is a transaction in a scope, with the leases that it names made known
// there if need be.
func (n *Node) attached(ctx context.Context, p *Part, t scope.Txn, once Once) (Receipt, error) {
	r, err := p.Txn(ctx, t, once)
	if p == n.Part || err != nil || r.Code != scope.Failed && r.Code != scope.Duplicate || !errors.Is(scope.Failure(r.Reason), scope.ErrLeaseNotFound) {
		return r, err
	}
	for _, id := range attaches(&t) {
		if known, err := n.attach(ctx, p, id); err != nil || !known {
			return r, err
		}
	}
	once.Nonce = nonceAgain(once.Nonce)
	return p.Txn(ctx, t, once)
}

// nonceAgain is the nonce with which a request is made once more as another mutation,
// where the first one is on record as failed; the same for the same request.
func nonceAgain(nonce []byte) []byte {
	h := aweigh.Sum([]byte("aweigh/again/1"), nonce)
	return h[:]
}

// elsewhereWithin is how long what concerns a lease waits for other scopes than the
// root's: one that cannot decide must hold up nobody, and its leases do not end.
const elsewhereWithin = time.Second

// elsewhere does something in all other scopes that know leases of some, at once, and
// waits a moment for them. What fails there is theirs.
func (n *Node) elsewhere(ctx context.Context, ids []int64, do func(ctx context.Context, p *Part, known []int64) error) {
	var doing sync.WaitGroup
	done := make(chan struct{})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.cfg.Timeout)
	for _, p := range n.Parts() {
		if p == n.Part {
			continue
		}
		known, err := p.knows(ids)
		if err != nil || len(known) == 0 {
			continue
		}
		doing.Go(func() {
			if err := do(ctx, p, known); err != nil {
				p.log.Debug("a lease could not be changed here", "error", err)
			}
		})
	}
	go func() {
		doing.Wait()
		cancel()
		close(done)
	}()
	wait := time.NewTimer(elsewhereWithin)
	defer wait.Stop()
	select {
	case <-done:
	case <-wait.C:
	}
}

// knows are those of some leases that the scope knows, as of this node's state.
func (n *Part) knows(ids []int64) (known []int64, err error) {
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

// Revoke proposes to end a lease, and to delete the keys attached to it, in all scopes
// that know it. The receipt is the root scope's; where a scope cannot decide, the keys
// there go with the lease's time.
func (n *Node) Revoke(ctx context.Context, id int64, once Once) (Receipt, error) {
	r, err := n.Part.Revoke(ctx, id, once)
	if err == nil && r.Code != scope.Failed {
		n.elsewhere(ctx, []int64{id}, func(ctx context.Context, p *Part, _ []int64) error {
			_, err := p.Revoke(ctx, id, Once{Justification: once.Justification})
			return err
		})
	}
	return r, err
}

// KeepAlive lets leases last for their whole TTL again, in all scopes that know them.
func (n *Node) KeepAlive(ctx context.Context, ids []int64) ([]int64, error) {
	ttls, err := n.Part.KeepAlive(ctx, ids)
	if err == nil {
		n.elsewhere(ctx, ids, func(ctx context.Context, p *Part, known []int64) error {
			_, err := p.KeepAlive(ctx, known)
			return err
		})
	}
	return ttls, err
}

// Lease is a lease as the root scope knows it, as of a linearizable read, and the keys
// that are attached to it if they are asked for: those of other scopes as this node
// knows them.
func (n *Node) Lease(ctx context.Context, id int64, keys bool) (g scope.Granted, attached [][]byte, ok bool, head scope.Head, err error) {
	v, err := n.Part.Read(ctx, true)
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
	for _, p := range n.Parts()[1:] {
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

// Compact proposes to drop the content of revisions before one, in all scopes. Once
// there are several, their revisions go by time, and so one says for all what is old.
// The root scope says whether it can be; where a scope cannot decide, it is for later.
func (n *Node) Compact(ctx context.Context, revision int64, once Once) (Receipt, error) {
	if len(*n.given.Load()) == 0 {
		return n.Part.Compact(ctx, revision, once)
	}
	at, newest := revision, int64(0)
	heads := make(map[*Part]scope.Head)
	for _, p := range n.Parts() {
		h, err := p.head(ctx)
		if err != nil {
			continue // it has no state
		}
		heads[p], newest = h, max(newest, h.Closed()) // up to which clients may have heard
	}
	newest = max(newest, n.Closed(ctx)) // of scopes that it does not hold, too
	if own := heads[n.Part]; revision <= newest && revision > own.Revision {
		at = own.Revision
	}
	r, err := n.Part.Compact(ctx, at, once)
	if err != nil {
		return r, err
	}
	var doing sync.WaitGroup
	did := make(chan Receipt, len(heads))
	for p, h := range heads {
		if at := min(revision, h.Revision); p != n.Part && at > h.Compacted && revision <= newest {
			doing.Go(func() {
				if r, err := p.Compact(ctx, at, Once{Justification: once.Justification}); err == nil && r.Code == scope.Applied {
					did <- r
				}
			})
		}
	}
	go func() {
		doing.Wait()
		close(did)
	}()
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
