package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
)

// SnapshotProgress says how far a snapshot has been fetched.
type SnapshotProgress struct {
	Height aweigh.Height
	Peers  []machine.Peer // that give it at present
	Parts  uint64         // parts that are here
	Of     uint64         // all parts; 0 until their number is known
	Bytes  uint64         // of the parts that are here
}

const (
	maxHeights    = 1 << 10          // bytes of an answer that names them
	askedAtOnce   = 16               // peers that are asked what they offer
	offerGrace    = time.Minute      // for the other offers, once the first is there: a lie is made faster than a pass
	offerPatience = 10 * time.Minute // for an offer that is being made: a pass over the peer's state
)

// watchLag checks whether a replica is too far behind to fetch blocks, and if so has a snapshot fetched. It also drops
// snapshots that are offered but no longer used. One goroutine does this for all replicas: there may be thousands at
// rest.
func (n *Node) watchLag(ctx context.Context) {
	tick := time.NewTicker(n.cfg.snapshotEvery)
	defer tick.Stop()
	var fetching sync.WaitGroup
	defer fetching.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		n.mu.RLock()
		for _, p := range n.replicas {
			p.snapshots.sweep()
			if (p.begun.Load() || p.runner.stand.Load().Far) && !p.vacant.Load() && p.catching.CompareAndSwap(false, true) {
				fetching.Go(func() { p.catchUpBySnapshot(ctx) })
			}
		}
		n.mu.RUnlock()
	}
}

// catchUpBySnapshot fetches a snapshot if one is still needed.
func (n *Replica) catchUpBySnapshot(ctx context.Context) {
	defer n.catching.Store(false)
	err := n.fetchSnapshot(ctx)
	n.begun.Store(err != nil)
	if err != nil && ctx.Err() == nil {
		n.log.Warn("catching up by snapshot failed; it is tried again", "error", err)
	}
	n.fetching.Store(nil)
}

// fetchSnapshot continues with the snapshot that was begun, or begins one if need be.
func (n *Replica) fetchSnapshot(ctx context.Context) error {
	s := n.Status()
	offer, begun, err := storedOffer(n.cfg.Store, n.id)
	if err != nil || !s.Far && !begun {
		return err
	}
	f, from, err := n.beginFetch(ctx, offer, begun, s.Head.Height)
	if err != nil {
		return err
	}
	if err := n.fetched(ctx, f, from); err != nil {
		return err
	}
	return n.runner.install(ctx, f.at)
}

// beginFetch continues with a snapshot that was begun, or begins one.
func (n *Replica) beginFetch(ctx context.Context, offer snapshotOffer, begun bool, have aweigh.Height) (f *fetch, from []peer.ID, err error) {
	if !begun {
		if offer, from, err = n.beginSnapshot(ctx, have); err != nil {
			return nil, nil, err
		}
	}
	f, err = newFetch(n, &offer)
	return f, from, err
}

// fetched fetches a snapshot to its end, or drops it.
func (n *Replica) fetched(ctx context.Context, f *fetch, from []peer.ID) error {
	n.log.Info("catching up by snapshot", "height", f.at, "peers", len(from), "parts", f.offer.parts(), "here", f.count)
	if err := f.run(ctx, from); err != nil {
		if ctx.Err() != nil || errors.Is(err, ErrStopped) {
			return err
		}
		if errors.Is(err, machine.ErrSnapshot) { // the claims of all peers that offered it were false
			for p := range f.offered {
				n.exclude(p)
			}
			n.snapshotLies.Add(1)
		}
		return errors.Join(err, dropOffer(n.cfg.Store, n.id))
	}
	return nil
}

// exclude remembers and blames a peer that gave no good snapshot.
func (n *Replica) exclude(p peer.ID) {
	n.excluded[p] = true
	n.host.Blame(p)
}

// candidates returns the connected peers that may be asked, anchors first.
func (n *Replica) candidates() (peers []peer.ID) {
	for _, p := range n.host.Peers() {
		if !n.excluded[p.ID] {
			peers = append(peers, p.ID)
		}
	}
	rand.Shuffle(len(peers), func(i, j int) { peers[i], peers[j] = peers[j], peers[i] })
	slices.SortStableFunc(peers, func(a, b peer.ID) int { return n.rank(a) - n.rank(b) })
	return peers
}

func (n *Replica) rank(p peer.ID) int {
	if n.epochs.Anchor(machine.Peer(p.String())) {
		return 0
	}
	return 1
}

// beginSnapshot finds a snapshot of which as many peers as possible make the same offer, and returns it with these
// peers.
func (n *Replica) beginSnapshot(ctx context.Context, have aweigh.Height) (o snapshotOffer, from []peer.ID, err error) {
	peers := n.candidates()
	at, from := n.commonHeight(ctx, peers[:min(len(peers), askedAtOnce)], have)
	if len(from) > 0 {
		o, from = n.agreedOffer(ctx, at, from)
	}
	if len(from) > 0 {
		if err = dropParts(n.cfg.Store, n.id); err == nil {
			err = n.cfg.Store.Commit([]kv.Op{kv.Set(machine.KeyJob(n.id), canon.Encode(o))}, true)
		}
		return o, from, err
	}
	clear(n.excluded) // next time all are asked again
	if n.vacant.Load() {
		return o, nil, errors.New("node: no peer has a snapshot of the scope to offer")
	}
	select {
	case n.runner.events <- machine.Stepwise{}:
	case <-n.runner.replies.done:
	case <-ctx.Done():
	}
	return o, nil, errors.New("node: no peer has a snapshot to offer; blocks are fetched")
}

// commonHeight asks which snapshots are available. It returns the height that most peers have, anchors before others,
// and of several such heights the newest, with the peers.
func (n *Replica) commonHeight(ctx context.Context, peers []peer.ID, have aweigh.Height) (best aweigh.Height, from []peer.ID) {
	found := make([]heights, len(peers))
	var asking sync.WaitGroup
	for i, p := range peers {
		asking.Go(func() {
			raw, err := n.ask(ctx, p, askHeights, heightsAsk{Have: have, Any: n.vacant.Load()}, maxHeights)
			if err == nil {
				_ = canon.Decode(raw, &found[i]) // a bad answer offers nothing
			}
		})
	}
	asking.Wait()
	offers := make(map[aweigh.Height][]peer.ID)
	for i, p := range peers {
		for _, at := range found[i].All[:min(len(found[i].All), mostKept)] {
			if (at > have || n.vacant.Load()) && !slices.Contains(offers[at], p) {
				offers[at] = append(offers[at], p)
			}
		}
	}
	most := 0
	for at, some := range offers { // order-free: of equal ones the newest
		if by := n.support(some); by > most || by == most && at > best {
			best, from, most = at, some, by
		}
	}
	return best, from
}

// support compares what groups of peers say: the group with more anchors has more, whatever others there are, and then
// the larger one. Identities of other peers cost nothing.
func (n *Replica) support(peers []peer.ID) (by int) {
	for _, p := range peers {
		by += 1 + 1000*(1-n.rank(p))
	}
	return by
}

// offered is a peer's offer that was checked.
type offered struct {
	from  peer.ID
	offer snapshotOffer
	err   error
}

// same reports whether two offers have the same parts.
func (o *snapshotOffer) same(other *snapshotOffer) bool {
	return string(o.Block) == string(other.Block) && string(o.Sums) == string(other.Sums)
}

// agreedOffer asks peers for their offers of one height, and returns the one that most of them make, anchors before
// others. A false offer that only one peer makes is not chosen as long as other peers are asked.
func (n *Replica) agreedOffer(ctx context.Context, at aweigh.Height, peers []peer.ID) (best snapshotOffer, from []peer.ID) {
	ctx, cancel := context.WithTimeout(ctx, offerPatience)
	defer cancel()
	all := make(chan offered, len(peers))
	var asking sync.WaitGroup
	for _, p := range peers {
		asking.Go(func() { all <- n.askOffer(ctx, p, at, true) })
	}
	began := time.Now()
	var good []offered
	var grace <-chan time.Time
	for left := len(peers); left > 0; {
		select {
		case o := <-all:
			left--
			if errors.Is(o.err, machine.ErrSnapshot) {
				n.exclude(o.from)
			} else if o.err == nil {
				good = append(good, o)
				if grace == nil {
					grace = time.After(max(offerGrace, time.Since(began))) // all have the same work to do
				}
			}
		case <-grace:
			cancel() // the others end with an error
			grace = nil
		}
	}
	asking.Wait()
	most := 0
	for _, a := range good {
		var alike []peer.ID
		for _, b := range good {
			if a.offer.same(&b.offer) {
				alike = append(alike, b.from)
			}
		}
		if by := n.support(alike); by > most {
			best, from, most = a.offer, alike, by
		}
	}
	if len(from) == 0 {
		for _, p := range peers { // these peers have it but do not give it
			n.excluded[p] = true
		}
	}
	return best, from
}

// askOffer asks a peer for its offer. If wait is set, it asks again while the offer is being made.
func (n *Replica) askOffer(ctx context.Context, p peer.ID, at aweigh.Height, wait bool) (o offered) {
	o.from = p
	for {
		raw, err := n.ask(ctx, p, askSnapshot, snapshotAsk{Height: at}, maxPart)
		if err != nil {
			o.err = err
			return o
		}
		o.offer = snapshotOffer{}
		if err := canon.Decode(raw, &o.offer); err != nil {
			o.err = fmt.Errorf("%w: %w", machine.ErrSnapshot, err)
			return o
		}
		if len(o.offer.Sums) > 0 {
			break
		}
		if o.err = errNotMade; !wait || !n.pauseFor(ctx, time.Second) {
			return o
		}
	}
	o.err = n.checkOffer(ctx, p, &o.offer)
	if got := o.offer.height(); o.err == nil && got != at {
		o.err = fmt.Errorf("%w: of height %d, where %d was asked for", machine.ErrSnapshot, got, at)
	}
	return o
}

var errNotMade = errors.New("node: the offer is not made yet")
