package etcd

import (
	"bytes"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/scope"
)

// nested is a transaction with so many levels below it.
func nested(levels int) *etcdpb.TxnRequest {
	r := &etcdpb.TxnRequest{Success: []*etcdpb.RequestOp{putOp("k")}}
	for range levels {
		r = &etcdpb.TxnRequest{Success: []*etcdpb.RequestOp{{Request: &etcdpb.RequestOp_RequestTxn{RequestTxn: r}}}}
	}
	return r
}

// TestBoundsOfKeysAndLevelsAreThePolicys: by default and as a policy has them, with one text wherever the bound is met.
func TestBoundsOfKeysAndLevelsAreThePolicys(t *testing.T) {
	for _, c := range []struct {
		key, depth int
		change     func(*scope.Policy)
	}{
		{1024, 3, func(*scope.Policy) {}},
		{8000, 8, func(p *scope.Policy) { p.Limits.KeyBytes, p.Limits.TxnDepth = 8000, 8 }},
		{10, 1, func(p *scope.Policy) { p.Limits.KeyBytes, p.Limits.TxnDepth = 10, 1 }},
	} {
		w := newWorld(t, 1, Config{}, c.change)
		long := bytes.Repeat([]byte("k"), c.key)
		if err := second(w.Put(w.ctx, &etcdpb.PutRequest{Key: long})); err != nil {
			t.Errorf("a key of %d bytes: %v", c.key, err)
		}
		if r, err := w.Range(w.ctx, &etcdpb.RangeRequest{Key: long}); err != nil || len(r.Kvs) != 1 {
			t.Errorf("a key of %d bytes: %v, %v", c.key, r, err)
		}
		says(t, "a longer key", second(w.Put(w.ctx, &etcdpb.PutRequest{Key: append(long, 'k')})), codes.InvalidArgument,
			fmt.Sprintf("aweigh: a key of %d bytes, at most %d are taken", c.key+1, c.key))
		if r, err := w.Txn(w.ctx, nested(c.depth)); err != nil || !r.Succeeded {
			t.Errorf("%d levels: %v, %v", c.depth, r, err)
		}
		for _, levels := range []int{c.depth + 1, c.depth + 2, 9, 20} {
			says(t, fmt.Sprint(levels, " levels"), second(w.Txn(w.ctx, nested(levels))), codes.InvalidArgument,
				fmt.Sprintf("aweigh: transactions nested deeper than %d, which is the policy's limits.txn_depth", c.depth))
		}
	}
}

// TestPutsThatCrossTheQuotaAreRefused: as in etcd, and not the next one after it.
func TestPutsThatCrossTheQuotaAreRefused(t *testing.T) {
	w := newWorld(t, 1, Config{}, func(p *scope.Policy) { p.Limits.ScopeBytes = 100_000 })
	put := func(size int) error {
		return second(w.Put(w.ctx, &etcdpb.PutRequest{Key: []byte("k"), Value: make([]byte, size)}))
	}
	const full = "etcdserver: mvcc: database space exceeded"
	if err := put(60_000); err != nil {
		t.Fatal(err)
	}
	says(t, "what does not fit", put(60_000), codes.ResourceExhausted, full)
	if err := put(30_000); err != nil {
		t.Errorf("what fits: %v", err)
	}
	if h := w.node.Root().LastHead(); h.Bytes > 100_000 {
		t.Errorf("%d bytes", h.Bytes)
	}
}

// TestWatchesThatCatchUpTellTheStoresRevision: in the header of each answer, as etcd does.
func TestWatchesThatCatchUpTellTheStoresRevision(t *testing.T) {
	w := newWorld(t, 1, Config{})
	first := w.put(t, "k", nil)
	last := first
	for range 3 * firstMost {
		last = w.put(t, "k", nil)
	}
	s := w.watching(t, w.ctx)
	s.create(&etcdpb.WatchCreateRequest{Key: []byte("k"), StartRevision: first})
	for next := first; next <= last; {
		r := s.next()
		if len(r.Events) == 0 || r.Events[0].Kv.ModRevision != next || r.Header.Revision != last {
			t.Fatalf("%d events from %d on, as of %d; want those from %d on, as of %d", len(r.Events), r.Events[0].Kv.ModRevision, r.Header.Revision, next, last)
		}
		next = r.Events[len(r.Events)-1].Kv.ModRevision + 1
	}
}

// TestLimitsAreThoseOfTheScopeOfTheKeys: a scope below may allow longer values than the scope above, and deeper
// transactions.
func TestLimitsAreThoseOfTheScopeOfTheKeys(t *testing.T) {
	w := newWorld(t, 1, Config{}, func(p *scope.Policy) { p.Limits.ValueBytes, p.Limits.TxnDepth = 100, 1 })
	w.delegate(t, "", "/b/")
	put := func(key string) error {
		return second(w.Put(w.ctx, &etcdpb.PutRequest{Key: []byte(key), Value: make([]byte, 200)}))
	}
	if err := put("/b/1"); err != nil {
		t.Errorf("a value that the scope below takes: %v", err)
	}
	if err := put("/a/1"); err == nil {
		t.Error("a value that the scope above does not take is taken there")
	}
	deep := &etcdpb.TxnRequest{Success: []*etcdpb.RequestOp{putOp("/b/2")}}
	for range 3 {
		deep = &etcdpb.TxnRequest{Success: []*etcdpb.RequestOp{{Request: &etcdpb.RequestOp_RequestTxn{RequestTxn: deep}}}}
	}
	if r, err := w.Txn(w.ctx, deep); err != nil || !r.Succeeded {
		t.Errorf("three levels where the scope takes as many: %v, %v", r, err)
	}
}
