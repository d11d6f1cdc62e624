package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// cover makes a final block above a height, and waits until this node has it: a block's header names the lineage
// before the block, so a change is proven by a later one. A node that may not write and is no anchor asks the anchors.
func (n *Replica) cover(ctx context.Context, above aweigh.Height) error {
	_, err := n.Txn(ctx, scope.Txn{}, Once{Justification: "to prove what came before"})
	if errors.Is(err, scope.ErrDenied) && n.anchor.Load() == nil {
		return n.coverElsewhere(ctx, above)
	}
	return err
}

// askCover asks an anchor for a final block above a height. A coverAsk follows, and the height of the anchor's newest
// block comes back.
const askCover = "cover/1"

type coverAsk struct {
	_     struct{} `cbor:",toarray"`
	Above aweigh.Height
}

type coverSaid struct {
	_      struct{} `cbor:",toarray"`
	Height aweigh.Height
}

// maxCoverSaid bounds an answer, in bytes.
const maxCoverSaid = 64

// serveCover writes an empty transaction if this node has no block above the height and its newest block changed
// something, at the cost of the peer's budget: however often peers ask, a change brings one block more at most. It asks
// no other anchor.
func (n *Replica) serveCover(ctx context.Context, p machine.Peer, ask coverAsk) ([]byte, error) {
	if n.anchor.Load() == nil {
		return nil, ErrNoAnchor
	}
	if err := n.charge(ctx, p, foreignBlock, 0); err != nil {
		return nil, err
	}
	h := n.LastHead()
	if h.Height == 0 { // genesis is no block, and nothing precedes it
		return canon.Encode(coverSaid{}), nil
	}
	b, err := n.History().Block(h.Height)
	if err != nil {
		return nil, err
	}
	if h.Height <= ask.Above && h.LineageSize > b.Header.LineageSize {
		ctx, cancel := context.WithTimeout(ctx, coverWithin)
		defer cancel()
		if _, err := n.Txn(ctx, scope.Txn{}, Once{Justification: "to prove what came before, for an observer"}); err != nil {
			return nil, err
		}
	}
	return canon.Encode(coverSaid{Height: n.LastHead().Height}), nil
}

// coverElsewhere asks each anchor once, at each height another one first, until one has a block above the height, and
// waits for that block. The error wraps ErrUnread if no anchor makes one that reaches this node.
func (n *Replica) coverElsewhere(ctx context.Context, above aweigh.Height) error {
	anchors := n.epochs.epoch().Roster.Anchors
	why := errors.New("no anchor is known")
	for i := range anchors {
		a := &anchors[(uint64(i)+uint64(above))%uint64(len(anchors))]
		if why = n.coverBy(ctx, a, above); why == nil {
			return nil
		}
		n.log.Debug("an anchor covers nothing", "anchor", a.Name, "above", above, "error", why)
		if ctx.Err() != nil {
			break
		}
	}
	return fmt.Errorf("%w: a proof needs a block above height %d, which this node may not write, and no anchor wrote one for it: %w",
		ErrUnread, above, why)
}

// coverBy asks one anchor.
func (n *Replica) coverBy(ctx context.Context, a *scope.Anchor, above aweigh.Height) error {
	p, err := n.called.id(machine.Peer(a.Peer))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, coverWithin)
	defer cancel()
	raw, err := n.ask(ctx, p, askCover, coverAsk{Above: above}, maxCoverSaid)
	if err != nil {
		return err
	}
	var said coverSaid
	if err := canon.Decode(raw, &said); err != nil {
		return err
	}
	if said.Height <= above {
		return fmt.Errorf("node: %s has no block above height %d", a.Name, above)
	}
	for {
		changed := n.Changed()
		if n.LastHead().Height > above {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("node: no block above height %d comes, which %s has: %w", above, a.Name, context.Cause(ctx))
		}
	}
}
