package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/scope"
)

// A node holds the scopes that it anchors and those that it follows. Any other it reaches
// by referral: the scope above says who governs it, and its own handovers who does now
// (docs/scopes.md). What its anchors answer counts if more of their weight says so than
// may lie, so that nobody's word is taken for it: not the scope's above, and not that of
// whoever answers.

// ErrNotHeld is wrapped where something is asked for that only a node does which holds
// the scope.
var ErrNotHeld = errors.New("node: this node does not hold the scope")

// foreign is a scope that this node does not hold, and asks.
type foreign struct {
	of      *Node
	genesis scope.Genesis
	id      aweigh.ScopeID
	address address

	mu       sync.Mutex
	knows    *ForeignScope // guarded by mu, but for what never changes
	used     time.Time
	pace     pace
	settling chan struct{} // holds a token while handovers are fetched
	pulse    pulse
}

// foreigners are the scopes that a node does not hold and knows of.
type foreigners struct {
	taps atomic.Int64 // that are open

	mu  sync.Mutex
	all map[place]*foreign
}

func (n *Node) foreign(id aweigh.ScopeID) *foreign {
	n.foreigners.mu.Lock()
	defer n.foreigners.mu.Unlock()
	return n.foreigners.all[placeOf(id)]
}

// maxForeign bounds the scopes that a node knows of and does not hold.
const maxForeign = 1 << 14

// refer makes a scope known that this node does not hold. What it keeps of a scope's
// epochs it goes on from.
func (n *Node) refer(g scope.Genesis) (*foreign, error) {
	id := g.Hash()
	if f := n.foreign(id); f != nil {
		return f, nil
	}
	knows, err := NewForeignScope(g, n.cfg.Store)
	if err != nil {
		return nil, err
	}
	f := &foreign{of: n, genesis: g, id: id, address: addressOf(id), knows: knows, settling: make(chan struct{}, 1)}
	n.foreigners.mu.Lock()
	defer n.foreigners.mu.Unlock()
	if other := n.foreigners.all[placeOf(id)]; other != nil {
		return other, nil
	}
	if n.foreigners.all == nil {
		n.foreigners.all = make(map[place]*foreign)
	}
	if len(n.foreigners.all) >= maxForeign {
		return nil, fmt.Errorf("node: scope %q: this node knows of %d scopes that it does not hold, and has no room for more; let it follow the one above", g.Prefix(), maxForeign)
	}
	n.foreigners.all[placeOf(id)] = f
	return f, nil
}

// holds reports whether this node is to have a part in a scope: it follows it, or
// holds an anchor there, by all that it knows. A node that holds a scope holds those above.
func (n *Node) holds(g *scope.Genesis) (bool, error) {
	if n.cfg.Follow == nil {
		return true, nil
	}
	prefix := g.Prefix()
	for _, p := range n.cfg.Follow {
		if len(p) > 0 && (scope.Covers(p, prefix, nil) || scope.Covers(prefix, p, nil)) {
			return true, nil
		}
	}
	for _, p := range n.seats {
		if scope.Covers(prefix, p, nil) {
			return true, nil
		}
	}
	key := n.anchor.Load()
	if key == nil {
		return false, nil
	}
	e, err := g.Epoch()
	if err != nil {
		return false, err
	}
	if _, first := e.Roster.Seat(key.Public().ID()); first {
		return true, nil
	}
	return n.sits(g.Hash())
}

// sits reports whether this node's anchor has a seat in a scope, by what the store has.
func (n *Node) sits(id aweigh.ScopeID) (bool, error) {
	key := n.anchor.Load()
	_, _, meta := scope.Clear(id)
	if _, stored, err := n.cfg.Store.Get(meta); err != nil || !stored || key == nil {
		return false, err
	}
	s, err := scope.Open(n.cfg.Store, id)
	if err != nil {
		return false, err
	}
	e, err := s.Epoch()
	if err != nil {
		return false, err
	}
	_, ok := e.Roster.Seat(key.Public().ID())
	return ok, nil
}

// named reports whether an order of a scope that this node holds names its anchor: it is to hold the scope
// that it is about, and fetches the state before the notice is over.
func (n *Node) named(r *scope.Revocation) bool {
	key := n.anchor.Load()
	if r == nil || key == nil {
		return false
	}
	id := key.Public().ID()
	return slices.ContainsFunc(r.Child.Anchors, func(a scope.Anchor) bool { return a.Key.ID() == id })
}

// findSeats finds the scopes below those that the store has in which this node's anchor has
// a seat, so that it holds the way there, whatever it follows.
func (n *Node) findSeats(id aweigh.ScopeID) error {
	_, _, meta := scope.Clear(id)
	if _, stored, err := n.cfg.Store.Get(meta); err != nil || !stored {
		return err
	}
	s, err := scope.Open(n.cfg.Store, id)
	if err != nil {
		return err
	}
	all, err := s.Delegations()
	if err != nil {
		return err
	}
	for _, d := range all {
		ok, err := n.sits(d.Child)
		if err == nil && (ok || n.named(d.Revocation)) {
			n.seats = append(n.seats, d.Prefix)
		}
		if err == nil {
			err = n.findSeats(d.Child)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// notHeld says that only a node that holds the scope does what is asked for.
func (f *foreign) notHeld() error {
	return fmt.Errorf("%w of %q, with %d anchors: it passes on what reads, writes and watches keys, names and histories; for anything else ask a node that holds it, or start this one with --follow %s",
		ErrNotHeld, f.genesis.Prefix(), len(f.known().Roster.Anchors), f.genesis.Prefix())
}

// known is the newest epoch that is proven.
func (f *foreign) known() *scope.Epoch {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.knows.Epoch()
}

// time is the node's clock, or the scope's time if that is ahead, by what more of its anchors' weight said than may lie.
func (f *foreign) time() aweigh.Instant {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(f.of.runner.now(), f.knows.time())
}

// delegations are those that are known.
func (f *foreign) delegations() []scope.Delegation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.knows.Delegations()
}

// foreignIdle is how long after its last use this node stays connected with a scope's anchors.
const foreignIdle = 10 * time.Minute

// use notes that the scope is asked for something, so that its anchors are connected with.
func (f *foreign) use() {
	f.mu.Lock()
	now := time.Now()
	fresh := now.Sub(f.used) > foreignIdle
	if fresh || now.Sub(f.used) > time.Second {
		f.used = now
	}
	f.mu.Unlock()
	if fresh {
		f.of.meetMembers()
	}
}

// members are the nodes of the scope's anchors, if it was used lately.
func (f *foreign) members() (ids []peer.ID) {
	f.mu.Lock()
	e, idle := f.knows.Epoch(), time.Since(f.used) > foreignIdle
	f.mu.Unlock()
	if idle {
		return nil
	}
	for _, a := range e.Roster.Anchors {
		if id, err := f.of.called.id(Peer(a.Peer)); err == nil && string(f.of.called.of(id)) != f.of.peerID {
			ids = append(ids, id)
		}
	}
	return ids
}

// info is what is known of the scope: its epoch, and where it stood when it answered last.
func (f *foreign) info() ScopeInfo {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.knows.last
	last.Epoch = f.knows.Epoch().Number
	return ScopeInfo{Genesis: f.genesis, Head: f.knows.head(&last), Epoch: f.knows.Epoch()}
}

// infos are what is known of the scopes.
func (n *foreigners) infos() (all []ScopeInfo) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range n.all {
		all = append(all, f.info())
	}
	slices.SortFunc(all, func(a, b ScopeInfo) int { return bytes.Compare(a.Genesis.Prefix(), b.Genesis.Prefix()) })
	return all
}

// inUse are the members of all scopes that were used lately.
func (n *foreigners) inUse() (ids []peer.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range n.all {
		ids = append(ids, f.members()...)
	}
	return ids
}

// settleIn is how long a peer has to prove an epoch.
const settleIn = 2 * time.Second

// settle moves on to the epoch that a peer says the scope is in, if it proves that in time.
func (f *foreign) settle(ctx context.Context, p peer.ID, to aweigh.Epoch) error {
	select {
	case f.settling <- struct{}{}:
		defer func() { <-f.settling }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, settleIn)
	defer cancel()
	known := f.known()
	if known.Number >= to {
		return nil // another did
	}
	e, err := follow(f.of.cfg.Store, f.id, known, to, func(above aweigh.Height) ([]byte, error) {
		return f.request(ctx, p, askHands, handoversAsk{Above: above}, maxPart)
	})
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.knows.Enter(e)
	f.mu.Unlock()
	f.of.meetMembers()
	return nil
}

// giversAsked is how many peers are asked who governs a scope whose anchors are silent.
const giversAsked = 8

// catchUp asks other peers who governs the scope by now: those that hold it have its handovers, which
// prove themselves, though they are no anchors of its. It reports whether the scope has gone on.
func (f *foreign) catchUp(ctx context.Context) bool {
	known := f.known()
	peers := f.of.host.Peers()
	for _, p := range peers[:min(len(peers), giversAsked)] {
		if f.known().Number > known.Number {
			break // another did
		}
		asking, cancel := context.WithTimeout(ctx, settleIn)
		raw, err := f.request(asking, p.ID, askHands, handoversAsk{Above: known.Start}, maxPart)
		cancel()
		var hands []scope.Handover
		if err == nil && canon.Decode(raw, &hands) == nil && len(hands) > 0 && len(hands) <= HandoversAtOnce {
			_ = f.settle(ctx, p.ID, known.Number+aweigh.Epoch(len(hands))) // what it does not prove is nothing
		}
	}
	return f.known().Number > known.Number
}

// learn takes the scope's referrals for some keys, and makes the scopes known to which they
// lead.
func (f *foreign) learn(ctx context.Context, ranges Ranges) error {
	keys := foreignKeys(ranges)
	_, err := f.ask(ctx, ForeignAsk{Kind: ForeignRefer, Body: canon.Encode(keys)}, func(body []byte) error {
		all, err := DecodeReferrals(body)
		if err != nil {
			return err
		}
		given, err := f.knows.Check(f.of.cfg.Store, f.known(), all, &keys)
		if err != nil {
			return err
		}
		for i := range all {
			if _, err := f.of.refer(all[i].Child); err != nil {
				return err
			}
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, d := range given {
			f.knows.Learn(d)
		}
		return nil
	})
	return err
}

// named is a scope by its prefix, nil if none that is foreign has it.
func (n *foreigners) named(prefix string) *foreign {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range n.all {
		if string(f.genesis.Prefix()) == prefix {
			return f
		}
	}
	return nil
}
