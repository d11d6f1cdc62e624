package node

import (
	"context"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
)

// serveHandovers answers with the proofs of epochs, from a peer's budget.
func (n *Part) serveHandovers(p Peer, ask handoversAsk) ([]byte, error) {
	all, err := n.History().Handovers(ask.Above, handoversAtOnce)
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
	return follow(ctx, n.cfg.Store, n.id, e, to, func(ctx context.Context, above aweigh.Height) ([]byte, error) {
		return n.ask(ctx, p, askHands, handoversAsk{Above: above}, maxPart)
	})
}

// farthest is later than any epoch.
const farthest = ^aweigh.Epoch(0)

// follow is a later epoch of a scope than one that is known, proven by the handovers that
// the store has or that ask gives; without ask, as late as the store shows. What it gives
// is kept, since it is proven.
func follow(ctx context.Context, s store.Store, id aweigh.ScopeID, e *scope.Epoch, to aweigh.Epoch, ask func(context.Context, aweigh.Height) ([]byte, error)) (*scope.Epoch, error) {
	for e.Number < to {
		hands, err := History{Reader: s, Scope: id}.Handovers(e.Start, handoversAtOnce)
		if err != nil {
			return nil, err
		}
		here := len(hands) > 0
		if !here {
			if ask == nil {
				return e, nil
			}
			raw, err := ask(ctx, e.Start)
			if err != nil {
				return nil, err
			}
			if err := canon.Decode(raw, &hands); err != nil {
				return nil, fmt.Errorf("%w: handovers: %w", ErrSnapshot, err)
			}
			if len(hands) == 0 || len(hands) > handoversAtOnce {
				return nil, fmt.Errorf("%w: %d handovers that lead to epoch %d", ErrSnapshot, len(hands), to)
			}
		}
		var ops []kv.Op
		for _, h := range hands {
			if e.Number == to {
				break
			}
			if e, err = e.Follow(h); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
			}
			ops = append(ops, kv.Set(keyHandover(id, h.Final.Header.Height), canon.Encode(h)))
		}
		if !here {
			if err := s.Commit(ops, false); err != nil {
				return nil, err
			}
		}
	}
	return e, nil
}
