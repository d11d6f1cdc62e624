package node

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/aweigh/aweigh/scope"
)

// Where a network has several scopes, a revision that a client heard of one of them may
// be later than all that another has decided. What the other is as of that revision can
// be said once it is closed up to there, and one at rest is asked for an empty block.

// Closed is the highest revision up to which this node's state of any scope is closed, so
// that no client heard of a later one here; 0 where there is one scope only. A scope whose
// anchors let its time run ahead of this node's clock counts up to now: no other could
// close that far.
func (n *Node) Closed(ctx context.Context) (highest int64) {
	if len(*n.given.Load()) == 0 {
		return 0
	}
	now := n.runner.now().Add(n.roll.epoch().Policy.Limits.Drift)
	for _, p := range n.Parts() {
		if h, err := p.head(ctx); err == nil { // otherwise it has no state to tell of
			highest = max(highest, min(h.Closed(), scope.ClockRevision(h.Started, now)))
		}
	}
	n.foreigners.mu.Lock()
	defer n.foreigners.mu.Unlock()
	for _, f := range n.foreigners.all {
		f.mu.Lock()
		highest = max(highest, min(f.knows.newest, scope.ClockRevision(f.genesis.Descent.Started, now)))
		f.mu.Unlock()
	}
	return highest
}

// Close asks the scopes of those legs to close that are not done up to a revision. It
// does not wait.
func Close(ctx context.Context, legs []*Leg, revision int64) {
	for _, l := range legs {
		switch {
		case l.Done() >= revision:
		case l.tap != nil:
			l.tap.close(revision)
		default:
			l.Part.closing.ask(ctx, l.Part)
		}
	}
}

// closed waits until the scope is closed up to a revision of the network's. One that is
// later than all that this node knows of is for the caller to refuse.
func (n *Node) closed(ctx context.Context, p *Part, revision int64) error {
	return n.closedKnowing(ctx, p, revision, 0)
}

// closedKnowing is closed where it is known that a scope is closed up to some revision.
func (n *Node) closedKnowing(ctx context.Context, p *Part, revision, known int64) error {
	for {
		changed := n.Changed() // before reading, so that nothing falls in between
		h, err := p.head(ctx)
		if err != nil || h.Closed() >= revision {
			return err
		}
		if known < revision {
			known = n.Closed(ctx)
		}
		if known < revision {
			return nil
		}
		p.closing.ask(ctx, p)
		select {
		case <-changed:
		case <-time.After(CloseEvery): // it did close, and not far enough by the clock of who leads
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// CloseEvery is how often, at most, a scope is asked to close revisions.
const CloseEvery = 50 * time.Millisecond

// closing keeps those who ask a scope to close revisions from asking all at once.
type closing struct{ asking atomic.Bool }

// ask has the scope make a block, by whose time it is closed up to about now. It does
// not wait.
func (c *closing) ask(ctx context.Context, p *Part) {
	if !c.asking.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer c.asking.Store(false)
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_, err := p.Txn(ctx, scope.Txn{}, Once{Justification: "to close revisions for whoever heard of another scope's"})
		if !errors.Is(err, context.Canceled) {
			time.Sleep(CloseEvery)
		}
	}()
}
