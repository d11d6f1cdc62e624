package node

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/aweigh/aweigh/scope"
)

// A node that renews a lease does so in the root scope and in the other scopes that it holds. In further scopes their
// anchors renew it, because all anchors hold the root scope. In the last third of a lease's time in their scope they
// check whether the root scope's lease was renewed: at first by turns, and in the second half of that period all of
// them.

const (
	leaseTurn  = 500 * time.Millisecond // how long it is one anchor's turn
	leaseLeast = 3 * time.Second        // how long before its end a lease is checked, at least,
	leaseMost  = 20 * time.Second       // and at most
)

// leaseAhead returns how long before its end a lease of ttl seconds is checked.
func leaseAhead(ttl int64) time.Duration {
	return min(max(time.Duration(min(ttl, 3600))*time.Second/3, leaseLeast), leaseMost)
}

// followLeases checks leases until ctx ends.
func (n *Node) followLeases(ctx context.Context) {
	tick := time.NewTicker(leaseTurn)
	defer tick.Stop()
	var doing sync.WaitGroup
	defer doing.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		n.mu.RLock()
		for _, p := range n.replicas {
			turn, ok := p.leasesEnd()
			if !ok || p == n.root || !p.following.CompareAndSwap(false, true) {
				continue
			}
			doing.Go(func() {
				defer p.following.Store(false)
				if err := p.followLeases(ctx, n.root, turn); err != nil && ctx.Err() == nil {
					p.log.Debug("leases could not be kept alive as in the root scope", "error", err)
				}
			})
		}
		n.mu.RUnlock()
	}
}

// leasesEnd reports whether this node is an anchor and leases end soon (ok), and whether it is its turn to check them.
func (n *Replica) leasesEnd() (turn, ok bool) {
	s := n.runner.stand.Load()
	if s == nil || s.State.LeaseDue() == 0 {
		return false, false
	}
	anchors := s.EpochView.Epoch.Roster.Anchors
	seat := slices.IndexFunc(anchors, func(a scope.Anchor) bool { return a.Key.ID() == s.Self })
	if seat < 0 {
		return false, false
	}
	now := n.runner.now()
	turn = int(int64(now)/int64(leaseTurn)%int64(len(anchors))) == seat
	return turn, s.State.LeaseDue() <= now.Add(leaseMost)
}

func (n *Replica) followLeases(ctx context.Context, root *Replica, turn bool) error {
	ids, err := n.leasesOutliving(root, turn)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(ids, scope.MaxKeepAlives) {
		if _, err := n.KeepAlive(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// leasesOutliving returns, in order, the leases that are due to be checked and that end later in the root scope.
func (n *Replica) leasesOutliving(root *Replica, turn bool) (ids []int64, err error) {
	s, err := n.views.open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.views.release(s)) }()
	r, err := root.views.open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.views.release(r)) }()
	now := n.runner.now()
	soon, err := s.LeasesUntil(now.Add(leaseMost))
	if err != nil {
		return nil, err
	}
	for _, id := range soon {
		own, here, err := s.Lease(id)
		if err != nil {
			return nil, err
		}
		ahead := leaseAhead(own.TTL)
		if !turn {
			ahead /= 2
		}
		if !here || own.Expires > now.Add(ahead) {
			continue
		}
		there, ok, err := r.Lease(id)
		if err != nil {
			return nil, err
		}
		if ok && there.Expires > own.Expires {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}
