package node

import (
	"context"
	"errors"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// Access returns the users and roles of the network. They are part of the root scope.
func (n *Node) Access(ctx context.Context, linearizable bool) (a scope.Access, err error) {
	v, err := n.root.Read(ctx, linearizable)
	if err != nil {
		return a, err
	}
	a, err = v.State.Access()
	return a, errors.Join(err, v.Close())
}

// Permit proposes other users and roles in this node's name, and waits until that is final. They must be based on the
// users and roles of the previous revision; otherwise the mutation fails with scope.ErrAccessChanged.
func (n *Node) Permit(ctx context.Context, a scope.Access, once Once) (machine.Receipt, error) {
	return n.root.propose(ctx, scope.Permit, canon.Encode(a), once)
}
