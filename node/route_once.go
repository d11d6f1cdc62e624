package node

import (
	"context"
	"errors"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// before returns the outcome of a request in a scope above, if it was applied there. Everything that was ordered there
// about keys of this scope is in this node's state, or, for a scope that it does not hold, in that of enough anchors.
func (n *Node) before(ctx context.Context, at owner, class scope.Class, content []byte, once Once) (r machine.Receipt, known bool, err error) {
	again := once
	again.Nonce = nonceAgain(once.Nonce)
	if at.replica != nil { // it may have been applied in a scope that came home
		for _, f := range at.replica.given.Load().Folds() {
			c, err := n.archive(f.Child)
			if err != nil || c == nil {
				continue
			}
			for _, once := range []Once{once, again} {
				was, ok, err := c.outcome(scope.ID(c.mutation(class, content, once).Encode()))
				if err == nil && ok && was.Code == scope.Applied {
					was.Code = scope.Duplicate
					return was, true, nil
				}
			}
		}
	}
	for d := at.genesis().Descent; d != nil; {
		f, p := n.foreign(d.Parent), n.replica(d.Parent)
		switch {
		case f != nil:
			d = f.genesis.Descent
		case p != nil && !p.vacant.Load():
			d = p.genesis.Descent
		default:
			return r, false, nil
		}
		for _, once := range []Once{once, again} {
			var was machine.Receipt
			var ok bool
			if f != nil {
				was, ok, err = f.outcome(ctx, scope.ID(f.mutation(class, content, once).Encode()))
			} else {
				was, ok, err = p.outcome(scope.ID(p.mutation(class, content, once).Encode()))
			}
			if err != nil {
				return r, false, err
			}
			if ok && was.Code == scope.Applied {
				was.Code = scope.Duplicate
				return was, true, nil
			}
		}
	}
	return r, false, nil
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
