package node

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestKeepAlivesShareRounds: of many renewals at a time, each gets its own answer, and few mutations are made.
func TestKeepAlivesShareRounds(t *testing.T) {
	testshort.Skip(t)
	c := startCluster(t, 4, quorum.BFT)
	n := c.nodes[0]
	ctx := t.Context()
	const leases = 40
	var group sync.WaitGroup
	for id := range int64(leases) {
		group.Go(func() {
			if got, r, err := n.root.Grant(ctx, id+1, 100+id, Once{}); err != nil || r.Code != scope.Applied || got != id+1 {
				t.Errorf("lease %d: %+v, %v", id+1, r, err)
			}
		})
	}
	group.Wait()
	before := n.root.runner.counts.mutations.Load()
	const each = 10
	for id := range int64(leases + 1) { // the last is not there
		group.Go(func() {
			for range each {
				ttls, err := n.root.renew(ctx, []int64{id + 1})
				if want := 100 + id; err != nil || len(ttls) != 1 || ttls[0] != want && (id < leases || ttls[0] != 0) {
					t.Errorf("lease %d lasts %v, %v", id+1, ttls, err)
				}
			}
		})
	}
	group.Wait()
	made := n.root.runner.counts.mutations.Load() - before
	t.Logf("%d keep-alives in %d mutations", (leases+1)*each, made)
	if made > leases*each/4 {
		t.Errorf("%d keep-alives took %d mutations", (leases+1)*each, made)
	}
}

// TestKeepAlivesInTimeNeedNoBlock: a lease that lasts for its whole TTL already is kept alive by a read alone; in the
// second half of its TTL it is renewed, together with others that need it; a lease that is not there has no TTL.
func TestKeepAlivesInTimeNeedNoBlock(t *testing.T) {
	testshort.Skip(t)
	c := startCluster(t, 4, quorum.BFT)
	n, ctx := c.nodes[0], t.Context()
	for id, ttl := range map[int64]int64{1: 100, 2: 4} { // order-free
		if _, r, err := n.root.Grant(ctx, id, ttl, Once{}); err != nil || r.Code != scope.Applied {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	keep := func(want int64) (made int64) {
		t.Helper()
		before := n.root.runner.counts.mutations.Load()
		ttls, err := n.KeepAlive(ctx, []int64{1, 2, 3})
		if err != nil || !slices.Equal(ttls, []int64{100, want, 0}) {
			t.Fatalf("the TTLs are %v, %v", ttls, err)
		}
		return int64(n.root.runner.counts.mutations.Load() - before)
	}
	height := n.root.LastHead().Height
	for range 20 {
		if _, err := n.KeepAlive(ctx, []int64{1, 3}); err != nil {
			t.Fatal(err)
		}
	}
	if h := n.root.LastHead().Height; h != height {
		t.Errorf("keep-alives of a fresh lease took %d blocks", h-height)
	}
	expires := func(id int64) aweigh.Instant {
		t.Helper()
		g, ok, err := n.root.granted(ctx, id)
		if err != nil || !ok {
			t.Fatalf("lease %d: %v, %v", id, ok, err)
		}
		return g.Expires
	}
	first := expires(2)
	testwait.Until(t, "the second half of the lease's TTL", func() bool { return n.root.runner.now() > first.Add(-4*time.Second) })
	if made := keep(4); made != 1 || expires(2) <= first {
		t.Errorf("%d mutations kept it alive, from %d to %d", made, first, expires(2))
	}
}

// TestSlowClocksKeepLeasesAlive: a node whose clock is behind, as after its machine was suspended, renews leases in
// time by the clocks of the anchors that answer its reads.
func TestSlowClocksKeepLeasesAlive(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c := startClusterWith(t, 4, quorum.BFT, func(i int, n *Node) {
		if i == 0 {
			n.root.runner.began = n.root.runner.began.Add(-time.Hour)
		}
	})
	n, ctx := c.nodes[0], t.Context()
	if _, r, err := c.nodes[1].root.Grant(ctx, 1, 4, Once{}); err != nil || r.Code != scope.Applied {
		t.Fatalf("%+v, %v", r, err)
	}
	for end := time.Now().Add(8 * time.Second); time.Now().Before(end); time.Sleep(time.Second) { // as a client does
		if ttls, err := n.KeepAlive(ctx, []int64{1}); err != nil || ttls[0] != 4 {
			t.Fatalf("the TTL is %v, %v", ttls, err)
		}
	}
}

// TestNodeChoosesLeases: of ID 0 it makes another one each time.
func TestNodeChoosesLeases(t *testing.T) {
	c := startCluster(t, 1, quorum.BFT)
	seen := make(map[int64]bool)
	for range 3 {
		id, r, err := c.nodes[0].root.Grant(t.Context(), 0, 60, Once{})
		if err != nil || r.Code != scope.Applied || id <= 0 || seen[id] || r.TTLs[0] != 60 {
			t.Fatalf("lease %d: %+v, %v", id, r, err)
		}
		seen[id] = true
	}
	if _, _, err := c.nodes[0].root.Grant(t.Context(), 0, scope.MaxLeaseTTL+1, Once{}); err != scope.ErrLeaseTTL {
		t.Errorf("too long: %v", err)
	}
	v, err := c.nodes[0].root.Read(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if ids, err := v.Leases(); err != nil || len(ids) != 3 || v.LeaseDue() > v.Head().Time.Add(91*time.Second) {
		t.Errorf("%v, %v, due at %d", ids, err, v.LeaseDue())
	}
}

// TestEndOfALeaseIsProven: that nobody asked for the end of a key, and why it went,
// is proven offline like any other change.
func TestEndOfALeaseIsProven(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c := startCluster(t, 4, quorum.BFT)
	n, ctx := c.nodes[0], t.Context()
	if _, _, err := n.root.Grant(ctx, 0x2b, 5, Once{}); err != nil {
		t.Fatal(err)
	}
	op := scope.Op{Kind: scope.OpPut, Key: []byte("/leased"), Lease: 0x2b}
	if _, err := n.Txn(ctx, scope.Txn{Success: []scope.Op{op}}, Once{}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(testwait.Patience); ; {
		changed := n.Changed()
		p, _, err := n.Prove(ctx, []byte("/leased"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Verify(n.root.id)
		if err != nil {
			t.Fatal(err)
		}
		if r.Entry.Class == lineage.Delete {
			if r.Entry.Reason != "lease 2b expired" || !r.Entry.Mutation.IsZero() || r.Kv != nil {
				t.Errorf("it is proven that %+v", r.Entry)
			}
			break
		}
		select {
		case <-changed:
		case <-time.After(time.Until(end)):
			t.Fatal("the lease does not end")
		}
	}
	l, _, err := n.Lineage(ctx, []byte("/leased"), 10)
	if err != nil || len(l.Entries) != 2 || l.Entries[0].Reason != "lease 2b expired" || l.Entries[1].Class != lineage.Insert {
		t.Errorf("%+v, %v", l, err)
	}
}
