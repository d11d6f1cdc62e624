package node

import (
	"context"
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
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
	// offerPause is how long a node that made an offer makes none, in multiples of the time that it took: requests for
	// offers must not take more than a tenth of a processor.
	offerPause = 9
)

// serveHeights answers with the snapshots that are of use to the peer. If there is none, one is taken: nodes of an
// idle network all take the same.
func (n *Replica) serveHeights(ask heightsAsk) ([]byte, error) {
	head, far := n.Status().Head.Height, n.cfg.SnapshotBehind
	from := ask.Have + far/2 + 1
	switch {
	case ask.Any:
		from = 0
	case head <= ask.Have || head-ask.Have <= far:
		return nil, fmt.Errorf("node: height %d is too near to yours for a snapshot; ask for the blocks", head)
	}
	all := n.snapshots.from(from)
	if len(all) == 0 && n.takeSnapshot(0) {
		all = n.snapshots.from(from)
	}
	return canon.Encode(heights{All: all}), nil
}

// serveOffer answers with the offer of a snapshot. The offer is made at the first request for it; until it is ready,
// the answer is an offer without parts.
func (n *Replica) serveOffer(ctx context.Context, ask snapshotAsk) ([]byte, error) {
	k := n.snapshots.take(ask.Height)
	if k == nil {
		return nil, n.notHere(ask.Height)
	}
	defer n.snapshots.giveBack(k)
	if offer, _ := n.snapshots.ready(k); offer != nil {
		return offer, nil
	}
	if n.offers.CompareAndSwap(false, true) && !n.of.spawn("snapshot offers", n.makeOffers) {
		n.offers.Store(false) // the node is not running yet
	}
	select {
	case n.snapshots.orders <- k:
	default: // another offer is made first
	}
	wait := time.NewTimer(offerWait)
	defer wait.Stop()
	select {
	case <-k.made:
		offer, _ := n.snapshots.ready(k)
		return offer, nil
	case <-wait.C:
		return canon.Encode(snapshotOffer{}), nil
	case <-n.runner.replies.done:
		return nil, ErrStopped
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (n *Replica) notHere(at aweigh.Height) error {
	return fmt.Errorf("node: no snapshot of height %d here; ask for another", at)
}

// makeOffers makes the offers that were asked for, one at a time.
func (n *Replica) makeOffers(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case k := <-n.snapshots.orders:
			began := time.Now()
			if err := n.makeOffer(ctx, k.at); err != nil && ctx.Err() == nil {
				n.log.Warn("a snapshot cannot be offered", "height", k.at, "error", err)
				n.snapshots.drop(k.at)
			}
			if !n.pause(offerPause * time.Since(began)) {
				return
			}
		}
	}
}

// makeOffer proves the state that a snapshot holds, and names its parts.
func (n *Replica) makeOffer(ctx context.Context, at aweigh.Height) error {
	k := n.snapshots.take(at)
	if k == nil {
		return nil // it was dropped meanwhile
	}
	defer n.snapshots.giveBack(k)
	if offer, _ := n.snapshots.ready(k); offer != nil {
		return nil
	}
	var o snapshotOffer
	var err error
	if at > 0 {
		if err = n.certify(ctx, machine.History{Reader: k.store, Scope: n.id}, at, &o); err != nil {
			return err
		}
	}
	var starts [][]byte
	for more, after := true, []byte(nil); more && ctx.Err() == nil; {
		var p snapshotPart
		if p.Records, more, err = scope.ReadSnapshot(k.store, n.id, after, n.cfg.SnapshotPart); err != nil {
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
	n.snapshots.finished(k, canon.Encode(o), starts)
	n.log.Info("offering a snapshot", "height", at, "parts", len(starts))
	return nil
}

// certify adds to an offer the proof of the state after a block, from h.
func (n *Replica) certify(ctx context.Context, h machine.History, at aweigh.Height, o *snapshotOffer) (err error) {
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
func (n *Replica) servePart(p machine.Peer, ask partAsk) ([]byte, error) {
	if d := n.budgets.WaitGiven(p, n.cfg.SnapshotPart); d > 0 && !n.pause(d) {
		return nil, ErrStopped
	}
	k := n.snapshots.take(ask.Height)
	if k == nil {
		return nil, n.notHere(ask.Height)
	}
	defer n.snapshots.giveBack(k)
	_, after := n.snapshots.ready(k)
	if ask.Number >= uint64(len(after)) {
		return nil, fmt.Errorf("node: part %d of %d", ask.Number, len(after))
	}
	var part snapshotPart
	var err error
	part.Records, _, err = scope.ReadSnapshot(k.store, n.id, after[ask.Number], n.cfg.SnapshotPart)
	n.snapshotGiven.Add(1)
	return canon.Encode(part), err
}
