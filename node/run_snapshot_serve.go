package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
)

const (
	askSnapshot = "snapshot/1" // and a snapshotAsk
	askPart     = "part/1"     // and a partAsk

	partBytes    = 1 << 20
	maxPart      = 8 << 20          // longest answer that is taken
	keepSnapshot = 10 * time.Minute // since it was used last
	holdSnapshot = time.Minute      // before another may take its place
)

// shelf holds the one snapshot that this node offers.
type shelf struct {
	making sync.Mutex // held by who makes one

	mu    sync.Mutex // guards the rest, and is held while the snapshot is read
	kept  store.Snapshot
	at    aweigh.Height
	offer []byte
	used  time.Time
}

// stale reports whether nobody has used the snapshot for a while.
func (s *shelf) stale(d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept == nil || time.Since(s.used) > d
}

// put replaces the snapshot; nil only closes the old one.
func (s *shelf) put(kept store.Snapshot, at aweigh.Height, offer []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept != nil {
		_ = s.kept.Close()
	}
	s.kept, s.at, s.offer, s.used = kept, at, offer, time.Now()
}

// found is the offer that is there, if it is of use.
func (s *shelf) found(above aweigh.Height) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil || s.at <= above {
		return nil
	}
	s.used = time.Now()
	return s.offer
}

// serveOffer answers with a proof of the state that this node will give. It takes
// a snapshot of the store if there is none that helps.
func (n *Node) serveOffer(ctx context.Context, ask snapshotAsk) ([]byte, error) {
	n.shelf.making.Lock()
	defer n.shelf.making.Unlock()
	head := n.Status().Head.Height
	if head <= ask.Have || head-ask.Have <= n.cfg.SnapshotBehind {
		return nil, fmt.Errorf("node: height %d is too near to yours for a snapshot; ask for the blocks", head)
	}
	if offer := n.shelf.found(ask.Have + n.cfg.SnapshotBehind/2); offer != nil {
		return offer, nil
	}
	if !n.shelf.stale(holdSnapshot) {
		return nil, fmt.Errorf("node: gives another snapshot at present; ask another node")
	}
	for {
		kept := n.cfg.Store.Snapshot()
		at, offer, err := n.makeOffer(ctx, History{Reader: kept, Scope: n.id})
		if err == nil {
			n.shelf.put(kept, at, offer)
			n.log.Info("offering a snapshot", "height", at)
			return offer, nil
		}
		if closeErr := kept.Close(); closeErr != nil || !errors.Is(err, ErrNoBlock) {
			return nil, errors.Join(err, closeErr)
		}
	}
}

// makeOffer proves the state that a snapshot of the store holds. The error wraps
// ErrNoBlock if another try may go better.
func (n *Node) makeOffer(ctx context.Context, h History) (at aweigh.Height, raw []byte, err error) {
	state, err := scope.Open(h.Reader, n.id)
	if err != nil {
		return 0, nil, err
	}
	at = state.Height()
	var o snapshotOffer
	if o.Block, err = h.Raw(at); err != nil {
		return 0, nil, err
	}
	if o.Own, err = h.Certificate(at); err != nil {
		return 0, nil, err
	}
	if _, err = n.History().Block(at + 1); errors.Is(err, ErrNoBlock) || o.Own.IsZero() {
		if _, err = n.Txn(ctx, scope.Txn{}, Once{Justification: "to prove a snapshot"}); err != nil {
			return 0, nil, err
		}
	}
	if o.Own.IsZero() {
		return 0, nil, fmt.Errorf("%w: block %d has no certificate of its own", ErrNoBlock, at)
	}
	if o.Next, err = n.History().Finality(at + 1); err != nil {
		return 0, nil, err
	}
	return at, canon.Encode(o), nil
}

// servePart answers with records of the snapshot that was offered.
func (n *Node) servePart(p Peer, ask partAsk) ([]byte, error) {
	if d := reserve(n.budgets.of(p).given, time.Now(), n.cfg.partBytes); d > 0 && !n.pause(d) {
		return nil, ErrStopped
	}
	s := &n.shelf
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil || s.at != ask.Height {
		return nil, fmt.Errorf("node: the snapshot of height %d is not here any more; ask for another", ask.Height)
	}
	s.used = time.Now()
	var part snapshotPart
	var err error
	if len(ask.After) == 0 {
		ask.After = nil
	}
	part.Records, part.More, err = scope.ReadSnapshot(s.kept, n.id, ask.After, n.cfg.partBytes)
	if err != nil || len(part.Records) == 0 {
		return nil, errors.Join(err, fmt.Errorf("node: nothing follows %x", ask.After))
	}
	return canon.Encode(part), nil
}
