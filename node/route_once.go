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
		} else if at.replica == nil {
			return r, false, nil
		} else if at.replica.vacant.Load() {
			return r, false, fmt.Errorf("%w: this node does not have the scope above yet, in which the request may have been carried out", machine.ErrBusy)
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

// beforeHome returns the outcome of a request in a scope that came home, to this one or to another that did, if it was
// applied there. The error wraps machine.ErrBusy if this node cannot tell.
func (n *Node) beforeHome(
	ctx context.Context, at owner, keys referral.Ranges, class scope.Class, content []byte, onces ...Once,
) (r machine.Receipt, known bool, err error) {
	all, err := n.foldsTo(at, onces[0])
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
		closed, err := n.closedScope(f)
		if err != nil {
			return r, false, err
		}
		for _, once := range onces {
			if r, known, err = closed.outcome(ctx, class, content, once); known || err != nil {
				return r, known, cantTell(f, err)
			}
		}
		if r, known, err = n.beforeHome(ctx, closed, keys, class, content, onces...); known || err != nil {
			return r, known, err
		}
	}
	return r, false, nil
}

// foldsTo are the scopes that came home to one in which a request can have been decided before. Of a scope that this
// node does not hold, they are those that it found closed.
func (n *Node) foldsTo(at owner, once Once) (all []scope.FoldRecord, err error) {
	if at.remote != nil {
		n.remotes.mu.Lock()
		defer n.remotes.mu.Unlock()
		for _, f := range n.remotes.all { // order-free: the request was applied in one of them at most
			e := f.known()
			if f.genesis.Descent.Parent == at.remote.id && e.Home != nil && once.mayBeOf(e.Time, &f.genesis.Policy, &e.Policy) {
				all = append(all, scope.FoldRecord{Prefix: f.genesis.Prefix(), Child: f.id})
			}
		}
		return all, nil
	}
	s, err := at.replica.views.open()
	if err != nil {
		return nil, err
	}
	h := s.Head()
	if h.Folded > 0 {
		began := at.replica.runner.now().Add(-scope.MostLimits().Patience(once.Patient))
		err = s.EachFoldSince(scope.ClockRevision(h.Started, began), func(f scope.FoldRecord, g *scope.Genesis) {
			last := &g.Policy
			if c := n.replica(f.Child); c != nil {
				last = &c.epochs.epoch().Policy
			} else if far := n.foreign(f.Child); far != nil {
				last = &far.known().Policy
			}
			if once.mayBeOf(scope.RevisionTime(h.Started, f.Home), &g.Policy, last) {
				all = append(all, f)
			}
		})
	}
	return all, errors.Join(err, at.replica.views.release(s))
}

// mayBeOf reports whether a scope that was there until a time can have taken the request, by how far ahead of a block's
// time its first policy and its last one let a request be valid.
func (o Once) mayBeOf(until aweigh.Instant, first, last *scope.Policy) bool {
	return o.ValidUntil <= until.Add(max(first.Limits.Patience(o.Patient), last.Limits.Patience(o.Patient)))
}

// closedScope is what this node has of a scope that came home. The error wraps machine.ErrBusy if that is nothing.
func (n *Node) closedScope(f scope.FoldRecord) (owner, error) {
	c, err := n.archive(f.Child)
	if err != nil {
		return owner{}, err
	}
	if c != nil && c.closed() { // otherwise it lacks the last blocks
		return owner{replica: c}, nil
	}
	if far := n.foreign(f.Child); far != nil {
		return owner{remote: far}, nil
	}
	return owner{}, cantTell(f, errors.New("this node does not have that scope"))
}

// cantTell is why a node cannot tell whether a request was carried out; nil if err is.
func cantTell(f scope.FoldRecord, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: the keys of %q came home meanwhile, and this node cannot tell whether the request was carried out before (%w); ask a node that held their scope",
		machine.ErrBusy, f.Prefix, err)
}
