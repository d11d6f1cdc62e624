package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// A scope that is ordered to come home closes, and takes no more requests (bring.go). Meanwhile requests for its keys
// wait. Once the keys are those of the scope above, its history is read through its store.

// folds notes which scopes of a node come home, or ask for it.
type folds struct {
	mu    sync.Mutex
	since map[aweigh.ScopeID]time.Time // by child, when this node first saw it closed, or quiet
	busy  map[aweigh.ScopeID]bool      // by child: bring runs

	opening  sync.Mutex                  // of archives, held while one is opened
	archives map[aweigh.ScopeID]*Replica // of scopes that came home before the node started, as far as they were asked for
}

// first is when the node first saw a child closed. The caller holds the lock.
func (f *folds) first(child aweigh.ScopeID) time.Time {
	if f.since == nil {
		f.since, f.busy = make(map[aweigh.ScopeID]time.Time), make(map[aweigh.ScopeID]bool)
	}
	if _, seen := f.since[child]; !seen {
		f.since[child] = time.Now()
	}
	return f.since[child]
}

// over reports whether the node saw a child closed, or gone home, so long ago, and then forgets when that was.
func (f *folds) over(child aweigh.ScopeID, rest time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.first(child)) < rest {
		return false
	}
	delete(f.since, child)
	return true
}

// forget forgets when a child was first seen, which is not to come home yet.
func (f *folds) forget(child aweigh.ScopeID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.since, child)
}

// closed reports whether the scope has gone back to the one above.
func (d owner) closed() bool { return d.home() != nil }

// home is what the scope closed with, nil if it has not closed.
func (d owner) home() *scope.Home {
	if d.remote != nil {
		return d.remote.known().Home
	}
	return d.replica.epochs.epoch().Home
}

// closed reports whether the scope has gone back to the one above.
func (n *Replica) closed() bool { return n.epochs.epoch().Home != nil }

// closed reports whether the scope has gone back to the one above, as far as this node knows.
func (f *remoteScope) closed() bool { return f.known().Home != nil }

// follow learns where some keys are that the scope does not have: in scopes below it, or above if it has closed. If it
// refers to none, they came home meanwhile, and it is to be asked again.
func (f *remoteScope) follow(ctx context.Context, ranges referral.Ranges) error {
	err := f.learn(ctx, ranges)
	if err != nil && !f.closed() {
		f.catchUp(ctx)
	}
	switch {
	case f.closed():
		return nil
	case errors.Is(err, referral.ErrNone):
		f.of.root.pauseFor(ctx, foldTick)
		return nil
	}
	return err
}

// followHome returns the segment that replaces one of a scope which closed, once the scope above has the keys; nil
// before. It begins with the changes that wrote them there.
func (n *Node) followHome(ctx context.Context, l *WatchSegment, home *scope.Home, from int64) ([]*WatchSegment, error) {
	g := l.of().genesis()
	id, above := g.Hash(), g.Descent.Parent
	next, at := home.Revision+1, owner{replica: n.replica(above), remote: n.foreign(above)}
	switch p := at.replica; {
	case p == nil && at.remote == nil:
		return nil, fmt.Errorf("%w of the scope above %q, which has the keys again", ErrNotHeld, g.Prefix())
	case p == nil: // it says if it does not have them yet
	case delegates(p.Delegations(), id):
		return nil, nil
	default:
		folds := p.given.Load().Folds()
		i := slices.IndexFunc(folds, func(f scope.FoldRecord) bool { return f.Child == id })
		if i < 0 { // compaction was faster
			return nil, scope.ErrCompacted
		}
		next, at.remote = folds[i].Home, nil
	}
	s := n.segment(ctx, piece{at, l.Key, l.End}, max(from, next), l.Bare)
	s.Take(l.Read...)
	l.Read = nil
	Stop([]*WatchSegment{l})
	return []*WatchSegment{s}, nil
}

// archive returns a replica in a scope that came home, to read its history; nil if this node's store does not have it.
func (n *Node) archive(id aweigh.ScopeID) (*Replica, error) {
	if p := n.replica(id); p != nil {
		return p, nil
	}
	n.folds.opening.Lock()
	defer n.folds.opening.Unlock()
	if p := n.folds.archives[id]; p != nil {
		return p, nil
	}
	_, _, meta := scope.Clear(id)
	if _, stored, err := n.cfg.Store.Get(meta); err != nil || !stored {
		return nil, err
	}
	s, err := scope.Open(n.cfg.Store, id)
	if err != nil {
		return nil, err
	}
	g, err := s.Genesis()
	if err != nil {
		return nil, err
	}
	p, err := newReplica(n, g)
	if err != nil {
		return nil, err
	}
	if n.folds.archives == nil {
		n.folds.archives = make(map[aweigh.ScopeID]*Replica)
	}
	n.folds.archives[id] = p
	return p, nil
}

// close releases the archives.
func (f *folds) close() (err error) {
	f.opening.Lock()
	defer f.opening.Unlock()
	for _, p := range f.archives { // order-free: each for itself
		err = errors.Join(err, p.release())
	}
	return err
}

// cameFrom is the scope from which an object came by an entry: it came home, or was sent.
func cameFrom(e *lineage.Entry) (from aweigh.ScopeID, ok bool) {
	switch e.Class {
	case lineage.CameHome:
		return scope.ParseHome(e.Reason)
	case lineage.Received:
		return scope.ParseReceived(e.Reason)
	}
	return from, false
}

// throughFolds adds to the entries about an object, newest first, those of scopes from which it came home. Of more than
// limit entries, it leaves the newest.
func (n *Node) throughFolds(ctx context.Context, entries []LineageEntry, more bool, limit int) ([]LineageEntry, bool, error) {
	for i := 0; i < len(entries) && i+1 < limit; i++ {
		from, ok := cameFrom(&entries[i].Entry)
		if !ok || i+1 < len(entries) && entries[i+1].Scope == from { // the latter is done
			continue
		}
		p, err := n.archive(from)
		if err != nil {
			return nil, false, err
		}
		if p == nil { // these entries are at another node
			continue
		}
		o, err := p.Object(ctx, entries[i].Object.String(), limit-i-1, false)
		if errors.Is(err, ErrNoObject) { // it has another identity here
			continue
		}
		if err != nil {
			return nil, false, err
		}
		entries = slices.Insert(entries, i+1, o.Deeds...)
		if more = more || o.More; len(entries) > limit {
			entries, more = entries[:limit], true
		}
	}
	return entries, more, nil
}

// awaitHome waits until the keys of a scope that closed are those of the scope above. The error wraps machine.ErrBusy
// if that takes too long.
func (n *Node) awaitHome(ctx context.Context, above owner, d scope.Delegation) error {
	if above.remote != nil {
		above.remote.forget(d.Child) // which tells whether it has the keys
		return nil
	}
	for {
		changed := n.Changed()
		if !delegates(above.delegations(), d.Child) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: the keys of %q are on their way to the scope above, and nothing was done; try again", machine.ErrBusy, d.Prefix)
		case <-above.replica.runner.replies.done:
			return above.replica.runner.replies.stopped
		}
	}
}

// delegationTo is the delegation to a child among some, nil if there is none.
func delegationTo(all []scope.Delegation, child aweigh.ScopeID) *scope.Delegation {
	for i := range all {
		if all[i].Child == child {
			return &all[i]
		}
	}
	return nil
}

// delegates reports whether a child is among delegations.
func delegates(all []scope.Delegation, child aweigh.ScopeID) bool {
	return delegationTo(all, child) != nil
}
