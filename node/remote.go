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
	"github.com/aweigh/aweigh/node/admission"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// A node holds the scopes in which it is an anchor and those that it follows. It reaches any other scope by referral:
// the parent scope names the scope's first government, and the scope's own handovers prove the present one
// (docs/scopes.md). An answer counts if anchors with more weight than may lie gave it, so no single node is trusted,
// neither in the parent scope nor among the anchors that answer.

// ErrNotHeld is wrapped where only a node that holds the scope can do what is asked for.
var ErrNotHeld = errors.New("node: this node does not hold the scope")

// remoteScope is a scope that this node does not hold, and whose anchors it asks.
type remoteScope struct {
	of      *Node
	genesis scope.Genesis
	id      aweigh.ScopeID
	address address

	mu       sync.Mutex
	knows    *referral.Scope // guarded by mu, except what never changes
	used     time.Time
	pace     admission.Pace
	settling chan struct{} // holds a token while handovers are fetched
	poller   poller
}

// remoteScopes holds the scopes that a node knows but does not hold.
type remoteScopes struct {
	taps atomic.Int64 // that are open

	mu  sync.Mutex
	all map[place]*remoteScope
}

func (n *Node) foreign(id aweigh.ScopeID) *remoteScope {
	n.remotes.mu.Lock()
	defer n.remotes.mu.Unlock()
	return n.remotes.all[placeOf(id)]
}

// maxForeign bounds the scopes that a node knows of and does not hold.
const maxForeign = 1 << 14

// refer makes known a scope that this node does not hold. It continues from the epochs of the scope that the store
// has.
func (n *Node) refer(g scope.Genesis) (*remoteScope, error) {
	id := g.Hash()
	if f := n.foreign(id); f != nil {
		return f, nil
	}
	knows, err := referral.NewScope(g, n.cfg.Store)
	if err != nil {
		return nil, err
	}
	f := &remoteScope{of: n, genesis: g, id: id, address: addressOf(id), knows: knows, settling: make(chan struct{}, 1)}
	n.remotes.mu.Lock()
	defer n.remotes.mu.Unlock()
	if other := n.remotes.all[placeOf(id)]; other != nil {
		return other, nil
	}
	if n.remotes.all == nil {
		n.remotes.all = make(map[place]*remoteScope)
	}
	if len(n.remotes.all) >= maxForeign {
		return nil, fmt.Errorf("node: scope %q: this node knows of %d scopes that it does not hold, and has no room for more; let it follow the one above", g.Prefix(), maxForeign)
	}
	n.remotes.all[placeOf(id)] = f
	return f, nil
}

// holds reports whether this node is to have a replica in a scope: it follows the scope, or holds an anchor there, as
// far as it knows. A node that holds a scope holds those above it. One that follows all follows those that let it read
// when they were founded.
func (n *Node) holds(g *scope.Genesis) (bool, error) {
	if n.cfg.Follow == nil && g.Policy.Open() {
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
	if key == nil && n.cfg.Follow != nil {
		return false, nil
	}
	e, err := g.Epoch()
	if err != nil {
		return false, err
	}
	if n.cfg.Follow == nil && e.Readers(n.cfg.Identity.Public().ID()).All() {
		return true, nil
	}
	if key == nil {
		return false, nil
	}
	if _, first := e.Roster.Seat(key.Public().ID()); first {
		return true, nil
	}
	return n.sits(g.Hash())
}

// sits reports whether this node's anchor has a seat in a scope, according to the store.
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

// named reports whether an order of a scope that this node holds names its anchor. Then the node is to hold the scope
// that the order is about, and fetches the state before the notice is over.
func (n *Node) named(r *scope.Revocation) bool {
	key := n.anchor.Load()
	if r == nil || key == nil {
		return false
	}
	id := key.Public().ID()
	return slices.ContainsFunc(r.Child.Anchors, func(a scope.Anchor) bool { return a.Key.ID() == id })
}

// findSeats finds the scopes below those in the store in which this node's anchor has a seat, so that the node holds
// the scopes on the way there, whatever it follows.
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

// notHeld returns an error that says that only a node that holds the scope can do what is asked for.
func (f *remoteScope) notHeld() error {
	who := "1 anchor"
	if n := len(f.known().Roster.Anchors); n != 1 {
		who = fmt.Sprintf("%d anchors", n)
	}
	return fmt.Errorf("%w of %q, with %s: it passes on reads and watches of keys, names and histories, and writes in its own name; for anything else, and what another key signs (--as), ask a node that holds it, or start this one with --follow %s",
		ErrNotHeld, f.genesis.Prefix(), who, f.genesis.Prefix())
}

// known returns the newest epoch that is proven.
func (f *remoteScope) known() *scope.Epoch {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.knows.Epoch()
}

// time returns the node's clock, or the scope's time if that is ahead according to more weight than may lie.
func (f *remoteScope) time() aweigh.Instant {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(f.of.root.runner.now(), f.knows.Time())
}

// delegations returns the delegations that are known.
func (f *remoteScope) delegations() []scope.Delegation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.knows.Delegations()
}

// foreignIdle is how long after its last use of a scope this node stays connected to the scope's anchors.
const foreignIdle = 10 * time.Minute

// use notes a request to the scope, so that the node connects to its anchors.
func (f *remoteScope) use() {
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

// members returns the nodes of the scope's anchors, if the scope was used recently.
func (f *remoteScope) members() (ids []peer.ID) {
	f.mu.Lock()
	e, idle := f.knows.Epoch(), time.Since(f.used) > foreignIdle
	f.mu.Unlock()
	if idle {
		return nil
	}
	for _, a := range e.Roster.Anchors {
		if id, err := f.of.called.id(machine.Peer(a.Peer)); err == nil && string(f.of.called.of(id)) != f.of.peerID {
			ids = append(ids, id)
		}
	}
	return ids
}

// info returns what is known of the scope: its epoch, and its position at its last answer.
func (f *remoteScope) info() ScopeInfo {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.knows.Last()
	last.Epoch = f.knows.Epoch().Number
	return ScopeInfo{Genesis: f.genesis, Head: f.knows.Head(&last), Epoch: f.knows.Epoch()}
}

// infos returns what is known of the scopes.
func (n *remoteScopes) infos() (all []ScopeInfo) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range n.all {
		all = append(all, f.info())
	}
	slices.SortFunc(all, func(a, b ScopeInfo) int { return bytes.Compare(a.Genesis.Prefix(), b.Genesis.Prefix()) })
	return all
}

// inUse returns the members of all scopes that were used recently.
func (n *remoteScopes) inUse() (ids []peer.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range n.all {
		ids = append(ids, f.members()...)
	}
	return ids
}

// settleIn is how long a peer has to prove an epoch.
const settleIn = 2 * time.Second

// settle enters the epoch that a peer claims for the scope, if the peer proves it in time.
func (f *remoteScope) settle(ctx context.Context, p peer.ID, to aweigh.Epoch) error {
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
		return nil // another goroutine entered it
	}
	e, err := referral.Follow(f.of.cfg.Store, f.id, known, to, func(above aweigh.Height) ([]byte, error) {
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

// giversAsked is how many peers are asked for the present government of a scope whose anchors do not answer.
const giversAsked = 8

// catchUp asks peers for the scope's handovers. Nodes that hold the scope have them even if they are no anchors of it,
// and handovers are proofs. It reports whether the scope has entered a later epoch.
func (f *remoteScope) catchUp(ctx context.Context) bool {
	known := f.known()
	peers := f.of.host.Peers()
	for _, p := range peers[:min(len(peers), giversAsked)] {
		if f.known().Number > known.Number {
			break // another goroutine did
		}
		asking, cancel := context.WithTimeout(ctx, settleIn)
		raw, err := f.request(asking, p.ID, askHands, handoversAsk{Above: known.Start}, maxPart)
		cancel()
		var hands []scope.Handover
		if err == nil && canon.Decode(raw, &hands) == nil && len(hands) > 0 && len(hands) <= machine.HandoversAtOnce {
			_ = f.settle(ctx, p.ID, known.Number+aweigh.Epoch(len(hands))) // what the peer does not prove has no effect
		}
	}
	return f.known().Number > known.Number
}

// forget drops the delegation to a child that has closed.
func (f *remoteScope) forget(child aweigh.ScopeID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.knows.Undelegate(child)
}

// learn fetches the scope's referrals for some keys, and makes known the scopes to which they lead.
func (f *remoteScope) learn(ctx context.Context, ranges referral.Ranges) error {
	keys := referral.ListOf(ranges)
	_, err := f.ask(ctx, referral.Question{Kind: referral.AskReferrals, Body: canon.Encode(keys)}, func(body []byte) error {
		all, err := referral.DecodeReferrals(body)
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

// named returns a foreign scope by its prefix, nil if none has it.
func (n *remoteScopes) named(prefix string) *remoteScope {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range n.all {
		if string(f.genesis.Prefix()) == prefix {
			return f
		}
	}
	return nil
}
