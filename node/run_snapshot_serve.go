package node

import (
	"context"
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/scope"
)

const (
	askHeights  = "heights/2"   // and a heightsAsk
	askSnapshot = "snapshot/2"  // and a snapshotAsk
	askPart     = "part/2"      // and a partAsk
	askHands    = "handovers/1" // and a handoversAsk

	partBytes = 1 << 20
	maxPart   = 8 << 20 // longest answer that is taken

	// offerWait is how long an answer waits for the offer to be made.
	offerWait = 2 * time.Second
	// restFor is how long a node that made an offer makes none, in multiples of the
	// time that it took: all who ask shall not take more than a tenth of a processor.
	restFor = 9
)

// serveHeights answers with the snapshots that are of use. If there is none, one
// is taken: nodes of a network in which nothing happens all take the same.
func (n *Part) serveHeights(ask heightsAsk) ([]byte, error) {
	head, far := n.Status().Head.Height, n.cfg.SnapshotBehind
	from := ask.Have + far/2 + 1
	switch {
	case ask.Any:
		from = 0
	case head <= ask.Have || head-ask.Have <= far:
		return nil, fmt.Errorf("node: height %d is too near to yours for a snapshot; ask for the blocks", head)
	}
	all := n.shelf.from(from)
	if len(all) == 0 && n.takeSnapshot(0) {
		all = n.shelf.from(from)
	}
	return canon.Encode(heights{All: all}), nil
}

// serveOffer answers with the offer of a snapshot. It is made when somebody asks
// for it first; while that takes, the answer is an offer without parts.
func (n *Part) serveOffer(ctx context.Context, ask snapshotAsk) ([]byte, error) {
	k := n.shelf.take(ask.Height)
	if k == nil {
		return nil, n.notHere(ask.Height)
	}
	defer n.shelf.giveBack(k)
	if offer, _ := n.shelf.ready(k); offer != nil {
		return offer, nil
	}
	if n.offers.CompareAndSwap(false, true) && !n.of.goes(n.makeOffers) {
		n.offers.Store(false) // the node is about to run
	}
	select {
	case n.shelf.orders <- k:
	default: // another is made first
	}
	wait := time.NewTimer(offerWait)
	defer wait.Stop()
	select {
	case <-k.made:
		offer, _ := n.shelf.ready(k)
		return offer, nil
	case <-wait.C:
		return canon.Encode(snapshotOffer{}), nil
	case <-n.runner.replies.done:
		return nil, ErrStopped
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (n *Part) notHere(at aweigh.Height) error {
	return fmt.Errorf("node: there is no snapshot of height %d here; ask for another", at)
}

// makeOffers makes offers that were asked for, one at a time.
func (n *Part) makeOffers(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case k := <-n.shelf.orders:
			began := time.Now()
			if err := n.makeOffer(ctx, k.at); err != nil && ctx.Err() == nil {
				n.log.Warn("a snapshot cannot be offered", "height", k.at, "error", err)
				n.shelf.drop(k.at)
			}
			if !n.pause(restFor * time.Since(began)) {
				return
			}
		}
	}
}

// makeOffer proves the state that a snapshot holds, and names its parts.
func (n *Part) makeOffer(ctx context.Context, at aweigh.Height) error {
	k := n.shelf.take(at)
	if k == nil {
		return nil // it was let go meanwhile
	}
	defer n.shelf.giveBack(k)
	if offer, _ := n.shelf.ready(k); offer != nil {
		return nil
	}
	var o snapshotOffer
	var err error
	if at > 0 {
		if err = n.certify(ctx, History{Reader: k.store, Scope: n.id}, at, &o); err != nil {
			return err
		}
	}
	var starts [][]byte
	for more, after := true, []byte(nil); more && ctx.Err() == nil; {
		var p snapshotPart
		if p.Records, more, err = scope.ReadSnapshot(k.store, n.id, after, n.cfg.partBytes); err != nil {
			return err
		}
		sum := sumOf(canon.Encode(p))
		o.Sums, starts = append(o.Sums, sum[:]...), append(starts, after)
		if len(p.Records) > 0 {
			after = p.Records[len(p.Records)-1].Key
		}
		if len(starts) > maxParts {
			return fmt.Errorf("node: the state is too large for a snapshot of %d parts", maxParts)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	n.shelf.finished(k, canon.Encode(o), starts)
	n.log.Info("offering a snapshot", "height", at, "parts", len(starts))
	return nil
}

// certify puts into an offer what proves the state after a block, which h holds.
func (n *Part) certify(ctx context.Context, h History, at aweigh.Height, o *snapshotOffer) (err error) {
	if o.Block, err = h.Raw(at); err != nil {
		return err
	}
	if n.Status().Head.Height == at {
		if _, err = n.Txn(ctx, scope.Txn{}, Once{Justification: "to prove a snapshot"}); err != nil {
			return err
		}
	}
	if o.Own, err = n.History().Finality(at); err != nil {
		return err
	}
	o.Next, err = n.History().Finality(at + 1)
	return err
}

// servePart answers with records of a snapshot that was offered.
func (n *Part) servePart(p Peer, ask partAsk) ([]byte, error) {
	if d := reserve(n.budgets.of(p).given, time.Now(), n.cfg.partBytes); d > 0 && !n.pause(d) {
		return nil, ErrStopped
	}
	k := n.shelf.take(ask.Height)
	if k == nil {
		return nil, n.notHere(ask.Height)
	}
	defer n.shelf.giveBack(k)
	_, after := n.shelf.ready(k)
	if ask.Number >= uint64(len(after)) {
		return nil, fmt.Errorf("node: part %d of %d", ask.Number, len(after))
	}
	var part snapshotPart
	var err error
	part.Records, _, err = scope.ReadSnapshot(k.store, n.id, after[ask.Number], n.cfg.partBytes)
	n.snapshotGiven.Add(1)
	return canon.Encode(part), err
}
