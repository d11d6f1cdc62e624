package etcd

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/testwait"
)

// TestLockIsHeldByOne: by the next in line when it is unlocked, when the lease of
// who holds it ends, and not by one who has given up.
func TestLockIsHeldByOne(t *testing.T) {
	w := newWorld(t, 1, Config{})
	type held struct {
		id  int64
		key string
		err error
	}
	got := make(chan held, 4)
	lock := func(ctx context.Context, id int64) {
		w.grant(t, id, 100)
		before, err := w.Range(w.ctx, &etcdpb.RangeRequest{Key: []byte("l/"), RangeEnd: []byte("l0"), CountOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			r, err := w.Lock(ctx, &etcdpb.LockRequest{Name: []byte("l"), Lease: id})
			got <- held{id, string(r.GetKey()), err}
		}()
		testwait.Until(t, "the claim stands in line", func() bool {
			r, err := w.Range(w.ctx, &etcdpb.RangeRequest{Key: []byte("l/"), RangeEnd: []byte("l0"), CountOnly: true})
			return err == nil && r.Count > before.Count
		})
	}
	next := func(id int64) held {
		t.Helper()
		h := <-got
		if h.id != id || h.err != nil {
			t.Fatalf("held by %+v, want %d", h, id)
		}
		return h
	}
	ctx, giveUp := context.WithCancel(w.ctx)
	defer giveUp()
	for id, ctx := range []context.Context{1: w.ctx, 2: ctx, 3: w.ctx, 4: w.ctx} {
		if id > 0 {
			lock(ctx, int64(id))
		}
	}
	first := next(1)
	if first.key != "l/1" {
		t.Fatalf("lease 1 holds %q", first.key)
	}
	if again, err := w.Lock(w.ctx, &etcdpb.LockRequest{Name: []byte("l"), Lease: 1}); err != nil || string(again.Key) != "l/1" {
		t.Fatalf("who holds it asks again: %v, %v", again, err)
	}
	giveUp()
	if h := <-got; h.id != 2 || status.Code(h.err) != codes.Canceled {
		t.Fatalf("who gave up: %+v", h)
	}
	testwait.Until(t, "the claim of who gave up is gone", func() bool {
		r, err := w.Range(w.ctx, &etcdpb.RangeRequest{Key: []byte("l/2")})
		return err == nil && r.Count == 0
	})
	if _, err := w.Unlock(w.ctx, &etcdpb.UnlockRequest{Key: []byte(first.key)}); err != nil {
		t.Fatal(err)
	}
	next(3)
	select {
	case h := <-got:
		t.Fatalf("two hold the lock: %+v", h)
	default:
	}
	if _, err := w.LeaseRevoke(w.ctx, &etcdpb.LeaseRevokeRequest{ID: 3}); err != nil {
		t.Fatal(err)
	}
	next(4)
	if _, err := w.Lock(w.ctx, &etcdpb.LockRequest{Name: []byte("other"), Lease: 99}); status.Code(err) != codes.NotFound {
		t.Fatalf("without a lease: %v", err)
	}
	if r, err := w.Lock(w.ctx, &etcdpb.LockRequest{Name: []byte("other")}); err != nil || len(r.Key) < 8 {
		t.Fatalf("with a lease of the node's: %v, %v", r, err)
	}
}

// TestWaitingForALockEndsWithTheLease: who lost its claim while it waited does not
// hold the lock when its turn comes.
func TestWaitingForALockEndsWithTheLease(t *testing.T) {
	w := newWorld(t, 1, Config{})
	w.grant(t, 1, 100)
	w.grant(t, 2, 100)
	if _, err := w.Lock(w.ctx, &etcdpb.LockRequest{Name: []byte("l"), Lease: 1}); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := w.Lock(w.ctx, &etcdpb.LockRequest{Name: []byte("l"), Lease: 2})
		failed <- err
	}()
	testwait.Until(t, "the claim stands in line", func() bool {
		r, err := w.Range(w.ctx, &etcdpb.RangeRequest{Key: []byte("l/2")})
		return err == nil && r.Count == 1
	})
	for _, id := range []int64{2, 1} {
		if _, err := w.LeaseRevoke(w.ctx, &etcdpb.LeaseRevokeRequest{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-failed; status.Convert(err).Message() != "mutex: session is expired" {
		t.Fatalf("its lease is over: %v", err)
	}
}

// TestElectionHasOneLeader: whoever observes it hears of every leader, and every
// word of its.
func TestElectionHasOneLeader(t *testing.T) {
	w := newWorld(t, 1, Config{})
	w.grant(t, 1, 100)
	w.grant(t, 2, 100)
	name := []byte("e")
	if _, err := w.Leader(w.ctx, &etcdpb.LeaderRequest{Name: name}); status.Convert(err).Message() != "election: no leader" {
		t.Fatalf("nobody leads: %v", err)
	}
	stream, err := w.Observe(w.ctx, &etcdpb.LeaderRequest{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	hear := func(value string) {
		t.Helper()
		if r, err := stream.Recv(); err != nil || string(r.Kv.Value) != value {
			t.Fatalf("heard %v, %v; want %q", r, err, value)
		}
	}
	one, err := w.Campaign(w.ctx, &etcdpb.CampaignRequest{Name: name, Lease: 1, Value: []byte("one")})
	if err != nil || string(one.Leader.Key) != "e/1" || one.Leader.Lease != 1 {
		t.Fatalf("%v, %v", one, err)
	}
	hear("one")
	for _, word := range []string{"first", "second", "third"} {
		if _, err := w.Proclaim(w.ctx, &etcdpb.ProclaimRequest{Leader: one.Leader, Value: []byte(word)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Campaign(w.ctx, &etcdpb.CampaignRequest{Name: name, Lease: 1, Value: []byte("fourth")}); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"first", "second", "third", "fourth"} {
		hear(word)
	}
	elected := make(chan *etcdpb.CampaignResponse, 1)
	go func() {
		two, _ := w.Campaign(w.ctx, &etcdpb.CampaignRequest{Name: name, Lease: 2, Value: []byte("two")})
		elected <- two
	}()
	testwait.Until(t, "the candidate stands in line", func() bool {
		r, err := w.Range(w.ctx, &etcdpb.RangeRequest{Key: []byte("e/2")})
		return err == nil && r.Count == 1
	})
	if r, err := w.Leader(w.ctx, &etcdpb.LeaderRequest{Name: name}); err != nil || string(r.Kv.Key) != "e/1" {
		t.Fatalf("%v, %v", r, err)
	}
	if _, err := w.Resign(w.ctx, &etcdpb.ResignRequest{Leader: one.Leader}); err != nil {
		t.Fatal(err)
	}
	if two := <-elected; string(two.GetLeader().GetKey()) != "e/2" {
		t.Fatalf("%v", two)
	}
	hear("two")
	if _, err := w.Proclaim(w.ctx, &etcdpb.ProclaimRequest{Leader: one.Leader, Value: []byte("late")}); status.Convert(err).Message() != "election: not leader" {
		t.Fatalf("who resigned still leads: %v", err)
	}
	if _, err := w.Proclaim(w.ctx, &etcdpb.ProclaimRequest{}); status.Convert(err).Message() != `"leader" field must be provided` {
		t.Fatalf("nobody proclaims: %v", err)
	}
	if _, err := w.LeaseRevoke(w.ctx, &etcdpb.LeaseRevokeRequest{ID: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Campaign(w.ctx, &etcdpb.CampaignRequest{Name: name, Lease: 1, Value: []byte("again")}); err != nil {
		t.Fatal(err)
	}
	hear("again")
}
