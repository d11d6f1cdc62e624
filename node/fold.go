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
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// A scope that is ordered to come home closes, and takes no more requests. The nodes of anchors of the scope above that
// hold it bring what it held: the first of them at once, and each other one only if those before it make no headway.
// Meanwhile requests for its keys wait. Once the keys are those of the scope above, its replica is of no more use.

const (
	// foldTick is how often, at most, a node looks whether a scope is to be brought home.
	foldTick = 50 * time.Millisecond
	// bringTurn is how much later the next anchor begins.
	bringTurn = time.Second
	// bringPause is how long an anchor waits after an attempt that came too early, or failed.
	bringPause = 200 * time.Millisecond
	// mostBringPause is how long it waits after several of them.
	mostBringPause = 5 * time.Second
	// foldRest is how long the replica of a scope that came home stays open, so that other nodes can read its last
	// blocks.
	foldRest = time.Minute
	// foldLate is the same for a replica that has not read them itself.
	foldLate = 10 * time.Minute
)

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

// throughFolds adds to the entries about an object, newest first, those of scopes from which it came home. Of more than
// limit entries, it leaves the newest.
func (n *Node) throughFolds(ctx context.Context, entries []LineageEntry, more bool, limit int) ([]LineageEntry, bool, error) {
	for i := 0; i < len(entries) && i+1 < limit; i++ {
		from, ok := scope.ParseHome(entries[i].Reason)
		if entries[i].Class != lineage.CameHome || !ok || i+1 < len(entries) && entries[i+1].Scope == from { // the latter is done
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

// delegates reports whether a child is among delegations.
func delegates(all []scope.Delegation, child aweigh.ScopeID) bool {
	return slices.ContainsFunc(all, func(d scope.Delegation) bool { return d.Child == child })
}

// tendFolds brings scopes home, and closes the replicas of those that came home. It looks after each change, but not
// all the time.
func (n *Node) tendFolds(ctx context.Context) {
	for {
		changed := n.Changed()
		pending := false
		for _, p := range n.Replicas() {
			for _, d := range p.Delegations() {
				pending = n.tendFold(p, d) || pending
			}
			waits, err := n.restFolded(ctx, p)
			if err != nil {
				n.stop(err)
			}
			pending = pending || waits
		}
		if !pending {
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
		if !n.root.pauseFor(ctx, foldTick) {
			return
		}
	}
}

// tendFold begins to bring a scope home, or to show that it is quiet, if it is this node's turn. It reports whether it
// is anyone's.
func (n *Node) tendFold(p *Replica, d scope.Delegation) bool {
	c := n.replica(d.Child)
	if c == nil || p.vacant.Load() {
		return false
	}
	if !comesHome(p, c, d) {
		n.folds.forget(d.Child)
		return false
	}
	rank := p.seatRank()
	n.folds.mu.Lock()
	defer n.folds.mu.Unlock()
	since := n.folds.first(d.Child)
	if rank >= 0 && !n.folds.busy[d.Child] && time.Since(since) >= time.Duration(rank)*bringTurn {
		n.folds.busy[d.Child] = n.spawn("bringing a scope home", func(ctx context.Context) { n.bring(ctx, p, c, d) })
	}
	return true
}

// comesHome reports whether a scope is to be brought home, or may ask for that and is quiet.
func comesHome(p, c *Replica, d scope.Delegation) bool {
	if d.Revocation != nil {
		return d.Revocation.Folds() && c.closed()
	}
	below := c.epochs.epoch()
	return p.epochs.epoch().TakesBack(&d, below) == nil
}

// seatRank is the place of this node's anchor among those of the scope that this node reaches, itself included; -1 if
// it is none of them.
func (n *Replica) seatRank() (rank int) {
	s := n.Status()
	if _, ok := s.Roster.Seat(s.Self); s.Self.IsZero() || !ok {
		return -1
	}
	says := n.anchorStates(s)
	for i := range s.Roster.Anchors {
		id := s.Roster.Anchors[i].Key.ID()
		if id == s.Self {
			break
		}
		if says[id].State == AnchorSigns {
			rank++
		}
	}
	return rank
}

// bring brings a scope home step by step, until the scope above has it, or has what it needs to order that.
func (n *Node) bring(ctx context.Context, p, c *Replica, d scope.Delegation) {
	defer func() {
		n.folds.mu.Lock()
		delete(n.folds.busy, d.Child)
		n.folds.mu.Unlock()
	}()
	src := &scope.HomeSource{Genesis: c.Genesis(), Handovers: c.History().Handovers}
	pause := bringPause
	for ctx.Err() == nil {
		changed := n.Changed()
		now := p.Delegations()
		at := slices.IndexFunc(now, func(x scope.Delegation) bool { return x.Child == d.Child })
		if at < 0 || !comesHome(p, c, now[at]) {
			return
		}
		done, err := n.bringNext(ctx, p, c, src)
		switch {
		case err != nil:
			p.log.Debug("a scope is not home yet", "scope", string(d.Prefix), "error", err)
			if !p.pauseFor(ctx, pause) {
				return
			}
			pause = min(2*pause, mostBringPause)
		case done: // the end of the epoch takes it
			select {
			case <-changed:
			case <-time.After(pause):
			case <-ctx.Done():
			}
			pause = min(2*pause, mostBringPause)
		default:
			pause = bringPause
		}
	}
}

// bringNext takes one step; done reports that nothing is left to bring.
func (n *Node) bringNext(ctx context.Context, p, c *Replica, src *scope.HomeSource) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Timeout)
	defer cancel()
	v, err := p.Read(ctx, false)
	if err != nil {
		return false, err
	}
	all, err := v.Homings()
	if err = errors.Join(err, v.Close()); err != nil {
		return false, err
	}
	at := slices.IndexFunc(all, func(h scope.Homing) bool { return h.Child == c.id })
	if at < 0 {
		return true, nil
	}
	last, err := c.Read(ctx, false)
	if err != nil {
		return false, err
	}
	src.State = last.State
	step, err := src.Next(&all[at], p.Limits().BringBytes())
	if err = errors.Join(err, last.Close()); err != nil || step == nil {
		return step == nil, err
	}
	m := p.mutation(scope.Bring, canon.Encode(step), p.filled(Once{Justification: "the scope comes home"}))
	s := &submission{ctx: ctx, mutation: m, alone: true, done: make(chan machine.Reply, 1)}
	r, err := p.attempt(ctx, s)
	if err == nil && r.Code != scope.Applied {
		err = scope.Failure(r.Reason) // another node was first, or it is too early
	}
	return false, err
}

// restFolded closes the replicas in scopes that came home to a replica's scope some time ago. waits reports whether
// some are still open.
func (n *Node) restFolded(ctx context.Context, p *Replica) (waits bool, err error) {
	if p.vacant.Load() {
		return false, nil
	}
	for _, f := range p.given.Load().Folds() {
		c := n.replica(f.Child)
		if c == nil || delegates(p.Delegations(), f.Child) {
			continue
		}
		rest := max(foldRest, c.epochs.epoch().Policy.Limits.ValidFor) // as long as a client may ask for a request again
		if !c.closed() {                                               // it still learns how its requests ended
			rest = foldLate
		}
		if !n.folds.over(f.Child, rest) {
			waits = true
			continue
		}
		p.log.Info("a scope came home, and its replica is closed", "scope", string(f.Prefix))
		n.growing.Lock()
		err := n.leave(ctx, c)
		n.growing.Unlock()
		if err != nil {
			return false, err
		}
	}
	return waits, nil
}
