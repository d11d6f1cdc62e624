package node

import (
	"sync"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestKeepAlivesShareRounds: of many who ask at a time, each gets its own answer,
// and few mutations are made.
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
				ttls, err := n.KeepAlive(ctx, []int64{id + 1})
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
	if ids, err := v.Leases(); err != nil || len(ids) != 3 || v.LeaseDue() > v.Head().Time.Add(time.Minute+time.Second) {
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
	deeds, _, _, err := n.Lineage(ctx, []byte("/leased"), 10)
	if err != nil || len(deeds) != 2 || deeds[0].Reason != "lease 2b expired" || deeds[1].Class != lineage.Insert {
		t.Errorf("%+v, %v", deeds, err)
	}
}
