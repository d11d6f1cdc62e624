package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Prove returns a proof of the newest change of a key. The proof verifies offline from the network's identity alone.
// If no later block covers the change yet, Prove proposes an empty transaction, so that one will.
func (n *Replica) Prove(ctx context.Context, key []byte) (p *scope.KeyProof, head scope.Head, err error) {
	err = n.covered(ctx, func(v *View) error {
		head = v.Head()
		p, err = n.proveKey(ctx, v, key)
		return err
	})
	return p, head, err
}

// ProveMotion returns a proof that a motion is real, open or not. The proof verifies offline from the network's
// identity alone; see Prove. The error wraps ErrNoMotion for a motion that is not known.
func (n *Replica) ProveMotion(ctx context.Context, id votes.MotionID) (p *scope.MotionProof, head scope.Head, err error) {
	err = n.coveredFrom(ctx, false, func(v *View) error { // a motion that is known here needs no quorum
		head = v.Head()
		p, err = n.prover(ctx, v).Motion(id, 0)
		return err
	})
	return p, head, err
}

// covered calls prove with the newest state, again once a later block covers it if need be.
func (n *Replica) covered(ctx context.Context, prove func(*View) error) error {
	return n.coveredFrom(ctx, true, prove)
}

// coveredFrom is covered, but it begins with this node's state unless linearizable.
func (n *Replica) coveredFrom(ctx context.Context, linearizable bool, prove func(*View) error) error {
	ctx, cancel := n.deadline(ctx)
	defer cancel()
	for {
		v, err := n.Read(ctx, linearizable)
		if err != nil {
			return err
		}
		above := v.Head().Height
		err = errors.Join(prove(v), v.Close())
		if !errors.Is(err, machine.ErrUncovered) {
			return err
		}
		if err := n.cover(ctx, above); err != nil {
			return err
		}
		linearizable = false // this node knows of a block later than every earlier write
	}
}

// prover returns a Prover of what a view shows.
func (n *Replica) prover(ctx context.Context, v *View) *machine.Prover {
	return &machine.Prover{Genesis: *n.genesis, State: v.State, History: n.History(), Above: func(d *scope.Descent) ([]scope.Step, error) {
		return n.of.descentSteps(ctx, d)
	}}
}

func (n *Replica) proveKey(ctx context.Context, v *View, key []byte) (*scope.KeyProof, error) {
	change, err := v.change(key)
	if err != nil {
		return nil, err
	}
	return n.prover(ctx, v).Key(key, change.Entry)
}

// coverWithin bounds how long the export of a motion, or a node that asks one anchor, waits for a later block.
const coverWithin = 2 * time.Second

// bareMotion proves a motion only up to its own block, which is final. So voters can be informed while there is no
// quorum.
func (n *Replica) bareMotion(ctx context.Context, id votes.MotionID) (p *scope.MotionProof, head scope.Head, err error) {
	v, err := n.Read(ctx, false)
	if err != nil {
		return nil, head, err
	}
	p, err = n.prover(ctx, v).Motion(id, 1)
	return p, v.Head(), errors.Join(err, v.Close())
}

// descentSteps returns the steps by which a scope descends from the root scope.
func (n *Node) descentSteps(ctx context.Context, d *scope.Descent) (steps []scope.Step, err error) {
	p := n.replica(d.Parent)
	if p == nil {
		return nil, fmt.Errorf("%w: %s, the parent of %q", ErrNoScope, d.Parent.Short(), d.Prefix)
	}
	err = p.coveredFrom(ctx, false, func(v *View) error { // what it needs is final, and may be here
		a, err := p.prover(ctx, v).Ancestry(d.Height)
		if err != nil {
			return err
		}
		steps, err = scope.NewStep(a, v.State, d)
		return err
	})
	return steps, err
}
