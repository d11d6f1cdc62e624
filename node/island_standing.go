package node

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// Partition is a partition of the policy of a scope that has no quorum.
type Partition struct {
	Prefix []byte
	Island aweigh.ScopeID // of this node's anchor, that decides on its keys; zero if none stands
	Why    error          // none stands, or the island decides nothing; nil: it decides
}

// Brief is Why without names of keys, which not all callers may read.
func (p *Partition) Brief() error { return brief(p.Why) }

func brief(why error) error {
	if errors.Is(why, scope.ErrIsland) {
		return fmt.Errorf("%w, as \"aweigh island ls\" explains", scope.ErrIsland)
	}
	return why
}

// Partitions returns the partitions of a scope's policy while the scope has no quorum.
func (n *Node) Partitions(in aweigh.ScopeID) (all []Partition) {
	p := n.replica(in)
	if p == nil {
		return nil
	}
	parts := p.epochs.epoch().Policy.Partitions
	if len(parts) == 0 || p.reachSoon().Failures >= 0 {
		return nil
	}
	for i := range parts {
		part := Partition{Prefix: parts[i].Prefix}
		is, err := n.standing(p, &parts[i])
		if part.Why = err; err == nil {
			part.Island, part.Why = is.replica.id, is.lost()
		}
		all = append(all, part)
	}
	return all
}

// reachSoon is Reach for a request whose time may be over.
func (n *Replica) reachSoon() Reach { return n.reach(n.statusWithin(graceAfterDeadline)) }

// partitionOf returns the partition of the policy that covers some keys, or a key that is outside.
func partitionOf(p *Replica, keys referral.Ranges) (part *scope.Partition, outside []byte) {
	policy := &p.epochs.epoch().Policy
	covered := true
	keys(func(key, end []byte) bool {
		q := policy.PartitionOf(key)
		if covered = q != nil && (part == nil || q == part) && scope.Covers(q.Prefix, key, end); !covered {
			outside = key
			return false
		}
		part = q
		return true
	})
	if !covered {
		return nil, outside
	}
	return part, nil
}

// errSoon is wrapped where an island may be founded later.
var errSoon = errors.New("no island stands yet")

// standing returns the island that decides on the keys of a partition, or why there is none.
func (n *Node) standing(p *Replica, part *scope.Partition) (*island, error) {
	if is := n.islandOf(p, part.Prefix, p.LastHead().Block); is != nil && n.takes(is) {
		return is, nil
	}
	r, apart := p.reachSoon(), n.apart(p)
	switch {
	case p.anchor.Load() == nil:
		return nil, errors.New("this node holds no anchor; ask the node of one")
	case apart == 0 && r.Failures >= 0:
		return nil, errors.New("the scope has a quorum, so it decides for good; leave --provisional out")
	case r.Weight*uint64(part.Den) < r.Total*uint64(part.Num):
		return nil, fmt.Errorf("no island stands: anchors of weight %d of %d are reachable, and the policy asks for %d/%d", r.Weight, r.Total, part.Num, part.Den)
	}
	if err := n.tried(p, part.Prefix); err != nil {
		return nil, err
	}
	if apart < part.After {
		return nil, fmt.Errorf("%w: there has been no quorum for %v, and the policy asks for %v", errSoon, apart.Round(time.Second), part.After)
	}
	return nil, fmt.Errorf("%w: all of its members must have had no quorum for %v", errSoon, part.After)
}

// takes reports whether an island takes changes.
func (n *Node) takes(is *island) bool {
	n.islands.mu.Lock()
	defer n.islands.mu.Unlock()
	return is.closed.IsZero()
}

// islandTry is what came of an attempt to compute the genesis of an island.
type islandTry struct {
	block   aweigh.Hash
	members []aweigh.AnchorID
	err     error // wraps scope.ErrIsland
}

// tried returns why no island of a prefix can be founded on the newest block, nil if no attempt failed.
func (n *Node) tried(p *Replica, prefix []byte) error {
	n.islands.mu.Lock()
	defer n.islands.mu.Unlock()
	if t := n.islands.tries[tryOf(p, prefix)]; t.block == p.LastHead().Block {
		return t.err
	}
	return nil
}

func tryOf(p *Replica, prefix []byte) string { return string(p.id[:]) + string(prefix) }

// founds reports whether an island of some members can be founded on this node's newest block. It computes the genesis
// once for each block and list of members.
func (n *Node) founds(p *Replica, prefix []byte, members []aweigh.AnchorID, block aweigh.Hash) bool {
	key := tryOf(p, prefix)
	n.islands.mu.Lock()
	t := n.islands.tries[key]
	n.islands.mu.Unlock()
	if t.block == block && slices.Equal(t.members, members) {
		return t.err == nil
	}
	_, _, err := p.islandGenesis(prefix, members, block)
	if err != nil && !errors.Is(err, scope.ErrIsland) {
		p.log.Debug("no island is founded", "prefix", string(prefix), "error", err)
		return false
	}
	if err != nil {
		p.log.Warn("no island is founded", "prefix", string(prefix), "error", err)
	}
	n.islands.mu.Lock()
	n.islands.tries[key] = islandTry{block, members, err}
	n.islands.mu.Unlock()
	return err == nil
}

// lost returns which members an island lacks to decide, nil if it lacks none. Members that have not reported on it yet,
// or reported before they opened it, count as present.
func (is *island) lost() error {
	s := is.replica.statusWithin(graceAfterDeadline)
	says := is.replica.anchorStates(s)
	for id, x := range says { // order-free: each on its own
		if x.State == AnchorUnknown || x.State == AnchorUnseated {
			says[id] = AnchorReport{State: AnchorSigns}
		}
	}
	r := reachOf(&s, says, true)
	if r.Failures >= 0 {
		return nil
	}
	var away []string
	for i := range is.genesis.Anchors {
		if a := &is.genesis.Anchors[i]; slices.Contains(r.Missing, a.Key.ID()) {
			away = append(away, a.Name)
		}
	}
	return fmt.Errorf("island %s has no quorum of its own: start %s, or connect it with this node", is.replica.id.Short(), strings.Join(away, " or "))
}

// told adds to an error of a request to an island that the island has no quorum of its own.
func (is *island) told(err error) error {
	var u *UndecidedError
	switch {
	case errors.Is(err, ErrUnread):
		if lost := is.lost(); lost != nil {
			return fmt.Errorf("%w: %w", ErrUnread, lost)
		}
	case errors.As(err, &u):
		if lost := is.lost(); lost != nil {
			u.Next = lost.Error()
		}
	}
	return err
}

// Provisionally ends UndecidedError.Next where an island can decide on the write.
const Provisionally = "can decide it provisionally"

// instead returns how an island can decide on a transaction that its scope has no quorum for, "" if none can.
func (n *Node) instead(in aweigh.ScopeID, t *scope.Txn) string {
	p := n.replica(in)
	if p == nil || !t.OfIslands() {
		return ""
	}
	part, _ := partitionOf(p, t.Ranges)
	if part == nil {
		return ""
	}
	switch is, err := n.standing(p, part); {
	case err == nil && is.lost() == nil:
		return fmt.Sprintf("island %s %s", is.replica.id.Short(), Provisionally)
	case errors.Is(err, errSoon):
		return fmt.Sprintf("after %v without a quorum, an island %s", part.After, Provisionally)
	}
	return ""
}
