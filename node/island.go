package node

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// Anchors without a quorum found an island (scope.Partition): a scope of its own, with a replica as every other, which
// no route leads to. Requests that ask for provisional decisions go there. Once the scope decides again, the island
// takes no more, and its members bring what it decided into the scope.

// island is one that this node's anchor is a member of.
type island struct {
	of      *Replica // in the scope
	replica *Replica // in the island
	genesis scope.Genesis
	closed  time.Time         // when the scope was first seen to decide again; zero: it has not
	busy    bool              // rejoin runs
	done    bool              // the scope has all of it, or takes no more
	refused string            // why it takes no more; empty if it has all
	ended   time.Time         // when done was set
	all     int64             // entries of its lineage that there were then
	asks    bool              // unasked is set, if this node founded it: in each of its lives
	unasked []aweigh.AnchorID // members that have not said that they opened it
}

// islands holds the islands of a node, and since when its scopes have no quorum.
type islands struct {
	mu    sync.Mutex
	all   []*island              // in the order in which they were founded or opened
	rest  []resting              // in the order in which they came to rest
	since map[*Replica]time.Time // of scopes with partitions in which this node's anchor has a seat
	tries map[string]islandTry   // by scope and prefix
}

// Island is an island as one of its members sees it.
type Island struct {
	ID      aweigh.ScopeID
	Scope   aweigh.ScopeID
	Prefix  []byte
	Members []scope.Anchor
	Weight  uint64        // of the members in the scope
	Total   uint64        // of all anchors in the scope
	Base    aweigh.Height // of the scope's block to whose state it was added
	Head    scope.Head    // of the island
	Open    bool          // it takes changes: the scope decides nothing
	Done    bool          // the scope has all of it
	Refused string        // why the scope takes no more of it
	Rests   bool          // its replica is closed; of Head, only the height and the revision are known
}

// ErrNoIsland is wrapped where nothing can be decided provisionally.
var ErrNoIsland = errors.New("node: no provisional decision")

// islandTick is how often a node looks whether an island is to be founded or to rejoin.
const islandTick = 500 * time.Millisecond

// parts returns the node's replicas in all scopes that it follows, in its islands, and in scopes that came home lately.
func (n *Node) parts() []*Replica {
	all := n.Replicas()
	n.islands.mu.Lock()
	for _, is := range n.islands.all {
		all = append(all, is.replica)
	}
	n.islands.mu.Unlock()
	n.mu.RLock()
	defer n.mu.RUnlock()
	if len(all) >= len(n.replicas) {
		return all
	}
	listed := make(map[*Replica]bool, len(all))
	for _, p := range all {
		listed[p] = true
	}
	for _, p := range n.replicas { // order-free: each for itself
		if !listed[p] {
			all = append(all, p)
		}
	}
	return all
}

// Islands returns the islands of which this node's anchor is a member, in the order in which they were founded.
func (n *Node) Islands() (all []Island) {
	n.islands.mu.Lock()
	defer n.islands.mu.Unlock()
	for i := range n.islands.rest {
		all = append(all, n.islands.rest[i].info())
	}
	for _, is := range n.islands.all {
		all = append(all, is.info())
	}
	return all
}

func (is *island) info() Island {
	i := islandInfo(is.of, &is.genesis)
	i.Head, i.Done, i.Refused = is.replica.LastHead(), is.done && is.refused == "", is.refused
	i.Open = is.closed.IsZero() && is.of.LastHead().Block == is.genesis.Descent.Block
	return i
}

// islandInfo is what follows from the genesis of an island, and from the roster of its scope.
func islandInfo(of *Replica, g *scope.Genesis) Island {
	e := of.epochs.epoch()
	i := Island{ID: g.Hash(), Scope: of.id, Prefix: g.Prefix(), Members: g.Anchors, Base: g.Descent.Height, Total: e.Roster.Weights.Total()}
	for k := range i.Members {
		i.Weight += e.Roster.Weights.Of(i.Members[k].Key.ID())
	}
	return i
}

// openIslands opens the islands that the store has, but for those that rest.
func (n *Node) openIslands() error {
	for _, p := range n.Replicas() {
		geneses, err := machine.StoredIslands(n.cfg.Store, p.id)
		for i := range geneses {
			if err == nil {
				err = n.reopenIsland(p, geneses[i])
			}
		}
		if err != nil {
			return fmt.Errorf("node: an island of %s: %w", p.name(), err)
		}
	}
	return nil
}

// openIsland opens the replica in an island, whose state the store has.
func (n *Node) openIsland(of *Replica, g scope.Genesis) (*island, error) {
	c, err := newReplica(n, g)
	if err != nil {
		return nil, err
	}
	is := &island{of: of, replica: c, genesis: g}
	n.islands.mu.Lock()
	n.islands.all = append(n.islands.all, is)
	n.islands.mu.Unlock()
	return is, n.join(c)
}

// tendIslands founds islands where there is no quorum, and brings back what they decided.
func (n *Node) tendIslands(ctx context.Context) {
	tick := time.NewTicker(islandTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, p := range n.Replicas() {
			n.tendScope(ctx, p)
		}
		n.islands.mu.Lock()
		all := slices.Clone(n.islands.all)
		n.islands.mu.Unlock()
		for _, is := range all {
			n.tendIsland(is)
			if err := n.restIsland(ctx, is); err != nil {
				n.stop(err)
			}
		}
		if err := n.dropIslands(); err != nil {
			n.stop(err)
		}
	}
}

// tendScope notes whether a scope has a quorum, and founds islands.
func (n *Node) tendScope(ctx context.Context, p *Replica) {
	parts := p.epochs.epoch().Policy.Partitions
	if len(parts) == 0 || p.vacant.Load() {
		return
	}
	s := p.Status()
	r := p.reach(s)
	apart := n.apartFor(p, r.Failures < 0 && !s.Self.IsZero())
	for i := range parts {
		if apart >= parts[i].After {
			n.tryFound(ctx, p, &parts[i], s.Self, r)
		}
	}
}

// apartFor notes whether there is no quorum, and returns for how long there has been none.
func (n *Node) apartFor(p *Replica, apart bool) time.Duration {
	n.islands.mu.Lock()
	defer n.islands.mu.Unlock()
	since, was := n.islands.since[p]
	switch {
	case !apart:
		delete(n.islands.since, p)
		return 0
	case !was:
		n.islands.since[p] = time.Now()
		return 0
	}
	return time.Since(since)
}

// apart returns for how long a scope has had no quorum, 0 if it has one.
func (n *Node) apart(p *Replica) time.Duration {
	n.islands.mu.Lock()
	defer n.islands.mu.Unlock()
	if since, ok := n.islands.since[p]; ok {
		return time.Since(since)
	}
	return 0
}

// islandOf returns the newest island that decides on the keys of a prefix on top of a block; nil if there is none.
func (n *Node) islandOf(p *Replica, prefix []byte, base aweigh.Hash) *island {
	n.islands.mu.Lock()
	defer n.islands.mu.Unlock()
	for _, is := range slices.Backward(n.islands.all) {
		if is.of == p && bytes.Equal(is.genesis.Prefix(), prefix) && is.genesis.Descent.Block == base {
			return is
		}
	}
	return nil
}

// provisional calls f with the island that decides on some keys. Errors wrap ErrNoIsland, or are those of f.
func (n *Node) provisional(ctx context.Context, keys referral.Ranges, f func(*Replica) error) (i Island, err error) {
	err = n.withHeld(ctx, keys, func(p *Replica) error {
		is, err := n.island(p, keys)
		if err != nil {
			return err
		}
		n.islands.mu.Lock()
		i = is.info()
		n.islands.mu.Unlock()
		return is.told(f(is.replica))
	})
	return i, err
}

// island returns the open island of a scope that decides on some keys.
func (n *Node) island(p *Replica, keys referral.Ranges) (*island, error) {
	part, outside := partitionOf(p, keys)
	if part == nil {
		return nil, fmt.Errorf("%w: no partition of the policy covers %s: give a key, or a prefix within a partition (aweigh policy show)", ErrNoIsland, rangeName(outside))
	}
	is, err := n.standing(p, part)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoIsland, brief(err))
	}
	return is, nil
}

// TxnProvisional has a transaction decided by the island that this node's anchor is a member of, and waits for that.
// The decision is no decision of the scope. Errors wrap ErrNoIsland if no island decides on the keys.
func (n *Node) TxnProvisional(ctx context.Context, t scope.Txn, once Once) (r machine.Receipt, i Island, err error) {
	i, err = n.provisional(ctx, t.Ranges, func(p *Replica) error {
		r, err = p.Txn(ctx, t, once)
		return err
	})
	return r, i, err
}

// RangeProvisional reads from the island that decides on some keys, what was decided there before the call.
func (n *Node) RangeProvisional(ctx context.Context, key, end []byte, opts scope.Range) (r scope.RangeResult, h scope.Head, i Island, err error) {
	i, err = n.provisional(ctx, referral.Between(key, end), func(p *Replica) error {
		r, h, err = p.Range(ctx, key, end, opts, true)
		return err
	})
	return r, h, i, err
}

// rank is the place of this node's anchor among the members.
func (is *island) rank() int {
	self := is.of.Status().Self
	return max(0, slices.IndexFunc(is.genesis.Anchors, func(a scope.Anchor) bool { return a.Key.ID() == self }))
}

// least is the anchor with the least identity.
func least(ids []aweigh.AnchorID) aweigh.AnchorID {
	return slices.MinFunc(ids, func(a, b aweigh.AnchorID) int { return cmp.Or(bytes.Compare(a[:], b[:])) })
}

// rangeName is a key for people, or "all keys" for the start of all of them.
func rangeName(key []byte) string {
	if len(key) == 0 || bytes.Equal(key, []byte{0}) {
		return "all keys"
	}
	return fmt.Sprintf("%q", key)
}
