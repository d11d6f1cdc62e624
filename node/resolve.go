package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// Resolve returns what a key stands for, or stood for until it was moved, and a version of that object, 0 for the
// newest. It asks the scope that decides about the key, and the one to which the object was moved. Errors wrap
// scope.ErrKeyNotFound.
func (n *Node) Resolve(ctx context.Context, key []byte, version int64, linearizable bool) (r referral.Resolved, head scope.Head, err error) {
	r, head, err = n.resolve(ctx, key, version, linearizable)
	if err == nil || r.Moved == nil {
		return r, head, err
	}
	there, at, elsewhere := n.resolve(ctx, r.Moved.To, version, linearizable)
	if elsewhere != nil || there.Kv.UID != r.Moved.Object {
		return r, head, err
	}
	there.Moved = r.Moved
	return there, at, nil
}

func (n *Node) resolve(ctx context.Context, key []byte, version int64, linearizable bool) (r referral.Resolved, head scope.Head, err error) {
	err = n.withOwner(ctx, referral.Keys(key), func(at owner) error {
		if at.remote != nil {
			r, head, err = at.remote.resolve(ctx, key, version, linearizable)
			return err
		}
		r, head, err = at.replica.Resolve(ctx, key, version, linearizable)
		return err
	})
	return r, head, err
}

// Resolve is Node.Resolve for keys that the replica's scope decides about.
func (n *Replica) Resolve(ctx context.Context, key []byte, version int64, linearizable bool) (r referral.Resolved, head scope.Head, err error) {
	v, err := n.Read(ctx, linearizable)
	if err != nil {
		return r, head, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	head = v.Head()
	if err := v.owns(referral.Keys(key)); err != nil {
		return r, head, err
	}
	r, err = v.resolved(ctx, key, version)
	return r, head, err
}

// resolved returns what a key stands for in the scope. If the object is not found but was moved, the result says where
// to.
func (v *View) resolved(ctx context.Context, key []byte, version int64) (r referral.Resolved, err error) {
	if r, err = referral.Named(v.State, key); err != nil || version <= 0 || version == r.Number {
		return r, err
	}
	if r.Kv, err = v.version(ctx, r.Kv.UID, r.Key, version, r.Number); err != nil {
		return r, err
	}
	r.Number = version
	return r, nil
}

// version returns a version of an object by its number: as an alias showed it, or as it was written under another key.
func (v *View) version(ctx context.Context, u aweigh.UID, alias []byte, number, newest int64) (kv scope.KeyValue, err error) {
	if number > newest {
		return kv, fmt.Errorf("%w: the newest version is %d", scope.ErrNoVersion, newest)
	}
	var found scope.Version
	err = v.Versions(u, func(w scope.Version) bool {
		found = w
		return w.Number > number && ctx.Err() == nil
	})
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return kv, err
	}
	content, ok, err := v.ContentUnder(found, alias)
	if err == nil && !ok {
		err = fmt.Errorf("%w: the content of version %d", scope.ErrCompacted, number)
	}
	return content, err
}
