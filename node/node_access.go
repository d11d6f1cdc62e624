package node

import (
	"context"
	"errors"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/scope"
)

// Access are the users and roles of the network, which the root scope has.
func (n *Part) Access(ctx context.Context, linearizable bool) (a scope.Access, err error) {
	v, err := n.of.Read(ctx, linearizable)
	if err != nil {
		return a, err
	}
	a, err = v.State.Access()
	return a, errors.Join(err, v.Close())
}

// Permit proposes other users and roles in this node's name, and waits until that is
// final. They are based on those of the revision before theirs, or fail with
// scope.ErrAccessChanged.
func (n *Part) Permit(ctx context.Context, a scope.Access, once Once) (Receipt, error) {
	return n.of.propose(ctx, scope.Permit, canon.Encode(a), once)
}
