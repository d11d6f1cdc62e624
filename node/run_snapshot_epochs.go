package node

import (
	"context"
	"fmt"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// serveHandovers answers with the proofs of epochs, at the cost of a peer's budget.
func (n *Replica) serveHandovers(p machine.Peer, ask handoversAsk) ([]byte, error) {
	all, err := n.History().Handovers(ask.Above, machine.HandoversAtOnce)
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
	if d := n.budgets.WaitGiven(p, size); d > 0 && !n.pause(d) {
		return nil, ErrStopped
	}
	return canon.Encode(all), nil
}

// checkOffer verifies a peer's offer in the epochs of its blocks. If this node has not reached them, the peer proves
// them.
func (n *Replica) checkOffer(ctx context.Context, p peer.ID, o *snapshotOffer) error {
	if n := o.parts(); n == 0 || n > maxParts || len(o.Sums)%len(aweigh.Hash{}) != 0 {
		return fmt.Errorf("%w: of %d parts", machine.ErrSnapshot, n)
	}
	if _, err := o.begin(*n.genesis); err != nil {
		return err
	}
	if o.first() {
		if !n.vacant.Load() {
			return fmt.Errorf("%w: the scope's first state, for a node that has a later one", machine.ErrSnapshot)
		}
		return nil
	}
	own, err := n.follow(ctx, p, n.epochs.epoch(), o.Own.Header.Epoch)
	if err != nil {
		return err
	}
	next, err := n.follow(ctx, p, own, o.Next.Header.Epoch)
	if err != nil {
		return err
	}
	return o.check(own, next)
}

// follow returns epoch to, proven from the known epoch e by the handovers that are here or that a peer gives.
func (n *Replica) follow(ctx context.Context, p peer.ID, e *scope.Epoch, to aweigh.Epoch) (*scope.Epoch, error) {
	if to < e.Number {
		return nil, fmt.Errorf("node: a snapshot of epoch %d, where this node is in %d", to, e.Number)
	}
	way := referral.Follow
	if n.genesis.Descent == nil {
		way = n.of.pin.followPinned
	}
	return way(n.cfg.Store, n.id, e, to, func(above aweigh.Height) ([]byte, error) {
		return n.ask(ctx, p, askHands, handoversAsk{Above: above}, maxPart)
	})
}
