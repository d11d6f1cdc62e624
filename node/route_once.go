package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// before returns the outcome of a request in a scope above, or in one that came home to this scope or to one above, if
// it was applied there. Everything that was ordered there about keys of this scope is in this node's state, or, for a
// scope that it does not hold, in that of enough anchors.
func (n *Node) before(
	ctx context.Context, at owner, keys referral.Ranges, class scope.Class, content []byte, once Once,
) (r machine.Receipt, known bool, err error) {
	again := once
	again.Nonce = nonceAgain(once.Nonce)
	for {
		if r, known, err = n.beforeHome(ctx, at, keys, class, content, once, again); known || err != nil {
			return r, known, err
		}
		d := at.genesis().Descent
		if d == nil {
			return r, false, nil
		}
		at = owner{replica: n.replica(d.Parent), remote: n.foreign(d.Parent)}
		if at.remote != nil {
			at.replica = nil
		} else if at.replica == nil || at.replica.vacant.Load() {
			return r, false, nil
		}
		for _, once := range []Once{once, again} {
			if r, known, err = at.outcome(ctx, class, content, once); known || err != nil {
				return r, known, err
			}
		}
	}
}

// outcome returns the outcome of a request of this node in a scope, if it was applied there.
func (d owner) outcome(ctx context.Context, class scope.Class, content []byte, once Once) (r machine.Receipt, known bool, err error) {
	if d.remote != nil {
		r, known, err = d.remote.outcome(ctx, scope.ID(d.remote.mutation(class, content, once).Encode()))
	} else {
		r, known, err = d.replica.outcome(scope.ID(d.replica.mutation(class, content, once).Encode()))
	}
	if err != nil || !known || r.Code != scope.Applied {
		return r, false, err
	}
	r.Code = scope.Duplicate
	return r, true, nil
}

// outcome returns the outcome of a mutation, if that is on record here.
func (n *Replica) outcome(id aweigh.Hash) (r machine.Receipt, known bool, err error) {
	s, err := n.views.open()
	if err != nil {
		return r, false, err
	}
	was, known, err := s.Outcome(id)
	r.Outcome = scope.Outcome{Mutation: id, Code: was.Code, Reason: was.Reason, Revision: was.Revision, Succeeded: was.Succeeded}
	r.Height, r.Scope = was.Height, n.id
	return r, known, errors.Join(err, n.views.release(s))
}

// beforeHome returns the outcome of a request in a scope that came home since the request can have been made, if it was
// applied there. The error wraps machine.ErrBusy if this node cannot tell.
func (n *Node) beforeHome(
	ctx context.Context, at owner, keys referral.Ranges, class scope.Class, content []byte, onces ...Once,
) (r machine.Receipt, known bool, err error) {
	all, err := n.foldsTo(ctx, at)
	if err != nil {
		return r, false, err
	}
	for _, f := range all {
		about := false
		keys(func(key, end []byte) bool {
			about = scope.Overlap(key, end, f.Prefix, scope.PrefixEnd(f.Prefix))
			return !about
		})
		if !about {
			continue
		}
		for _, once := range onces {
			if r, known, err = n.outcomeIn(ctx, f, class, content, once); known || err != nil {
				return r, known, err
			}
		}
	}
	return r, false, nil
}

// foldsTo are the scopes that came home to one since a request can have been made that is still valid. Of a scope that
// this node does not hold, they are those that it found closed.
func (n *Node) foldsTo(ctx context.Context, at owner) (all []scope.FoldRecord, err error) {
	if at.remote != nil {
		n.remotes.mu.Lock()
		defer n.remotes.mu.Unlock()
		for _, f := range n.remotes.all { // order-free: the request was applied in one of them at most
			if f.genesis.Descent.Parent == at.remote.id && f.closed() {
				all = append(all, scope.FoldRecord{Prefix: f.genesis.Prefix(), Child: f.id})
			}
		}
		return all, nil
	}
	h := at.replica.LastHead()
	if h.Folded == 0 {
		return nil, nil
	}
	v, err := at.replica.Read(ctx, false)
	if err != nil {
		return nil, err
	}
	patience := scope.MostLimits().Patience(true)
	all, err = v.FoldsSince(scope.ClockRevision(h.Started, at.replica.runner.now().Add(-patience)))
	return all, errors.Join(err, v.Close())
}

// outcomeIn returns the outcome of a request of this node in a scope that came home, if it was applied there.
func (n *Node) outcomeIn(ctx context.Context, f scope.FoldRecord, class scope.Class, content []byte, once Once) (r machine.Receipt, known bool, err error) {
	c, err := n.archive(f.Child)
	if err != nil {
		return r, false, err
	}
	if c != nil && c.closed() { // otherwise it lacks the last blocks
		return owner{replica: c}.outcome(ctx, class, content, once)
	}
	if far := n.foreign(f.Child); far != nil {
		if r, known, err = (owner{remote: far}).outcome(ctx, class, content, once); err == nil {
			return r, known, nil
		}
	}
	return r, false, fmt.Errorf("%w: the keys of %q came home meanwhile, and this node cannot tell whether the request was carried out before; ask a node that held their scope",
		machine.ErrBusy, f.Prefix)
}
