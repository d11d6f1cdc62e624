package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// The anchor with the least identity among those that reach each other founds the island: it asks each of the others
// whether it would be a member, and then to open it. Each computes the genesis from its own state of the scope. One
// that does not answer, or lacks blocks, is asked again with the next tick.

// askIsland asks an anchor to be a member of an island. An islandAsk follows, and an islandSaid comes back.
const askIsland = "island/1"

type islandAsk struct {
	_       struct{} `cbor:",toarray"`
	Prefix  []byte
	Members []aweigh.AnchorID
	Block   aweigh.Hash // the newest one of the scope
	Opens   bool        // the member is to open it, and not only to say whether it would
}

type islandSaid struct {
	_      struct{}       `cbor:",toarray"`
	Island aweigh.ScopeID // zero if it is no member
	Why    string         // why not
}

const (
	// maxIslandSaid bounds an answer, in bytes.
	maxIslandSaid = 1 << 10
	// islandWithin bounds how long a founder waits for an answer.
	islandWithin = 5 * time.Second
	// islandAskBytes is what a question costs, and islandReads what the answer to a new one costs, of the bytes that a
	// peer is given: as many as the keys of an island may have, so that an anchor has one a second computed.
	islandAskBytes = 64 << 10
	islandReads    = 32 << 20
	// maxAnswered bounds the answers that are remembered.
	maxAnswered = 64
)

var errOtherBlock = fmt.Errorf("%w: the newest block here is another one", ErrNoIsland)

// tryFound founds an island of the anchors that are within reach, if this node's is the one to do so, or asks members
// that have not opened theirs.
func (n *Node) tryFound(ctx context.Context, p *Replica, q *scope.Partition, self aweigh.AnchorID, r Reach) {
	head := p.LastHead()
	if is := n.islandOf(p, q.Prefix, head.Block); is != nil {
		n.islands.mu.Lock()
		is.closed, is.done = time.Time{}, false // the scope had a quorum meanwhile, and decided nothing
		n.islands.mu.Unlock()
		n.askAgain(is, self)
		n.askOpen(ctx, p, is)
		return
	}
	weights := p.epochs.epoch().Roster.Weights
	members := slices.DeleteFunc(slices.Clone(r.Anchors), func(a aweigh.AnchorID) bool { return weights.Of(a) == 0 })
	if r.Weight*uint64(q.Den) < r.Total*uint64(q.Num) || !slices.Contains(members, self) {
		return
	}
	if !n.founds(p, q.Prefix, members, head.Block) || least(members) != self {
		return
	}
	ask := islandAsk{Prefix: q.Prefix, Members: members, Block: head.Block}
	for _, m := range members {
		if m == self {
			continue
		}
		if said, err := n.askMember(ctx, p, m, ask); err != nil || said.Island.IsZero() {
			p.log.Debug("an anchor is no member of an island yet", "anchor", p.measured.name(m), "why", said.Why, "error", err)
			return
		}
	}
	is, err := n.foundIsland(p, q.Prefix, members, head.Block)
	if err != nil {
		p.log.Warn("no island is founded", "prefix", string(q.Prefix), "error", err)
		return
	}
	n.askAgain(is, self)
	n.askOpen(ctx, p, is)
}

// askAgain makes the founder of an island ask all other members to open it, once in each of its lives: it may have
// stopped before it asked them.
func (n *Node) askAgain(is *island, self aweigh.AnchorID) {
	n.islands.mu.Lock()
	defer n.islands.mu.Unlock()
	members := is.members()
	if is.asks || least(members) != self {
		return
	}
	is.asks = true
	is.unasked = slices.DeleteFunc(members, func(m aweigh.AnchorID) bool { return m == self })
}

// members are the anchors of the island.
func (is *island) members() []aweigh.AnchorID { return membersOf(&is.genesis) }

func membersOf(g *scope.Genesis) (ids []aweigh.AnchorID) {
	for i := range g.Anchors {
		ids = append(ids, g.Anchors[i].Key.ID())
	}
	return ids
}

// askOpen asks the members that have not yet done so to open an island.
func (n *Node) askOpen(ctx context.Context, p *Replica, is *island) {
	n.islands.mu.Lock()
	asked := slices.Clone(is.unasked)
	n.islands.mu.Unlock()
	if len(asked) == 0 {
		return
	}
	ask := islandAsk{Prefix: is.genesis.Prefix(), Members: is.members(), Block: is.genesis.Descent.Block, Opens: true}
	for _, m := range asked {
		said, err := n.askMember(ctx, p, m, ask)
		if err != nil || said.Island != is.replica.id {
			p.log.Debug("a member has not opened its island", "anchor", p.measured.name(m), "why", said.Why, "error", err)
			continue
		}
		n.islands.mu.Lock()
		is.unasked = slices.DeleteFunc(is.unasked, func(o aweigh.AnchorID) bool { return o == m })
		n.islands.mu.Unlock()
	}
}

func (n *Node) askMember(ctx context.Context, p *Replica, m aweigh.AnchorID, ask islandAsk) (said islandSaid, err error) {
	ctx, cancel := context.WithTimeout(ctx, islandWithin)
	defer cancel()
	seat, ok := p.epochs.epoch().Roster.Seat(m)
	if !ok {
		return said, ErrNoAnchor
	}
	to, err := n.called.id(machine.Peer(p.epochs.epoch().Roster.Anchors[seat].Peer))
	if err != nil {
		return said, err
	}
	raw, err := p.ask(ctx, to, askIsland, ask, maxIslandSaid)
	if err != nil {
		return said, err
	}
	return said, canon.Decode(raw, &said)
}

// serveIsland answers whether this node's anchor is a member of an island, and opens it if it is asked to.
func (n *Replica) serveIsland(ctx context.Context, from machine.Peer, ask islandAsk) ([]byte, error) {
	if err := n.turn(ctx, n.budgets.Given(from), islandAskBytes); err != nil {
		return nil, err
	}
	is, err := n.joinIsland(ctx, from, ask)
	switch {
	case errors.Is(err, ErrNoIsland) || errors.Is(err, scope.ErrIsland):
		why := err.Error()
		return canon.Encode(islandSaid{Why: why[:min(len(why), maxIslandSaid/2)]}), nil
	case err != nil:
		return nil, err
	}
	return canon.Encode(islandSaid{Island: is}), nil
}

func (n *Replica) joinIsland(ctx context.Context, from machine.Peer, ask islandAsk) (id aweigh.ScopeID, err error) {
	e := n.epochs.epoch()
	self, founder := n.Status().Self, n.epochs.checker().Anchors[from]
	q := e.Policy.PartitionOf(ask.Prefix)
	if ask.Opens && slices.Contains(ask.Members, founder) {
		if id, err := n.of.wakeIsland(n, ask); !id.IsZero() || err != nil {
			return id, err
		}
	}
	switch {
	case len(ask.Members) == 0 || len(ask.Members) > len(e.Roster.Anchors) || founder.IsZero() || least(ask.Members) != founder:
		return id, fmt.Errorf("%w: only the member with the least identity asks", ErrNoIsland)
	case self.IsZero() || !slices.Contains(ask.Members, self):
		return id, fmt.Errorf("%w: this node's anchor is not among the members", ErrNoIsland)
	case q == nil || string(q.Prefix) != string(ask.Prefix):
		return id, fmt.Errorf("%w: no partition of %q", ErrNoIsland, ask.Prefix)
	case slices.ContainsFunc(ask.Members, func(m aweigh.AnchorID) bool { return !slices.Contains(n.Reach().Anchors, m) }):
		return id, fmt.Errorf("%w: not all of its members are within reach here", ErrNoIsland)
	case n.of.apart(n) < q.After:
		return id, fmt.Errorf("%w: there has been no quorum for %v here, and the policy asks for %v", ErrNoIsland, n.of.apart(n).Round(time.Second), q.After)
	}
	if n.LastHead().Block != ask.Block {
		return id, errOtherBlock
	}
	if !ask.Opens {
		if is := n.of.islandOf(n, ask.Prefix, ask.Block); is != nil {
			return id, fmt.Errorf("%w: this anchor is a member of %s already", ErrNoIsland, is.replica.id.Short())
		}
		return n.islandNamed(ctx, from, ask)
	}
	if is := n.of.islandOf(n, ask.Prefix, ask.Block); is != nil && slices.Equal(is.members(), ask.Members) {
		return is.replica.id, nil
	}
	if err := n.turn(ctx, n.budgets.Given(from), islandReads); err != nil {
		return id, err
	}
	is, err := n.of.foundIsland(n, ask.Prefix, ask.Members, ask.Block)
	if err != nil {
		return id, err
	}
	return is.replica.id, nil
}

// answeredIslands are the islands on top of one block whose identities were computed for founders.
type answeredIslands struct {
	mu    sync.Mutex
	block aweigh.Hash
	ids   map[aweigh.Hash]islandSaid // by what was asked
}

// islandNamed is the identity of an island on top of this node's newest block, which is computed once, at the cost of
// the peer's budget.
func (n *Replica) islandNamed(ctx context.Context, from machine.Peer, ask islandAsk) (aweigh.ScopeID, error) {
	k := aweigh.Sum(canon.Encode(ask))
	x := &n.answered
	x.mu.Lock()
	said, known := x.ids[k]
	known = known && x.block == ask.Block && n.LastHead().Block == ask.Block
	x.mu.Unlock()
	if !known {
		if err := n.turn(ctx, n.budgets.Given(from), islandReads); err != nil {
			return said.Island, err
		}
		g, _, err := n.islandGenesis(ask.Prefix, ask.Members, ask.Block)
		switch {
		case errors.Is(err, scope.ErrIsland):
			said = islandSaid{Why: scope.Reason(err)}
		case err != nil:
			return said.Island, err
		default:
			said = islandSaid{Island: g.Hash()}
		}
		x.mu.Lock()
		if x.block != ask.Block || len(x.ids) >= maxAnswered {
			x.block, x.ids = ask.Block, make(map[aweigh.Hash]islandSaid)
		}
		x.ids[k] = said
		x.mu.Unlock()
	}
	if said.Why != "" {
		return said.Island, fmt.Errorf("%w: %s", ErrNoIsland, said.Why)
	}
	return said.Island, nil
}

// islandGenesis computes the genesis of an island on top of this node's newest block.
func (n *Replica) islandGenesis(prefix []byte, members []aweigh.AnchorID, base aweigh.Hash) (g scope.Genesis, ops []kv.Op, err error) {
	s, err := n.views.own()
	if err != nil {
		return g, nil, err
	}
	if s.Head().Block != base {
		return g, nil, errors.Join(errOtherBlock, n.views.release(s))
	}
	g, ops, err = s.Island(prefix, members)
	return g, ops, errors.Join(err, n.views.release(s))
}

// foundIsland opens an island of which this node's anchor is a member, once on one block.
func (n *Node) foundIsland(p *Replica, prefix []byte, members []aweigh.AnchorID, base aweigh.Hash) (*island, error) {
	n.growing.Lock()
	defer n.growing.Unlock()
	g, ops, err := p.islandGenesis(prefix, members, base)
	if err != nil {
		return nil, err
	}
	if is := n.islandOf(p, prefix, base); is != nil {
		if is.replica.id != g.Hash() {
			return nil, fmt.Errorf("%w: this anchor is a member of %s already", ErrNoIsland, is.replica.id.Short())
		}
		return is, nil
	}
	if err := n.cfg.Store.Commit(append(ops, kv.Set(machine.KeyIsland(p.id, g.Hash()), g.Encode())), true); err != nil {
		return nil, err
	}
	is, err := n.openIsland(p, g)
	if err == nil {
		p.log.Warn("no quorum: this anchor decides provisionally, with others, on an island", "prefix", string(prefix), "island", g.Hash().Short(), "members", namesOf(g.Anchors))
	}
	return is, err
}
