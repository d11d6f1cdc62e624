package node

import (
	"cmp"
	"context"
	"errors"
	"slices"

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
	return err == nil, err
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
	if p == n.Part || err != nil || r.Code != scope.Failed || !errors.Is(scope.Failure(r.Reason), scope.ErrLeaseNotFound) {
		return r, err
	}
	for _, id := range attaches(&t) {
		if known, err := n.attach(ctx, p, id); err != nil || !known {
			return r, err
		}
	}
	once.Nonce = append(slices.Clone(once.Nonce[:min(len(once.Nonce), 31)]), 'L') // another mutation: the first one is on record as failed
	return p.Txn(ctx, t, once)
}

// knowing are the parts in whose scopes a lease is known, as of this node's state.
func (n *Node) knowing(ctx context.Context, id int64) (all []*Part, err error) {
	for _, p := range n.Parts() {
		v, err := p.Read(ctx, false)
		if err != nil {
			return nil, err
		}
		_, ok, err := v.Lease(id)
		if err := errors.Join(err, v.Close()); err != nil {
			return nil, err
		}
		if ok && p != n.Part {
			all = append(all, p)
		}
	}
	return all, nil
}

// Revoke proposes to end a lease, and to delete the keys attached to it, in all scopes
// that know it. The receipt is the root scope's.
func (n *Node) Revoke(ctx context.Context, id int64, once Once) (Receipt, error) {
	others, err := n.knowing(ctx, id)
	if err != nil {
		return Receipt{}, err
	}
	r, err := n.Part.Revoke(ctx, id, once)
	if err != nil {
		return r, err
	}
	for _, p := range others {
		gone, err := p.Revoke(ctx, id, Once{Justification: once.Justification})
		if err != nil {
			return r, err
		}
		if why := scope.Failure(gone.Reason); gone.Code == scope.Failed && !errors.Is(why, scope.ErrLeaseNotFound) {
			return r, why
		}
	}
	return r, nil
}

// KeepAlive lets leases last for their whole TTL again, in all scopes that know them.
func (n *Node) KeepAlive(ctx context.Context, ids []int64) ([]int64, error) {
	ttls, err := n.Part.KeepAlive(ctx, ids)
	if err != nil || len(*n.given.Load()) == 0 {
		return ttls, err
	}
	elsewhere := make(map[*Part][]int64)
	for i, id := range ids {
		if ttls[i] == 0 {
			continue
		}
		others, err := n.knowing(ctx, id)
		if err != nil {
			return nil, err
		}
		for _, p := range others {
			elsewhere[p] = append(elsewhere[p], id)
		}
	}
	for p, ids := range elsewhere {
		if _, err := p.KeepAlive(ctx, ids); err != nil {
			return nil, err
		}
	}
	return ttls, nil
}

// Lease is a lease as the root scope knows it, with the keys of all scopes that are
// attached to it if they are asked for, as of a linearizable read.
func (n *Node) Lease(ctx context.Context, id int64, keys bool) (g scope.Granted, attached [][]byte, ok bool, head scope.Head, err error) {
	for _, p := range n.Parts() {
		v, err := p.Read(ctx, true)
		if err != nil {
			return g, nil, false, head, err
		}
		here, known, err := v.Lease(id)
		if err == nil && known && keys {
			var some [][]byte
			some, err = v.LeaseKeys(id)
			attached = append(attached, some...)
		}
		if p == n.Part {
			g, ok, head = here, known, v.Head()
		}
		if err := errors.Join(err, v.Close()); err != nil {
			return g, nil, false, head, err
		}
		if !ok || !keys {
			break
		}
	}
	slices.SortFunc(attached, func(a, b []byte) int { return cmp.Compare(string(a), string(b)) })
	return g, attached, ok, head, nil
}

// Compact proposes to drop the content of revisions before one, in all scopes. Once
// there are several, their revisions go by time, and so one says for all what is old.
// The receipt is that of the scope which is to say whether it can be, the last one.
func (n *Node) Compact(ctx context.Context, revision int64, once Once) (Receipt, error) {
	if len(*n.given.Load()) == 0 {
		return n.Part.Compact(ctx, revision, once)
	}
	heads := make(map[*Part]scope.Head)
	var newest int64
	for _, p := range n.Parts() {
		v, err := p.Read(ctx, true)
		if err != nil {
			return Receipt{}, err
		}
		heads[p] = v.Head()
		newest = max(newest, heads[p].Revision)
		if err := v.Close(); err != nil {
			return Receipt{}, err
		}
	}
	if revision > newest {
		return n.Part.Compact(ctx, revision, once) // which says that it is a future one
	}
	var last Receipt
	did := false
	for _, p := range n.Parts() {
		at := min(revision, heads[p].Revision)
		if _, there := heads[p]; !there || at <= heads[p].Compacted {
			continue
		}
		r, err := p.Compact(ctx, at, Once{Justification: once.Justification})
		if err != nil {
			return r, err
		}
		last, did = r, true
	}
	if !did {
		return n.Part.Compact(ctx, heads[n.Part].Compacted, once) // which says that it was done before
	}
	return last, nil
}
