package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Checkpoint is the head of a scope's lineage, what proves it, and who cosigned it.
type Checkpoint struct {
	Ancestry    scope.Ancestry      // to the block whose header names the lineage before it
	Consistency lineage.Consistency // with an older head, if one was named
	Cosigned    []votes.Cosignature // by anchors, in the roster's order
}

// cosignWithin is how long anchors have to cosign.
const cosignWithin = 2 * time.Second

// Checkpoint is of the lineage of the scope with all that was final when it was asked
// for, and consistent with its first old entries. If cosign is set, the anchors are asked
// to sign it; those that do not in time are left out. Where no later block covers the
// newest entries yet, it proposes an empty transaction, so that one will.
func (n *Part) Checkpoint(ctx context.Context, old int64, cosign bool) (c Checkpoint, head scope.Head, err error) {
	least := int64(-1)
	err = n.covered(ctx, func(v *View) error {
		head = v.Head()
		if least < 0 {
			least = head.LineageSize
		}
		if c.Ancestry, err = n.ancestry(ctx, v, 0); err != nil {
			return err
		}
		size := c.Ancestry.Head.Header.LineageSize
		if size < least {
			return errUncovered
		}
		if old <= size { // else it is of another log, and nothing shows what is not so
			c.Consistency, err = v.State.Lineage().ProveConsistency(old, size)
		}
		return err
	})
	if err == nil && cosign {
		c.Cosigned = n.cosigned(ctx, &c.Ancestry.Head.Header)
	}
	return c, head, err
}

// cosigned asks the anchors of this epoch to cosign what a final header names.
func (n *Part) cosigned(ctx context.Context, h *scope.Header) (by []votes.Cosignature) {
	ctx, cancel := context.WithTimeout(ctx, cosignWithin)
	defer cancel()
	anchors := n.roll.epoch().Roster.Anchors
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

func (n *Part) cosignatureOf(ctx context.Context, a *scope.Anchor, at aweigh.Height) (c votes.Cosignature, err error) {
	if key := n.anchor.Load(); key != nil && key.Public().ID() == a.Key.ID() {
		return n.cosign(ctx, at)
	}
	p, err := n.called.id(Peer(a.Peer))
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

// askCosign asks an anchor to cosign the lineage before a final block; a cosignAsk follows.
const askCosign = "cosign/1"

// maxCosigned bounds an answer, in bytes; cosignCost is what a peer pays for one, in bytes
// that it is given: a block has to be read.
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

// serveCosign cosigns for a peer, from its budget.
func (n *Part) serveCosign(ctx context.Context, p Peer, ask cosignAsk) ([]byte, error) {
	if d := reserve(n.budgets.of(p).given, time.Now(), cosignCost); d > 0 && !n.pause(d) {
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

// errSuperseded means that a head has not been the newest for long.
var errSuperseded = errors.New("node: this is not the head of the history any more; ask for that of a newer block")

// wasHead is when the block at a height was the newest last, as far as this node knows: a
// cosignature says that by its time there was no longer history. It is not kept who asked
// for what, so that nobody who asks for a newer head keeps others from what they ask for.
func (n *Part) wasHead(at aweigh.Height) (aweigh.Instant, error) {
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

// headUntil is wasHead where the next block has a time.
func headUntil(now, next aweigh.Instant) (aweigh.Instant, error) {
	if now.Sub(next) > 2*cosignWithin {
		return 0, errSuperseded
	}
	return min(now, next), nil
}

// cosign signs with this node's anchor key what the block at a height names, once it is
// final here.
func (n *Part) cosign(ctx context.Context, at aweigh.Height) (c votes.Cosignature, err error) {
	key := n.anchor.Load()
	if key == nil {
		return c, ErrNoAnchor
	}
	if _, seated := n.roll.epoch().Roster.Seat(key.Public().ID()); !seated {
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
		if !errors.Is(err, ErrNoBlock) || at <= head {
			return c, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return c, ctx.Err()
		}
	}
}
