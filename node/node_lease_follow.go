package node

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// A node that keeps a lease alive tells the root scope and what else it holds. In other scopes the
// anchors see to that, all of which hold the root scope: before a lease ends there, they
// look whether it was kept alive, by turns at first and all of them in the end.

const (
	leaseTurn  = 500 * time.Millisecond // how long it is one anchor's turn
	leaseAhead = 3 * time.Second        // before its end one looks after a lease
	leaseLast  = leaseAhead / 2         // before its end all do
)

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
			until, ok := p.leasesEnd()
			if !ok || p == n.Part || !p.following.CompareAndSwap(false, true) {
				continue
			}
			doing.Go(func() {
				defer p.following.Store(false)
				if err := p.followLeases(ctx, n.Part, until); err != nil && ctx.Err() == nil {
					p.log.Debug("leases could not be kept alive as in the root scope", "error", err)
				}
			})
		}
		n.mu.RUnlock()
	}
}

// leasesEnd is up to when this node looks after leases, if one of them may end until then.
func (n *Part) leasesEnd() (until aweigh.Instant, ok bool) {
	s := n.runner.stand.Load()
	if s == nil || s.state.LeaseDue() == 0 {
		return 0, false
	}
	anchors := s.term.epoch.Roster.Anchors
	seat := slices.IndexFunc(anchors, func(a scope.Anchor) bool { return a.Key.ID() == s.self })
	if seat < 0 {
		return 0, false
	}
	now := n.runner.now()
	until = now.Add(leaseLast)
	if int(int64(now)/int64(leaseTurn)%int64(len(anchors))) == seat {
		until = now.Add(leaseAhead)
	}
	return until, s.state.LeaseDue() <= until
}

func (n *Part) followLeases(ctx context.Context, root *Part, until aweigh.Instant) error {
	ids, err := n.outlived(root, until)
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

// outlived are the leases that may end until then and do not in the root scope, in order.
func (n *Part) outlived(root *Part, until aweigh.Instant) (ids []int64, err error) {
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
	soon, err := s.LeasesUntil(until)
	if err != nil {
		return nil, err
	}
	for _, id := range soon {
		own, here, err := s.Lease(id)
		if err != nil {
			return nil, err
		}
		there, ok, err := r.Lease(id)
		if err != nil {
			return nil, err
		}
		if here && ok && there.Expires.Sub(own.Expires) > leaseTurn {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}
