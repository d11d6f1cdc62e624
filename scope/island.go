package scope

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
)

// An island is a scope that anchors found which have no quorum of their own scope (P53). Its genesis follows from
// their newest final state of the scope, the prefix of a Partition, and the list of members, so that each member
// computes the same one and no member takes another's word. It holds the keys of the prefix as they were, and
// takes nothing but writes of single keys. No block of the scope names it.

// ofIsland is Descent.Entry of an island: no entry of the scope's lineage names its genesis.
const ofIsland = -1

// ErrIsland is wrapped where no island can be founded.
var ErrIsland = errors.New("scope: no island can be founded")

// ErrIslandTakes refuses what an island does not decide on.
var ErrIslandTakes = errors.New("scope: an island takes puts and deletions of single keys alone, without leases, tokens and options that keep a part")

// IsIsland reports whether a genesis is that of an island.
func (g *Genesis) IsIsland() bool { return g.Descent != nil && g.Descent.Entry == ofIsland }

// Island is the genesis of the island of some members that decides on the keys of a partition as of this state, and
// the ops that make its state. Errors wrap ErrIsland, or are the store's.
func (s *State) Island(prefix []byte, members []aweigh.AnchorID) (g Genesis, ops []kv.Op, err error) {
	if s, err = s.Begin(); err != nil {
		return g, nil, err
	}
	t := s.epoch.Terms()
	anchors, _, failure := t.islanders(prefix, members)
	switch head := &s.head; {
	case failure != nil:
	case head.Height == 0 || head.Epoch != s.epoch.Number && head.Block != s.epoch.Root:
		failure = errors.New("the scope has no final block of its epoch yet")
	case !bytes.HasPrefix(prefix, s.own.prefix) || len(s.own.given.touching(prefix, PrefixEnd(prefix))) > 0:
		failure = fmt.Errorf("another scope decides on keys of %q", prefix)
	}
	if failure != nil {
		return g, nil, fmt.Errorf("%w: %w", ErrIsland, failure)
	}
	x, err := s.trial(s.head.Time, 0)
	if err != nil {
		return g, nil, err
	}
	var h handover
	failure, err = h.gather(x, prefix, func(int, int) error { return nil })
	if err != nil {
		return g, nil, err
	}
	if failure != nil {
		return g, nil, fmt.Errorf("%w: %w", ErrIsland, failure)
	}
	above, err := s.Genesis()
	if err != nil {
		return g, nil, err
	}
	depth := uint32(1)
	if above.Descent != nil {
		depth = above.Descent.Depth + 1
	}
	h.order, h.leases, h.charges = nil, nil, passedOn{} // leases end, and quotas hold, where their scope says so
	for i := range h.keys {
		h.keys[i].Lease = 0
	}
	c := &Child{Prefix: prefix, Name: "island", Policy: t.Policy.islandPolicy(prefix, len(anchors)), Anchors: anchors}
	g, ops, err = h.newGenesis(c, s.head.Time, Descent{
		Network: s.head.Network, Started: s.head.Started, Parent: s.head.Scope, Depth: depth, Height: s.head.Height,
		Block: s.head.Block, Entry: ofIsland, Revision: s.head.Revision, Keys: int64(len(h.keys)),
	}, &decided{})
	if err != nil {
		return g, nil, err
	}
	if _, err := g.Check(); err != nil {
		return g, nil, fmt.Errorf("%w: %w", ErrIsland, err)
	}
	return g, ops, nil
}

// islanders are the anchors of an epoch's terms that are the members of an island, in the order of a genesis, and what
// they weigh together.
func (t *Terms) islanders(prefix []byte, members []aweigh.AnchorID) (anchors []Anchor, weight uint64, failure error) {
	p := t.Policy.partition(prefix)
	if p == nil {
		return nil, 0, fmt.Errorf("the policy has no partition of %q", prefix)
	}
	total := uint64(0)
	for i := range t.Anchors {
		total += t.Weights[i]
		if a := t.Anchors[i]; t.Weights[i] > 0 && slices.Contains(members, a.Key.ID()) {
			weight += t.Weights[i]
			anchors = append(anchors, a)
		}
	}
	switch {
	case len(anchors) != len(members):
		return nil, 0, errors.New("not all of its members are anchors with weight")
	case !p.reached(weight, total):
		return nil, 0, fmt.Errorf("its members weigh %d of %d, and the policy asks for %d/%d", weight, total, p.Num, p.Den)
	}
	return anchors, weight, nil
}

// islandTakes returns why an island does not take a mutation.
func (m *CheckedMutation) islandTakes() error {
	if m.Class != Write || len(m.grants) > 0 || m.Patient || !m.Txn.OfIslands() {
		return ErrIslandTakes
	}
	return nil
}

// OfIslands reports whether islands take the transaction: puts and deletions of single keys.
func (t *Txn) OfIslands() bool {
	for _, branch := range [][]Op{t.Success, t.Failure} {
		for i := range branch {
			switch op := &branch[i]; {
			case op.Kind != OpPut && op.Kind != OpDelete, len(op.End) > 0, op.Lease != 0, op.IgnoreLease, op.IgnoreValue:
				return false
			}
		}
	}
	return !slices.ContainsFunc(t.Compare, func(c Compare) bool { return len(c.End) > 0 })
}
