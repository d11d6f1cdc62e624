package node

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

func TestReadsBetweenCommitsShareAState(t *testing.T) {
	n := startCluster(t, 1, quorum.BFT).nodes[0]
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	read := func() *View {
		t.Helper()
		v, err := n.root.Read(ctx, false)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	value := func(v *View) string {
		t.Helper()
		res, err := v.Range([]byte("k"), nil, scope.Range{})
		if err != nil || len(res.Kvs) != 1 {
			t.Fatalf("%v, %v", res, err)
		}
		return string(res.Kvs[0].Value)
	}
	put := func(s string) {
		t.Helper()
		if _, err := n.Txn(ctx, putTxn("k", s), Once{}); err != nil {
			t.Fatal(err)
		}
	}
	put("old")
	var a, b *View
	testwait.Until(t, "two reads between commits share a state", func() bool {
		a, b = read(), read()
		same := a.shared == b.shared
		if !same { // the anchor still signs
			a.Close()
			b.Close()
		}
		return same
	})
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	put("new")
	c := read()
	if got := value(a); got != "old" {
		t.Errorf("a view that is open shows %q after a commit", got)
	}
	if got := value(c); got != "new" {
		t.Errorf("a view opened after a commit shows %q", got)
	}
	shared := a.shared
	for _, v := range []*View{a, c} {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
	if shared.uses != 0 {
		t.Errorf("a state that nobody reads is held %d times", shared.uses)
	}
	put("newer") // it is prepared, as the one before was read, and is not read
	put("newest")
	testwait.Until(t, "the state before is let go", func() bool {
		n.root.views.mu.Lock()
		defer n.root.views.mu.Unlock()
		return n.root.views.newest == nil
	})
}

// TestResolvingKnowsTheNamesOfItsState: how many names there are to look for is read once
// for each state. A view tells what was there when it was opened, whatever others tell.
func TestResolvingKnowsTheNamesOfItsState(t *testing.T) {
	n := startCluster(t, 1, quorum.BFT).nodes[0]
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	want := func(v *View, key string, number int64) {
		t.Helper()
		r, ok, err := v.Resolve([]byte(key))
		if err != nil || ok != (number > 0) || r.Number != number || r.Claims != ok {
			t.Errorf("%s is %+v, %v, want version %d", key, r, err, number)
		}
	}
	read := func() *View {
		t.Helper()
		v, err := n.root.Read(ctx, false)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	applied := func(r machine.Receipt, err error) {
		t.Helper()
		if err != nil || r.Code != scope.Applied {
			t.Fatal(r, err)
		}
	}
	applied(n.Txn(ctx, putTxn("a", "1"), Once{}))
	applied(n.Txn(ctx, putTxn("a", "2"), Once{}))
	before := read()
	want(before, "a", 2)
	applied(n.Naming(ctx, scope.Naming{Kind: scope.Bind, Key: []byte("a"), To: []byte("b")}, Once{}))
	applied(n.Txn(ctx, putTxn("b", "3"), Once{}))
	bound := read()
	applied(n.Txn(ctx, scope.Txn{Success: []scope.Op{{Kind: scope.OpDelete, Key: []byte("a"), End: []byte("c")}}}, Once{}))
	applied(n.Txn(ctx, putTxn("b", "1"), Once{}))
	after := read()
	for range 2 {
		want(before, "a", 2)
		want(before, "b", 0)
		want(bound, "a", 3)
		want(bound, "b", 3)
		want(after, "a", 0)
		want(after, "b", 1)
	}
	for _, v := range []*View{before, bound, after} {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A node that says that a write is final shows it to whoever reads from then on,
// also while others write and read.
func TestReadsSeeWhatWasWrittenBefore(t *testing.T) {
	n := startCluster(t, 1, quorum.BFT).nodes[0]
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 40 {
				r, err := n.Txn(ctx, putTxn(fmt.Sprint(i), fmt.Sprint(j)), Once{})
				if err != nil {
					t.Error(err)
					return
				}
				v, err := n.root.Read(ctx, j%2 == 0)
				if err != nil {
					t.Error(err)
					return
				}
				res, err := v.Range([]byte(fmt.Sprint(i)), nil, scope.Range{})
				if err != nil || len(res.Kvs) != 1 || string(res.Kvs[0].Value) != fmt.Sprint(j) || v.Head().Revision < r.Revision {
					t.Errorf("after write %d at revision %d came %v at %d, %v", j, r.Revision, res.Kvs, v.Head().Revision, err)
				}
				if err := v.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// A commit that has returned is in every state that is opened from then on,
// whatever it was about.
func TestNoStateIsOlderThanACommit(t *testing.T) {
	n := startCluster(t, 1, quorum.BFT).nodes[0]
	for i := range 100 {
		before, err := n.root.views.open()
		if err != nil {
			t.Fatal(err)
		}
		key := fmt.Appendf(nil, "pzz%d", i)
		write := func() error { return n.cfg.Store.Commit([]kv.Op{kv.Set(key, nil)}, false) }
		if err := n.root.views.durable.commit(write, n.root.views.prepare); err != nil {
			t.Fatal(err)
		}
		after, err := n.root.views.open()
		if err != nil {
			t.Fatal(err)
		}
		if _, ok, err := after.snapshot.Get(key); !ok || err != nil {
			t.Fatalf("commit %d is not in a state that was opened after it, %v", i, err)
		}
		for _, s := range []*shared{before, after} {
			if err := n.root.views.release(s); err != nil {
				t.Error(err)
			}
		}
	}
}
