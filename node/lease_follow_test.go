package node

import (
	"context"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestLeasesReachScopesThatAreNotHeld: a node that holds the root scope alone attaches keys of others to
// leases and keeps one alive. Its key outlives the time for which the chain records a lease, the other's does not; a
// revocation reaches it at once.
func TestLeasesReachScopesThatAreNotHeld(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c, _, o := newRegions(t, quorum.BFT)
	ctx, cancel := context.WithTimeout(t.Context(), 2*testwait.Patience)
	defer cancel()
	const ttl = 6 // seconds: the machine of a test may be busy
	put := func(key string, lease int64) machine.Receipt {
		t.Helper()
		txn := putTxn(key, "v")
		txn.Success[0].Lease = lease
		r, err := o.Txn(ctx, txn, Once{})
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		return r
	}
	there := func(key string) bool {
		t.Helper()
		r, _, err := c.nodes[1].Range(ctx, []byte(key), nil, scope.Range{}, true)
		if err != nil {
			t.Fatal(err)
		}
		return len(r.Kvs) == 1
	}
	for id := int64(1); id <= 2; id++ {
		if _, r, err := o.root.Grant(ctx, id, ttl, Once{}); err != nil || r.Code != scope.Applied {
			t.Fatal(r, err)
		}
	}
	for key, lease := range map[string]int64{"/b/kept": 1, "/b/c/kept": 1, "/b/left": 2} {
		if r := put(key, lease); r.Code != scope.Applied {
			t.Fatalf("%s: %+v", key, r)
		}
	}
	if r := put("/b/none", 3); r.Code != scope.Failed || there("/b/none") {
		t.Errorf("with a lease that is not there: %+v", r)
	}
	for until := time.Now().Add(ttl*time.Second*3/2 + 5*time.Second/2); time.Now().Before(until); time.Sleep(ttl * time.Second / 4) { // as a client keeps a lease
		if ttls, err := o.KeepAlive(ctx, []int64{1}); err != nil || ttls[0] != ttl {
			t.Fatal(ttls, err)
		}
		for _, key := range []string{"/b/kept", "/b/c/kept"} {
			if !there(key) {
				t.Fatalf("%s is gone", key)
			}
		}
	}
	testwait.Until(t, "the end of the lease without a keep-alive", func() bool { return !there("/b/left") })
	const long = 5 // which another node made known in the scope
	if _, r, err := o.root.Grant(ctx, long, 600, Once{}); err != nil || r.Code != scope.Applied {
		t.Fatal(r, err)
	}
	txn := putTxn("/b/others", "v")
	txn.Success[0].Lease = long
	if r, err := c.nodes[1].Txn(ctx, txn, Once{}); err != nil || r.Code != scope.Applied {
		t.Fatal(r, err)
	}
	if r := put("/b/long", long); r.Code != scope.Applied {
		t.Fatal(r)
	}
	for _, id := range []int64{1, long} {
		if _, err := o.Revoke(ctx, id, Once{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"/b/kept", "/b/c/kept", "/b/others", "/b/long"} {
		testwait.Until(t, key+" goes with its lease", func() bool { return !there(key) })
	}
}
