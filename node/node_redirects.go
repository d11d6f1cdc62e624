package node

import (
	"context"
	"errors"
	"math"

	"github.com/aweigh/aweigh/scope"
)

// Redirects are those of the names [key, end), in the sense of scope.Op, that were moved and still lead somewhere,
// in order and at most so many, whichever scopes decide about them. As in Range, what is of one scope is of one moment, and
// the head is of the one that is closed up to the least revision. Errors wrap ErrNotHeld where this node
// does not hold one of the scopes.
func (n *Node) Redirects(ctx context.Context, key, end []byte, most int, linearizable bool) (found []scope.Redirect, head scope.Head, err error) {
	err = n.on(ctx, Keys(), func(*Part) error {
		found, head = nil, scope.Head{}
		all, err := n.split(ctx, nil, decider{Part: n.Part}, key, end, math.MaxInt64)
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
			if found = append(found, some...); head.Scope.IsZero() || at.Closed() < head.Closed() {
				head = at
			}
		}
		return nil
	})
	return found, head, err
}

// Redirects are those of the scope's own names.
func (n *Part) Redirects(ctx context.Context, key, end []byte, most int, linearizable bool) ([]scope.Redirect, scope.Head, error) {
	return n.redirects(ctx, key, end, most, linearizable, false)
}

// redirects fails if the names must be the scope's own, and some were delegated meanwhile.
func (n *Part) redirects(ctx context.Context, key, end []byte, most int, linearizable, own bool) (found []scope.Redirect, head scope.Head, err error) {
	v, err := n.Read(ctx, linearizable)
	if err != nil {
		return nil, head, err
	}
	if own {
		err = v.owns(Between(key, end))
	}
	if err == nil {
		found, err = v.Redirects(key, end, most)
	}
	return found, v.Head(), errors.Join(err, v.Close())
}
