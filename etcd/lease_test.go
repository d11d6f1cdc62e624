package etcd

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
)

func (w *world) grant(t *testing.T, id, ttl int64) int64 {
	t.Helper()
	r, err := w.LeaseGrant(w.ctx, &etcdpb.LeaseGrantRequest{ID: id, TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	return r.ID
}

func (w *world) leased(t *testing.T, key string, lease int64) {
	t.Helper()
	if _, err := w.Put(w.ctx, &etcdpb.PutRequest{Key: []byte(key), Lease: lease}); err != nil {
		t.Fatal(err)
	}
}

func (w *world) left(t *testing.T, id int64) *etcdpb.LeaseTimeToLiveResponse {
	t.Helper()
	r, err := w.LeaseTimeToLive(w.ctx, &etcdpb.LeaseTimeToLiveRequest{ID: id, Keys: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestLeaseTakesItsKeysAlong(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	w := newWorld(t, 1, Config{})
	begin := time.Now()
	id := w.grant(t, 0, 1)
	if id <= 0 {
		t.Fatalf("the node chose lease %d", id)
	}
	w.leased(t, "b", id)
	w.leased(t, "a", id)
	if r := w.left(t, id); r.GrantedTTL != 2 || r.TTL > 2 || len(r.Keys) != 2 || string(r.Keys[0]) != "a" {
		t.Fatalf("%v", r)
	}
	if kv, err := w.Range(w.ctx, &etcdpb.RangeRequest{Key: []byte("a")}); err != nil || kv.Kvs[0].Lease != id {
		t.Fatalf("%v, %v", kv, err)
	}
	watch := w.watching(t, w.ctx)
	watch.create(&etcdpb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte("c")})
	gone := watch.next()
	if took := time.Since(begin); took < 2*time.Second || took > 5*time.Second {
		t.Errorf("a lease of two seconds ended after %v", took)
	}
	if len(gone.Events) != 2 || gone.Events[0].Type != etcdpb.Event_DELETE || gone.Events[0].Kv.ModRevision != gone.Events[1].Kv.ModRevision {
		t.Errorf("%v", gone)
	}
	if r := w.left(t, id); r.TTL != -1 || r.ID != id || r.GrantedTTL != 0 {
		t.Errorf("of a lease that is over: %v", r)
	}
}

func TestLeaseErrorsAreEtcds(t *testing.T) {
	w := newWorld(t, 1, Config{})
	w.grant(t, 7, 100)
	grant := func(id, ttl int64) error {
		_, err := w.LeaseGrant(w.ctx, &etcdpb.LeaseGrantRequest{ID: id, TTL: ttl})
		return err
	}
	put := func(r *etcdpb.PutRequest) error { _, err := w.Put(w.ctx, r); return err }
	revoke := func(id int64) error {
		_, err := w.LeaseRevoke(w.ctx, &etcdpb.LeaseRevokeRequest{ID: id})
		return err
	}
	for _, c := range []struct {
		err  error
		code codes.Code
		text string
	}{
		{grant(7, 5), codes.FailedPrecondition, "etcdserver: lease already exists"},
		{grant(8, 9_000_000_001), codes.OutOfRange, "etcdserver: too large lease TTL"},
		{revoke(8), codes.NotFound, "etcdserver: requested lease not found"},
		{revoke(0), codes.NotFound, "etcdserver: requested lease not found"},
		{put(&etcdpb.PutRequest{Key: []byte("k"), Lease: 8}), codes.NotFound, "etcdserver: requested lease not found"},
		{put(&etcdpb.PutRequest{Key: []byte("k"), Lease: 8, IgnoreValue: true}), codes.NotFound, "etcdserver: requested lease not found"},
		{put(&etcdpb.PutRequest{Key: []byte("k"), Lease: 7, IgnoreValue: true}), codes.InvalidArgument, "etcdserver: key not found"},
	} {
		if s := status.Convert(c.err); s.Code() != c.code || s.Message() != c.text {
			t.Errorf("%v, want %s %q", c.err, c.code, c.text)
		}
	}
}

// TestKeepAlivesComeInOrder: answers to questions of one stream, also such that
// came together, twice, and for leases that are not there.
func TestKeepAlivesComeInOrder(t *testing.T) {
	w := newWorld(t, 1, Config{})
	w.grant(t, 3, 30)
	w.grant(t, 4, 40)
	stream, err := w.LeaseKeepAlive(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	asked := []int64{4, 3, 0, 5, 3, 4, 4, -1}
	for _, id := range asked {
		if err := stream.Send(&etcdpb.LeaseKeepAliveRequest{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	ttls := map[int64]int64{3: 30, 4: 40}
	for _, id := range asked {
		if r, err := stream.Recv(); err != nil || r.ID != id || r.TTL != ttls[id] || r.Header.Revision != 1 {
			t.Fatalf("%d: %v, %v", id, r, err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if r, err := stream.Recv(); err == nil {
		t.Fatalf("after the end: %v", r)
	}
	r, err := w.LeaseLeases(w.ctx, &etcdpb.LeaseLeasesRequest{})
	if err != nil || len(r.Leases) != 2 || r.Leases[0].ID != 3 || r.Leases[1].ID != 4 {
		t.Fatalf("%v, %v", r, err)
	}
}

// TestKeepAliveKeepsAlive: a lease lasts while it is kept alive, and no longer.
func TestKeepAliveKeepsAlive(t *testing.T) {
	t.Parallel()
	testshort.Skip(t)
	w := newWorld(t, 1, Config{})
	w.grant(t, 3, 2)
	w.leased(t, "a", 3)
	stream, err := w.LeaseKeepAlive(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(4 * time.Second)
	for time.Now().Before(end) {
		if err := stream.Send(&etcdpb.LeaseKeepAliveRequest{ID: 3}); err != nil {
			t.Fatal(err)
		}
		if r, err := stream.Recv(); err != nil || r.TTL != 2 {
			t.Fatalf("%v, %v", r, err)
		}
	}
	testwait.Until(t, "the lease ends", func() bool { return w.left(t, 3).TTL == -1 })
	if kv, err := w.Range(w.ctx, &etcdpb.RangeRequest{Key: []byte("a")}); err != nil || len(kv.Kvs) != 0 {
		t.Fatalf("%v, %v", kv, err)
	}
}
