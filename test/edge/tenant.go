package edge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// leaseState is a lease and its key, as its client knows it.
type leaseState struct {
	key     string
	ttl     time.Duration
	renewed time.Time // when the last renewal that was acknowledged was asked for
	tried   time.Time // when the last request that may have renewed it ended
	revoked bool      // or may be
}

// tenancies are those of all clients.
type tenancies struct {
	mu  sync.Mutex
	all []*leaseState
}

const (
	tenantTTL  = 6                // seconds, of most leases
	leaseSlack = 15 * time.Second // after its end, within which the keys of a lease must be gone
)

// tenant grants leases, attaches a key to each and keeps it alive for a while, until ctx ends.
func (w *world) tenant(number int) func(context.Context) {
	return func(ctx context.Context) {
		c := w.newClient(1000 + number)
		for i := 0; c.pause(ctx); i++ {
			under := w.plan.Under[c.r.IntN(len(w.plan.Under))]
			c.lease(ctx, fmt.Sprintf("%slease/%d.%d", under, number, i))
		}
	}
}

// lease is one lease, from its grant to its end.
func (c *client) lease(ctx context.Context, k string) {
	ttl := int64(tenantTTL + c.r.IntN(4))
	t := &leaseState{key: k, ttl: time.Duration(ttl) * time.Second, renewed: time.Now()}
	var id int64
	if !c.w.call(c.seat(), "grant", 5*time.Second, func(ctx context.Context, n *node.Node) (err error) {
		var r machine.Receipt
		id, r, err = n.Root().Grant(ctx, 0, ttl, node.Once{})
		return applied(r, err)
	}) {
		return
	}
	t.tried = time.Now()
	op := put(k, "leased")
	op.Lease = id
	if !c.w.call(c.seat(), "attaching "+k, 4*time.Second, func(ctx context.Context, n *node.Node) error {
		r, err := n.Txn(ctx, scope.Txn{Success: []scope.Op{op}}, c.once())
		t.tried = time.Now()
		if err == nil && r.Code == scope.Failed && errors.Is(scope.Failure(r.Reason), scope.ErrLeaseNotFound) && time.Since(t.renewed) > t.ttl {
			return errGone
		}
		return applied(r, err)
	}) {
		return
	}
	c.w.leases.mu.Lock()
	c.w.leases.all = append(c.w.leases.all, t)
	c.w.leases.mu.Unlock()
	c.w.count("leases", 1)
	for range c.r.IntN(6) {
		if !rest(ctx, t.ttl/3) || !c.renew(t, id) {
			return
		}
	}
	if c.r.IntN(3) == 0 {
		t.revoked = true
		c.w.call(c.seat(), "revoking", 5*time.Second, func(ctx context.Context, n *node.Node) error {
			r, err := n.Revoke(ctx, id, node.Once{})
			if err == nil && r.Code == scope.Failed {
				return errGone
			}
			return applied(r, err)
		})
	}
}

// renew keeps a lease alive. It reports false if there is none any more.
func (c *client) renew(t *leaseState, id int64) bool {
	began, gone := time.Now(), false
	ok := c.w.call(c.seat(), "keeping alive", 3*time.Second, func(ctx context.Context, n *node.Node) error {
		ttls, err := n.KeepAlive(ctx, []int64{id})
		if err == nil && len(ttls) == 1 && ttls[0] == 0 {
			gone = true
		}
		if errors.Is(err, scope.ErrLeaseNotFound) {
			gone, err = true, errGone
		}
		return err
	})
	t.tried = time.Now().Add(10 * time.Second) // a round goes on without its callers
	if gone {
		if since := time.Since(t.renewed); since < t.ttl {
			c.w.fail("lease", "the lease of %s is gone %v after its last renewal", t.key, since)
		}
		return false
	}
	if ok {
		t.renewed, t.tried = began, time.Now()
		c.w.count("renewals", 1)
	}
	return true
}

// judgeLeases holds the deletions of leased keys to what clients asked for. All leases must be over.
func (w *world) judgeLeases() {
	for _, t := range w.leases.all {
		at := w.truth.deletions(t.key)
		switch {
		case len(at) == 0:
			w.fail("lease", "%s is still there %v after its lease was last kept alive, at %v for %v", t.key, time.Since(t.tried), w.since(t.renewed), t.ttl)
		case len(at) > 1:
			w.fail("lease", "%s was deleted %d times", t.key, len(at))
		case !t.revoked && at[0].Before(t.renewed.Add(t.ttl)):
			w.fail("lease", "%s was deleted at %v, and its lease was kept alive at %v for %v", t.key, w.since(at[0]), w.since(t.renewed), t.ttl)
		}
	}
}
