package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// The nodes of anchors of the scope above that hold a scope which closed bring what it held: the first of them at once,
// and each other one only if those before it make no headway. Likewise they show that a scope is quiet which split off.
// Once the keys are those of the scope above, the replica is of no more use.

const (
	// foldTick is how often, at most, a node looks whether a scope is to be brought home.
	foldTick = 50 * time.Millisecond
	// restTick is how often it looks whether a replica of a scope that came home has been open for long enough.
	restTick = time.Second
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

// tendFolds brings scopes home, and closes the replicas of those that came home. It looks after each change, but not
// all the time.
func (n *Node) tendFolds(ctx context.Context) {
	for {
		changed := n.Changed()
		pending, rests := false, false
		for _, p := range n.Replicas() {
			for _, d := range p.Delegations() {
				pending = n.tendFold(p, d) || pending
			}
			waits, err := n.restFolded(ctx, p)
			if err != nil {
				n.stop(err)
			}
			rests = rests || waits
		}
		if !pending {
			var later <-chan time.Time
			if rests {
				later = time.After(restTick)
			}
			select {
			case <-changed:
			case <-later:
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
	if d.Revocation == nil && !d.ByItself || d.Revocation != nil && !d.Revocation.Folds() { // most stay
		return false
	}
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
	return p.epochs.epoch().TakesBack(&d, c.epochs.epoch()) == nil
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
		if now := delegationTo(p.Delegations(), d.Child); now == nil || !comesHome(p, c, *now) {
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
		// As long as a client may ask for a request again, and longer if this replica still learns how some ended.
		rest := max(foldRest, c.epochs.epoch().Policy.Limits.ValidFor)
		if !c.closed() {
			rest = max(rest, foldLate)
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
