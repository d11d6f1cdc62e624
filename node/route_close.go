package node

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/aweigh/aweigh/scope"
)

// If a network has several scopes, a revision that a client knows from one of them may be later than everything that
// another scope has decided. The state of the other scope as of that revision is certain once the scope is closed up
// to there; an idle scope is asked for an empty block.

// ClosedTimestamp returns the highest revision up to which this node's state of any scope is closed, so that no client
// knows a later one from here; 0 if there is only one scope. A scope whose anchors let its time run ahead of this
// node's clock counts up to now, because no other scope could close that far.
func (n *Node) ClosedTimestamp(ctx context.Context) (highest int64) {
	if len(n.root.Delegations()) == 0 {
		return 0
	}
	now := n.root.runner.now().Add(n.root.epochs.epoch().Policy.Limits.Drift)
	for _, p := range n.Replicas() {
		if h, err := p.head(ctx); err == nil { // otherwise it has no state
			highest = max(highest, min(h.ClosedTimestamp(), scope.ClockRevision(h.Started, now)))
		}
	}
	n.remotes.mu.Lock()
	defer n.remotes.mu.Unlock()
	for _, f := range n.remotes.all {
		f.mu.Lock()
		highest = max(highest, min(f.knows.Newest(), scope.ClockRevision(f.genesis.Descent.Started, now)))
		f.mu.Unlock()
	}
	return highest
}

// Close asks the scopes of those segments to close that are not done up to a revision. It does not wait.
func Close(ctx context.Context, segments []*WatchSegment, revision int64) {
	for _, l := range segments {
		switch {
		case l.Done() >= revision:
		case l.remote != nil:
			l.remote.close(revision)
		default:
			l.Part.closing.ask(ctx, l.Part)
		}
	}
}

// closed waits until the scope is closed up to a revision of the network. The caller must refuse a revision that is
// later than all that this node knows of.
func (n *Node) closed(ctx context.Context, p *Replica, revision int64) error {
	return n.closedKnowing(ctx, p, revision, 0)
}

// closedKnowing is closed for callers that know a revision up to which some scope is closed.
func (n *Node) closedKnowing(ctx context.Context, p *Replica, revision, known int64) error {
	for {
		changed := n.Changed() // before reading, so that nothing falls in between
		h, err := p.head(ctx)
		if err != nil || h.ClosedTimestamp() >= revision || h.Closed {
			return err
		}
		if known < revision {
			known = n.ClosedTimestamp(ctx)
		}
		if known < revision {
			return nil
		}
		p.closing.ask(ctx, p)
		select {
		case <-changed:
		case <-time.After(CloseEvery): // it did close, but not far enough by the leader's clock
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// CloseEvery is how often, at most, a scope is asked to close revisions.
const CloseEvery = 50 * time.Millisecond

// closing keeps several requests to close revisions of a scope from asking at once.
type closing struct{ asking atomic.Bool }

// ask makes the scope produce a block, whose time closes the scope up to about now. It does not wait.
func (c *closing) ask(ctx context.Context, p *Replica) {
	if !c.asking.CompareAndSwap(false, true) {
		return
	}
	asks := func(closing context.Context) {
		defer c.asking.Store(false)
		ctx, stop := p.of.tasks.within(ctx)
		defer stop()
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_, err := p.Txn(ctx, scope.Txn{}, Once{Justification: "to close revisions that clients know from other scopes"})
		if !errors.Is(err, context.Canceled) {
			select {
			case <-time.After(CloseEvery):
			case <-closing.Done():
			}
		}
	}
	if !p.of.tasks.start("closing revisions", asks) {
		c.asking.Store(false)
	}
}
