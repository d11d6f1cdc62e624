package node

import (
	"context"
	"errors"
	"math"

	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// Redirects returns the names in [key, end), in the sense of scope.Op, that were moved and still lead somewhere, in
// order and at most most of them, whichever scopes decide about them. As in Range, the redirects of one scope are as
// of one moment, and the head is that of the scope that is closed up to the least revision. Errors wrap ErrNotHeld if
// this node does not hold one of the scopes.
func (n *Node) Redirects(ctx context.Context, key, end []byte, most int, linearizable bool) (found []scope.Redirect, head scope.Head, err error) {
	err = n.withHeld(ctx, referral.Keys(), func(*Replica) error {
		found, head = nil, scope.Head{}
		all, err := n.split(ctx, nil, owner{replica: n.root}, key, end, math.MaxInt64)
		if err != nil {
			return err
		}
		for _, p := range all {
			part, err := p.held()
			if err != nil {
				return err
			}
			some, at, err := part.redirects(ctx, p.Key, p.End, most-len(found), linearizable, true)
			if err != nil {
				return err
			}
			if found = append(found, some...); head.Scope.IsZero() || at.ClosedTimestamp() < head.ClosedTimestamp() {
				head = at
			}
		}
		return nil
	})
	return found, head, err
}

// Redirects returns the redirects of the scope's own names.
func (n *Replica) Redirects(ctx context.Context, key, end []byte, most int, linearizable bool) ([]scope.Redirect, scope.Head, error) {
	return n.redirects(ctx, key, end, most, linearizable, false)
}

// redirects fails if the names must be the scope's own, and some were delegated meanwhile.
func (n *Replica) redirects(ctx context.Context, key, end []byte, most int, linearizable, own bool) (found []scope.Redirect, head scope.Head, err error) {
	v, err := n.Read(ctx, linearizable)
	if err != nil {
		return nil, head, err
	}
	if own {
		err = v.owns(referral.Between(key, end))
	}
	if err == nil {
		found, err = v.Redirects(key, end, most)
	}
	return found, v.Head(), errors.Join(err, v.Close())
}
