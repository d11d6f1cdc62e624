package edge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// below is the prefix that gets a scope of its own.
const below = "/b/"

// delegate has the anchors hand a prefix to some of them, and goes on until all nodes know it.
func (w *world) delegate(ctx context.Context) {
	if !rest(ctx, w.plan.Length/4) {
		return
	}
	child := scope.Child{Prefix: []byte(below), Policy: scope.OpenPolicy(quorum.Crash)}
	child.Policy.Limits.TTL = 2 * time.Second
	if w.chance.of("copies").below(3) > 0 {
		child.Policy.Limits.TTL = 5 * time.Second // for which nodes make copies
	}
	child.Anchors = w.genesis.Anchors[:3]
	d := scope.Decision{Kind: scope.Delegate, Child: &child}
	for ctx.Err() == nil {
		known := 0
		for _, s := range w.seats {
			if n := s.node(); n != nil && len(n.Root().Delegations()) > 0 {
				known++
				continue
			}
			if s.anchor == nil {
				continue
			}
			w.call(s, "delegating", 5*time.Second, func(ctx context.Context, n *node.Node) error {
				_, err := n.Root().Govern(ctx, d, node.Once{})
				if errors.Is(err, scope.ErrInvalid) { // it was done meanwhile
					err = errGone
				}
				return err
			})
		}
		if known == len(w.seats) {
			w.count("scopes", 1)
			return
		}
		rest(ctx, time.Second)
	}
}

// compact drops old revisions now and then, that the committed history has.
func (w *world) compact(ctx context.Context) {
	r := w.chance.of("compact").stream()
	for rest(ctx, time.Duration(2000+r.IntN(4000))*time.Millisecond) {
		s, revision := w.seats[r.IntN(len(w.seats))], w.truth.latest()-int64(r.IntN(40))
		if w.plan.scopes() {
			revision = w.truth.someRevision(r)
		}
		if revision < 2 {
			continue
		}
		w.mu.Lock()
		w.compacted = max(w.compacted, revision)
		w.mu.Unlock()
		w.call(s, "compacting", 5*time.Second, func(ctx context.Context, n *node.Node) error {
			r, err := n.Compact(ctx, revision, node.Once{})
			if err == nil && r.Code == scope.Failed {
				return errGone
			}
			return applied(r, err)
		})
	}
}

// longChain is how many blocks a node lacks that is not given all of them at once: so it fetches a snapshot.
const longChain = 360

// join starts the node that joins late. In worlds with a long chain it finds one too long to fetch by blocks, and while
// it fetches a snapshot one of those that give it is killed.
func (w *world) join(ctx context.Context) {
	late := w.seats[len(w.seats)-1]
	if w.plan.Long {
		c := w.newClient(3000)
		for i := 0; i < longChain && ctx.Err() == nil; i++ {
			s := w.seats[i/50%w.plan.Anchors]
			w.call(s, "a write of many", 5*time.Second, func(ctx context.Context, n *node.Node) error {
				r, err := n.Txn(ctx, scope.Txn{Success: []scope.Op{put(fmt.Sprintf("/long/%03d", i), c.value())}}, node.Once{})
				return applied(r, err)
			})
		}
	} else if !rest(ctx, w.plan.Length/2) {
		return
	}
	w.count("late nodes", 1)
	w.start(late)
	if r := w.chance.of("killed giver").stream(); w.plan.Long && r.IntN(2) == 0 && rest(ctx, time.Duration(r.IntN(4000))*time.Millisecond) {
		w.down(ctx, w.seats[r.IntN(w.plan.Anchors)], true, time.Second, "killed givers")
	}
}
