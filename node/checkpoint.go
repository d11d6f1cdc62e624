package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Checkpoint is the head of a scope's lineage, its proof, and cosignatures.
type Checkpoint struct {
	Ancestry    scope.Ancestry      // to the block whose header names the lineage before it
	Consistency lineage.Consistency // with an older head, if one was named
	Cosigned    []votes.Cosignature // by anchors, in the roster's order
}

// cosignWithin is how long anchors have to cosign.
const cosignWithin = 2 * time.Second

// Checkpoint returns a checkpoint of the scope's lineage with everything that was final at the call, and consistent
// with the first old entries. If cosign is set, the anchors are asked to sign it; those that do not sign in time are
// left out. If no later block covers the newest entries yet, Checkpoint proposes an empty transaction, so that one
// will.
func (n *Replica) Checkpoint(ctx context.Context, old int64, cosign bool) (c Checkpoint, head scope.Head, err error) {
	least := int64(-1)
	err = n.covered(ctx, func(v *View) error {
		head = v.Head()
		if least < 0 {
			least = head.LineageSize
		}
		if c.Ancestry, err = n.prover(ctx, v).Ancestry(0); err != nil {
			return err
		}
		size := c.Ancestry.Head.Header.LineageSize
		if size < least {
			return machine.ErrUncovered
		}
		if old <= size { // a larger head is of another log, to which there is no proof of consistency
			c.Consistency, err = v.State.Lineage().ProveConsistency(old, size)
		}
		return err
	})
	if err == nil && cosign {
		c.Cosigned = n.cosigned(ctx, &c.Ancestry.Head.Header)
	}
	return c, head, err
}

// cosigned asks the anchors of this epoch to cosign the lineage that a final header names.
func (n *Replica) cosigned(ctx context.Context, h *scope.Header) (by []votes.Cosignature) {
	ctx, cancel := context.WithTimeout(ctx, cosignWithin)
	defer cancel()
	anchors := n.epochs.epoch().Roster.Anchors
	got := make([]*votes.Cosignature, len(anchors))
	text := h.Checkpoint().Text()
	var asking sync.WaitGroup
	for i := range anchors {
		asking.Go(func() {
			c, err := n.cosignatureOf(ctx, &anchors[i], h.Height)
			if err == nil {
				err = c.Check(text)
			}
			if err != nil {
				n.log.Debug("an anchor does not cosign", "anchor", anchors[i].Name, "height", h.Height, "error", err)
				return
			}
			got[i] = &c
		})
	}
	asking.Wait()
	for _, c := range got {
		if c != nil {
			by = append(by, *c)
		}
	}
	return by
}

func (n *Replica) cosignatureOf(ctx context.Context, a *scope.Anchor, at aweigh.Height) (c votes.Cosignature, err error) {
	if key := n.anchor.Load(); key != nil && key.Public().ID() == a.Key.ID() {
		return n.cosign(ctx, at)
	}
	p, err := n.called.id(machine.Peer(a.Peer))
	if err != nil {
		return c, err
	}
	raw, err := n.ask(ctx, p, askCosign, cosignAsk{Height: at}, maxCosigned)
	if err != nil {
		return c, err
	}
	var got cosigned
	if err := canon.Decode(raw, &got); err != nil {
		return c, err
	}
	return votes.Cosignature{Key: a.Key, Time: got.Time, Signature: got.Signature}, nil
}

// askCosign asks an anchor to cosign the lineage before a final block. A cosignAsk follows.
const askCosign = "cosign/1"

// maxCosigned bounds an answer, in bytes. cosignCost is what a peer pays for one, in bytes that it is given: a block
// has to be read.
const (
	maxCosigned = 1 << 10
	cosignCost  = 256 << 10
)

type cosignAsk struct {
	_      struct{} `cbor:",toarray"`
	Height aweigh.Height
}

type cosigned struct {
	_         struct{} `cbor:",toarray"`
	Time      int64
	Signature []byte
}

// serveCosign cosigns for a peer, at the cost of its budget.
func (n *Replica) serveCosign(ctx context.Context, p machine.Peer, ask cosignAsk) ([]byte, error) {
	if d := n.budgets.WaitGiven(p, cosignCost); d > 0 && !n.pause(d) {
		return nil, ErrStopped
	}
	ctx, cancel := context.WithTimeout(ctx, cosignWithin)
	defer cancel()
	c, err := n.cosign(ctx, ask.Height)
	if err != nil {
		return nil, err
	}
	return canon.Encode(cosigned{Time: c.Time, Signature: c.Signature}), nil
}

// errSuperseded means that a head was replaced as the newest too long ago.
var errSuperseded = errors.New("node: this is not the head of the history any more; ask for that of a newer block")

// wasHead returns when the block at a height was last the newest, as far as this node knows: a cosignature states that
// at its time there was no longer history. The node does not keep which peer asked for which head, so no request for a
// newer head can prevent the cosignature of another.
func (n *Replica) wasHead(at aweigh.Height) (aweigh.Instant, error) {
	now := n.runner.now()
	if at >= n.Status().Head.Height {
		return now, nil
	}
	next, err := n.History().Block(at + 1)
	if err != nil {
		return 0, err
	}
	return headUntil(now, next.Header.Time)
}

// headUntil is wasHead for a block that has a next one, with the time next.
func headUntil(now, next aweigh.Instant) (aweigh.Instant, error) {
	if now.Sub(next) > 2*cosignWithin {
		return 0, errSuperseded
	}
	return min(now, next), nil
}

// cosign signs, with this node's anchor key, the lineage that the block at a height names, once that block is final
// here.
func (n *Replica) cosign(ctx context.Context, at aweigh.Height) (c votes.Cosignature, err error) {
	key := n.anchor.Load()
	if key == nil {
		return c, ErrNoAnchor
	}
	if _, seated := n.epochs.epoch().Roster.Seat(key.Public().ID()); !seated {
		return c, ErrUnseated
	}
	for {
		changed, head := n.Changed(), n.Status().Head.Height
		b, err := n.History().Block(at)
		if err == nil {
			then, err := n.wasHead(at)
			if err != nil {
				return c, err
			}
			return votes.Cosign(*key, b.Header.Checkpoint().Text(), then.Time().Unix())
		}
		if !errors.Is(err, machine.ErrNoBlock) || at <= head {
			return c, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return c, ctx.Err()
		}
	}
}
