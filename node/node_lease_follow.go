package node

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/aweigh/aweigh/scope"
)

// A node that keeps a lease alive tells the root scope and what else it holds. In other scopes the
// anchors see to that, all of which hold the root scope: in the last third of its time there, they
// look whether a lease was kept alive, by turns at first and all of them in the second half of that.

const (
	leaseTurn  = 500 * time.Millisecond // how long it is one anchor's turn
	leaseLeast = 3 * time.Second        // before its end it is time to look after a lease, at least,
	leaseMost  = 20 * time.Second       // and at most
)

// leaseAhead is how long before its end it is time to look after a lease of so many seconds.
func leaseAhead(ttl int64) time.Duration {
	return min(max(time.Duration(min(ttl, 3600))*time.Second/3, leaseLeast), leaseMost)
}

// followLeases runs until ctx ends.
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
		for _, p := range n.parts {
			turn, ok := p.leasesEnd()
			if !ok || p == n.Part || !p.following.CompareAndSwap(false, true) {
				continue
			}
			doing.Go(func() {
				defer p.following.Store(false)
				if err := p.followLeases(ctx, n.Part, turn); err != nil && ctx.Err() == nil {
					p.log.Debug("leases could not be kept alive as in the root scope", "error", err)
				}
			})
		}
		n.mu.RUnlock()
	}
}

// leasesEnd reports whether this node is an anchor and leases end before long, and whether it is its turn to look
// after them.
func (n *Part) leasesEnd() (turn, ok bool) {
	s := n.runner.stand.Load()
	if s == nil || s.state.LeaseDue() == 0 {
		return false, false
	}
	anchors := s.term.epoch.Roster.Anchors
	seat := slices.IndexFunc(anchors, func(a scope.Anchor) bool { return a.Key.ID() == s.self })
	if seat < 0 {
		return false, false
	}
	now := n.runner.now()
	turn = int(int64(now)/int64(leaseTurn)%int64(len(anchors))) == seat
	return turn, s.state.LeaseDue() <= now.Add(leaseMost)
}

func (n *Part) followLeases(ctx context.Context, root *Part, turn bool) error {
	ids, err := n.outlived(root, turn)
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

// outlived are the leases that it is time to look after and that end later in the root scope, in order.
func (n *Part) outlived(root *Part, turn bool) (ids []int64, err error) {
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
