package auth

import (
	"context"
	"slices"

	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// What a user may do at which operation is as in etcd 3.6 (server/etcdserver/apply_auth.go).

// MayTxn reports why a user may not carry out a transaction.
func (g *Guard) MayTxn(ctx context.Context, r *Rights, t *scope.Txn) error {
	for i := range t.Compare {
		if err := r.MayRead(t.Compare[i].Key, t.Compare[i].End); err != nil {
			return err
		}
	}
	for _, branch := range [][]scope.Op{t.Success, t.Failure} {
		for i := range branch {
			if err := g.mayOp(ctx, r, &branch[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *Guard) mayOp(ctx context.Context, r *Rights, op *scope.Op) error {
	switch op.Kind {
	case scope.OpTxn:
		return g.MayTxn(ctx, r, op.Txn)
	case scope.OpRange, scope.OpMerge:
		return r.MayRead(op.Key, op.End)
	case scope.OpPut, scope.OpDelete:
		if err := r.MayWrite(op.Key, op.End); err != nil {
			return err
		}
	default:
		return r.MayRule()
	}
	if op.Lease != 0 { // or its end would delete what the user may not
		if err := g.MayLease(ctx, r, op.Lease, r.MayWrite); err != nil {
			return err
		}
	}
	if op.Prev {
		return r.MayRead(op.Key, op.End)
	}
	return nil
}

// MayLease reports why a user may not do something with all keys of a lease.
func (g *Guard) MayLease(ctx context.Context, r *Rights, id int64, may func(key, end []byte) error) error {
	if r.Root() {
		return nil
	}
	// A scope that this node does not hold may have keys of it.
	if slices.ContainsFunc(g.node.Scopes(), func(x node.ScopeInfo) bool { return !x.Held || x.Behind }) {
		return ErrDenied
	}
	_, keys, _, _, err := g.node.Lease(ctx, id, true)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if err := may(k, nil); err != nil {
			return err
		}
	}
	return nil
}
