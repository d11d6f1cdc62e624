package node

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// ErrOlder means that a node cannot prove what keys held after an earlier block.
var ErrOlder = errors.New("node: no proof as of that block")

// olderWaits is how long a request waits while the node makes such a proof for another.
const olderWaits = 2 * time.Second

// proveOlder proves what keys held after a block. It makes the tree of then from the records; the node makes one at a
// time.
func (n *Replica) proveOlder(ctx context.Context, key, end []byte, at aweigh.Height) (_ *scope.RangeProof, head scope.Head, err error) {
	ctx, cancel := n.deadline(ctx)
	defer cancel()
	select {
	case n.of.older <- struct{}{}:
		defer func() { <-n.of.older }()
	case <-time.After(olderWaits):
		return nil, head, fmt.Errorf("%w: it proves what keys held after earlier blocks, for others", machine.ErrBusy)
	case <-ctx.Done():
		return nil, head, context.Cause(ctx)
	}
	v, err := n.Read(ctx, false) // what was final stays so
	if err != nil {
		return nil, head, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	head = v.Head()
	a, err := n.claimAfter(ctx, v, at)
	if err != nil {
		return nil, head, err
	}
	part, err := scope.NewOlderRangePart(a, v.State, key, end, mostProven, ctx.Err)
	if err == nil {
		err = takenOf(ctx, &part)
	}
	if below := part.Below(key, end); err == nil && len(below) > 0 {
		err = fmt.Errorf("%w: the keys of %q were another scope's, with blocks of its own", ErrOlder, below[0].Key)
	}
	return &scope.RangeProof{Key: key, End: end, Parts: []scope.RangePart{part}}, head, err
}

// claimAfter returns the ancestry of the block that follows a height. If that height is the newest, and its block
// changed a key, the node has a block written.
func (n *Replica) claimAfter(ctx context.Context, v *View, at aweigh.Height) (a scope.Ancestry, err error) {
	head := v.Head()
	if at > head.Height {
		return a, fmt.Errorf("%w: %d is not final here yet, and %d is the newest", ErrOlder, at, head.Height)
	}
	a, err = n.prover(ctx, v).ClaimAfter(at)
	if errors.Is(err, machine.ErrUncovered) && at == head.Height {
		if f, newestErr := n.History().Finality(at); newestErr == nil && f.Header.Current == head.Current {
			return a, fmt.Errorf("%w: no block follows %d yet, which changed no key: the keys hold the same as after %d", ErrOlder, at, at-1)
		}
		a, err = n.claimSince(ctx, v, math.MaxInt64) // only of a block that follows
	}
	if errors.Is(err, machine.ErrUncovered) || errors.Is(err, machine.ErrNoHandovers) {
		err = fmt.Errorf("%w: this node does not have what proves block %d; ask another: %w", ErrOlder, at, err)
	}
	return a, err
}
