package node

import (
	"context"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/scope"
)

// serveHandovers answers with the proofs of epochs, from a peer's budget.
func (n *Part) serveHandovers(p Peer, ask handoversAsk) ([]byte, error) {
	all, err := n.History().Handovers(ask.Above, HandoversAtOnce)
	if err != nil {
		return nil, err
	}
	size := 0
	for i := range all {
		if size += len(canon.Encode(all[i])); size > maxPart/2 {
			all = all[:max(i, 1)]
			break
		}
	}
	if d := reserve(n.budgets.of(p).given, time.Now(), size); d > 0 && !n.pause(d) {
		return nil, ErrStopped
	}
	return canon.Encode(all), nil
}

// checkOffer verifies a peer's offer, in the epochs of its blocks, which the peer
// proves if this node is not there yet.
func (n *Part) checkOffer(ctx context.Context, p peer.ID, o *snapshotOffer) error {
	if n := o.parts(); n == 0 || n > maxParts || len(o.Sums)%len(aweigh.Hash{}) != 0 {
		return fmt.Errorf("%w: of %d parts", ErrSnapshot, n)
	}
	if _, err := o.begin(*n.genesis); err != nil {
		return err
	}
	if o.first() {
		if !n.vacant.Load() {
			return fmt.Errorf("%w: the scope's first state, for a node that has a later one", ErrSnapshot)
		}
		return nil
	}
	own, err := n.follow(ctx, p, n.roll.epoch(), o.Own.Header.Epoch)
	if err != nil {
		return err
	}
	next, err := n.follow(ctx, p, own, o.Next.Header.Epoch)
	if err != nil {
		return err
	}
	return o.check(own, next)
}

// follow is a later epoch than one that is known, proven by the handovers that
// are here or that a peer gives.
func (n *Part) follow(ctx context.Context, p peer.ID, e *scope.Epoch, to aweigh.Epoch) (*scope.Epoch, error) {
	if to < e.Number {
		return nil, fmt.Errorf("node: a snapshot of epoch %d, where this node is in %d", to, e.Number)
	}
	way := follow
	if n.genesis.Descent == nil {
		way = n.of.pin.way
	}
	return way(n.cfg.Store, n.id, e, to, func(above aweigh.Height) ([]byte, error) {
		return n.ask(ctx, p, askHands, handoversAsk{Above: above}, maxPart)
	})
}
