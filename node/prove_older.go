package node

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// ErrOlder means that a node cannot prove what keys held after an older block.
var ErrOlder = errors.New("node: no proof as of that block")

// proveOlder is ProveRange as of an earlier block of the scope that governs the range.
func (n *Node) proveOlder(ctx context.Context, key, end []byte, at aweigh.Height) (p *scope.RangeProof, head scope.Head, err error) {
	err = n.withOwner(ctx, referral.Keys(), func(owner) error { // again if keys are delegated meanwhile
		of, err := n.deciding(ctx, owner{replica: n.root}, key, end)
		if err != nil {
			return err
		}
		if of.remote != nil {
			return fmt.Errorf("%w: this node does not hold the scope of %q; ask a node that does", ErrOlder, of.remote.genesis.Prefix())
		}
		p, head, err = of.replica.proveOlder(ctx, key, end, at)
		return err
	})
	return p, head, err
}

// proveOlder proves what keys held after a block. The node makes the tree of then from the records, one at a time.
func (n *Replica) proveOlder(ctx context.Context, key, end []byte, at aweigh.Height) (_ *scope.RangeProof, head scope.Head, err error) {
	ctx, cancel := n.deadline(ctx)
	defer cancel()
	v, err := n.Read(ctx, true)
	if err != nil {
		return nil, head, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	head = v.Head()
	if at > head.Height {
		return nil, head, fmt.Errorf("%w: %d is not final yet, and %d is the newest", ErrOlder, at, head.Height)
	}
	a, err := n.prover(ctx, v).ClaimAfter(at)
	if errors.Is(err, machine.ErrUncovered) && at == head.Height {
		a, err = n.claimSince(ctx, v, math.MaxInt64) // of the block that follows
	}
	if err != nil {
		return nil, head, fmt.Errorf("%w: this node does not have what proves block %d: %w", ErrOlder, at, err)
	}
	select {
	case n.older <- struct{}{}:
		defer func() { <-n.older }()
	case <-ctx.Done():
		return nil, head, fmt.Errorf("%w: other proofs of older blocks come first: %w", ErrOlder, context.Cause(ctx))
	}
	part, err := scope.NewOlderRangePart(a, v.State, key, end, mostProven)
	if err == nil {
		err = takenOf(ctx, &part)
	}
	if err != nil {
		return nil, head, err
	}
	if below := part.Below(key, end); len(below) > 0 {
		return nil, head, fmt.Errorf("%w: the keys of %q are another scope's, with blocks of its own; ask for them alone", ErrOlder, below[0].Key)
	}
	return &scope.RangeProof{Key: key, End: end, Parts: []scope.RangePart{part}}, head, nil
}
