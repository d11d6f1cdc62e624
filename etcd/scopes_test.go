package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// delegate gives a prefix a scope of its own.
func (w *world) delegate(t *testing.T, from, prefix string) {
	t.Helper()
	p, err := w.node.In(from)
	if err != nil {
		t.Fatal(err)
	}
	d := scope.Decision{Kind: scope.Delegate, Child: &scope.Child{
		Prefix: []byte(prefix), Policy: scope.OpenPolicy(quorum.Crash), Anchors: w.node.Root().Genesis().Anchors,
	}}
	if r, err := p.Govern(w.ctx, d, node.Once{}); err != nil || r.Code != scope.Applied {
		t.Fatalf("%s %s, %v", r.Code, r.Reason, err)
	}
	testwait.Until(t, "the scope is founded", func() bool { _, err := w.node.In(prefix); return err == nil })
}

func (w *world) all(t *testing.T, key, end string) (found string, revision int64) {
	t.Helper()
	r, err := w.Range(w.ctx, &etcdpb.RangeRequest{Key: []byte(key), RangeEnd: []byte(end)})
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range r.Kvs {
		found += fmt.Sprintf("%s=%s ", kv.Key, kv.Value)
	}
	if int(r.Count) != len(r.Kvs) {
		t.Errorf("%d of %d keys", len(r.Kvs), r.Count)
	}
	return strings.TrimSpace(found), r.Header.Revision
}

func TestRangesGoOverScopes(t *testing.T) {
	w := newWorld(t, 1, Config{})
	for _, key := range []string{"/a", "/b/1", "/b/c/1", "/c"} {
		w.put(t, key, []byte("v"))
	}
	_, before := w.all(t, "/", "0")
	w.delegate(t, "", "/b/")
	w.delegate(t, "/b/", "/b/c/")
	w.put(t, "/b/c/2", []byte("v"))
	time.Sleep(2 * time.Millisecond) // revisions of several scopes have the order of their milliseconds
	w.put(t, "/b/2", []byte("v"))
	w.put(t, "/b/d", []byte("v"))
	const want = "/a=v /b/1=v /b/2=v /b/c/1=v /b/c/2=v /b/d=v /c=v"
	got, after := w.all(t, "/", "0")
	if got != want || after <= before {
		t.Errorf("%s at revision %d, after %d", got, after, before)
	}
	if got, _ := w.all(t, "\x00", "\x00"); got != want {
		t.Errorf("all keys: %s", got)
	}
	for _, c := range []struct {
		r    *etcdpb.RangeRequest
		want string
	}{
		{&etcdpb.RangeRequest{Key: []byte("/b/"), RangeEnd: []byte("/b0"), Limit: 3}, "/b/1 /b/2 /b/c/1 more"},
		{&etcdpb.RangeRequest{Key: []byte("/a"), RangeEnd: []byte("/b/c/2")}, "/a /b/1 /b/2 /b/c/1"},
		{&etcdpb.RangeRequest{Key: []byte("/b/c/2"), RangeEnd: []byte("/z")}, "/b/c/2 /b/d /c"},
		{&etcdpb.RangeRequest{Key: []byte("/"), RangeEnd: []byte("0"), SortOrder: etcdpb.RangeRequest_DESCEND, Limit: 2}, "/c /b/d more"},
		{&etcdpb.RangeRequest{Key: []byte("/"), RangeEnd: []byte("0"), SortOrder: etcdpb.RangeRequest_DESCEND, SortTarget: etcdpb.RangeRequest_MOD, Limit: 2}, "/b/d /b/2 more"},
	} {
		r, err := w.Range(w.ctx, c.r)
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, kv := range r.Kvs {
			keys = append(keys, string(kv.Key))
		}
		if r.More {
			keys = append(keys, "more")
		}
		if got := strings.Join(keys, " "); got != c.want {
			t.Errorf("%v: %s, want %s", c.r, got, c.want)
		}
	}
	_, err := w.Txn(w.ctx, &etcdpb.TxnRequest{Success: []*etcdpb.RequestOp{putInScope("/a", "x"), putInScope("/b/1", "x")}})
	if err == nil || !strings.Contains(err.Error(), "several scopes") {
		t.Errorf("a transaction in two scopes: %v", err)
	}
	r, err := w.Txn(w.ctx, &etcdpb.TxnRequest{Success: []*etcdpb.RequestOp{putInScope("/b/1", "x"), putInScope("/b/2", "x")}})
	if err != nil || r.Header.Revision < after {
		t.Errorf("a transaction in one: %v, %v", r, err)
	}
}

func putInScope(key, value string) *etcdpb.RequestOp {
	return &etcdpb.RequestOp{Request: &etcdpb.RequestOp_RequestPut{RequestPut: &etcdpb.PutRequest{Key: []byte(key), Value: []byte(value)}}}
}

// TestWatchesGoOverScopes: while clients write to keys of several scopes, and prefixes
// get scopes of their own, a watch of all tells of every change once, in the order of
// revisions; and so does one that goes on from anywhere after.
func TestWatchesGoOverScopes(t *testing.T) {
	t.Parallel()
	for _, watches := range []int{1, fewWatches + 4} { // each for itself, and with a feed
		w := newWorld(t, 1, Config{})
		ctx, cancel := context.WithCancel(w.ctx)
		stream := w.watching(t, ctx)
		for range watches - 1 {
			stream.create(&etcdpb.WatchCreateRequest{Key: []byte("/nothing")})
		}
		id := stream.create(&etcdpb.WatchCreateRequest{Key: []byte("/"), RangeEnd: []byte("0"), StartRevision: 1}).WatchId
		var working sync.WaitGroup
		stop := make(chan struct{})
		prefixes := []string{"/a/", "/b/", "/b/c/"}
		counts := make([]atomic.Int64, len(prefixes))
		for i, prefix := range prefixes {
			working.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					w.put(t, fmt.Sprint(prefix, counts[i].Load()%5), []byte("v"))
					counts[i].Add(1)
					time.Sleep(time.Duration(i) * time.Millisecond) // clients of several paces
				}
			})
		}
		busy := func() {
			for i, prefix := range prefixes {
				testwait.More(t, "writes to "+prefix, 10, func() int { return int(counts[i].Load()) })
			}
		}
		busy()
		w.delegate(t, "", "/b/")
		busy()
		w.delegate(t, "/b/", "/b/c/")
		busy()
		close(stop)
		working.Wait()
		total := int64(0)
		for i := range counts {
			total += counts[i].Load()
		}
		type change struct {
			key          string
			version, rev int64
		}
		var seen []change
		last := int64(0)
		versions := make(map[string]int64)
		for int64(len(seen)) < total {
			r := stream.next()
			if r.WatchId != id || r.Canceled {
				t.Fatalf("%v", r)
			}
			for _, e := range r.Events {
				key := string(e.Kv.Key)
				if e.Kv.ModRevision < last || e.Kv.Version != versions[key]+1 || e.Kv.ModRevision > r.Header.Revision {
					t.Fatalf("after %d changes, the last at %d: %s version %d at %d, after version %d; header %d", len(seen), last, key, e.Kv.Version, e.Kv.ModRevision, versions[key], r.Header.Revision)
				}
				last, versions[key] = e.Kv.ModRevision, e.Kv.Version
				seen = append(seen, change{key, e.Kv.Version, e.Kv.ModRevision})
			}
		}
		// Whoever goes on from a revision, also from before the scopes, hears all the rest.
		for at := 0; at < len(seen); at += 1 + len(seen)/7 {
			from := seen[at].rev
			if at > 0 && seen[at-1].rev == from {
				continue
			}
			again := w.watching(t, ctx)
			again.create(&etcdpb.WatchCreateRequest{Key: []byte("/"), RangeEnd: []byte("0"), StartRevision: from})
			for want := seen[at:]; len(want) > 0; {
				for _, e := range again.next().Events {
					if string(e.Kv.Key) != want[0].key || e.Kv.ModRevision != want[0].rev {
						t.Fatalf("from %d: %s at %d, want %v", from, e.Kv.Key, e.Kv.ModRevision, want[0])
					}
					want = want[1:]
				}
			}
		}
		t.Logf("%d changes", total)
		cancel()
	}
}

func TestLeasesGoOverScopes(t *testing.T) {
	w := newWorld(t, 1, Config{})
	w.delegate(t, "", "/b/")
	granted, err := w.LeaseGrant(w.ctx, &etcdpb.LeaseGrantRequest{TTL: 600})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"/a", "/b/1", "/b/2"} {
		if _, err := w.Put(w.ctx, &etcdpb.PutRequest{Key: []byte(key), Value: []byte("v"), Lease: granted.ID}); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
	}
	if _, err := w.Put(w.ctx, &etcdpb.PutRequest{Key: []byte("/b/3"), Lease: granted.ID + 1}); err == nil || !strings.Contains(err.Error(), "requested lease not found") {
		t.Errorf("a lease that is not there: %v", err)
	}
	left, err := w.LeaseTimeToLive(w.ctx, &etcdpb.LeaseTimeToLiveRequest{ID: granted.ID, Keys: true})
	if err != nil || fmt.Sprintf("%s", left.Keys) != "[/a /b/1 /b/2]" || left.TTL < 500 {
		t.Errorf("%v, %v", left, err)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	alive, err := w.LeaseKeepAlive(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := alive.Send(&etcdpb.LeaseKeepAliveRequest{ID: granted.ID}); err != nil {
		t.Fatal(err)
	}
	if r, err := alive.Recv(); err != nil || r.TTL != 600 {
		t.Errorf("kept alive: %v, %v", r, err)
	}
	cancel()
	if _, err := w.LeaseRevoke(w.ctx, &etcdpb.LeaseRevokeRequest{ID: granted.ID}); err != nil {
		t.Fatal(err)
	}
	if got, _ := w.all(t, "/", "0"); got != "" {
		t.Errorf("after the revocation there is %s", got)
	}
}

func TestCompactionGoesOverScopes(t *testing.T) {
	w := newWorld(t, 1, Config{})
	w.put(t, "/a", []byte("1"))
	w.put(t, "/b/1", []byte("1"))
	w.delegate(t, "", "/b/")
	old := w.put(t, "/b/1", []byte("2"))
	w.put(t, "/a", []byte("2"))
	w.put(t, "/b/1", []byte("3"))
	at := w.put(t, "/a", []byte("3"))
	if _, err := w.Compact(w.ctx, &etcdpb.CompactionRequest{Revision: at}); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"/a", "/b/1"} {
		_, err := w.Range(w.ctx, &etcdpb.RangeRequest{Key: []byte(key), Revision: old})
		if err == nil || !strings.Contains(err.Error(), "has been compacted") {
			t.Errorf("%s at an old revision: %v", key, err)
		}
		if got, _ := w.all(t, key, ""); got != key+"=3" {
			t.Errorf("%s is %s", key, got)
		}
	}
	if _, err := w.Compact(w.ctx, &etcdpb.CompactionRequest{Revision: at}); err == nil || !strings.Contains(err.Error(), "has been compacted") {
		t.Errorf("again: %v", err)
	}
	// The revision of an answer, up to which a scope is closed, may be later than any change.
	w.put(t, "/b/1", []byte("4"))
	time.Sleep(5 * time.Millisecond) // so that the time of the blocks goes on
	p, err := w.node.In("/b/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Txn(w.ctx, scope.Txn{}, node.Once{}); err != nil {
		t.Fatal(err)
	}
	read, err := w.Range(w.ctx, &etcdpb.RangeRequest{Key: []byte("/b/1")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Compact(w.ctx, &etcdpb.CompactionRequest{Revision: read.Header.Revision}); err != nil {
		t.Errorf("to the revision %d of an answer: %v", read.Header.Revision, err)
	}
	if _, err := w.Compact(w.ctx, &etcdpb.CompactionRequest{Revision: at + time.Hour.Milliseconds()<<20}); err == nil || !strings.Contains(err.Error(), "future revision") {
		t.Errorf("later: %v", err)
	}
}

// TestWatchesReachScopesThatAreNotHeld: a node that holds the root scope alone delivers all changes in order, also
// while the scope that it asks delegates keys.
func TestWatchesReachScopesThatAreNotHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, Config{})
	w.put(t, "/b/0", []byte("v")) // it listens now
	light := w.light(t)
	w.delegate(t, "", "/b/")
	stream := light.watching(t, w.ctx)
	id := stream.create(&etcdpb.WatchCreateRequest{Key: []byte("/"), RangeEnd: []byte("0"), StartRevision: 1, PrevKv: true}).WatchId
	const each = 20
	var want []string
	for i := range each {
		for _, key := range []string{"/a", "/b/1", "/b/c/1"} {
			value := fmt.Sprint(i)
			w.put(t, key, []byte(value))
			want = append(want, key+"="+value)
		}
		if i == each/2 {
			w.delegate(t, "/b/", "/b/c/")
		}
	}
	var got []string
	last := int64(0)
	for len(got) < len(want) {
		r := stream.next()
		if r.WatchId != id || r.Canceled {
			t.Fatalf("after %d of %d: %v", len(got), len(want), r)
		}
		for _, e := range r.Events {
			if e.Kv.ModRevision < last || e.Kv.ModRevision > r.Header.Revision {
				t.Fatalf("%s at revision %d, after %d; header %d", e.Kv.Key, e.Kv.ModRevision, last, r.Header.Revision)
			}
			if last = e.Kv.ModRevision; string(e.Kv.Key) != "/b/0" && string(e.Kv.Key) != "/greeting" {
				got = append(got, fmt.Sprintf("%s=%s", e.Kv.Key, e.Kv.Value))
			}
			if e.Kv.Version > 1 && e.PrevKv == nil {
				t.Errorf("%s version %d, and nothing before", e.Kv.Key, e.Kv.Version)
			}
		}
	}
	ofKeys := func(a, b string) int { return strings.Compare(a[:strings.Index(a, "=")], b[:strings.Index(b, "=")]) }
	slices.SortStableFunc(got, ofKeys) // between scopes, revisions within a millisecond are in any order
	slices.SortStableFunc(want, ofKeys)
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if err := stream.Send(&etcdpb.WatchRequest{RequestUnion: &etcdpb.WatchRequest_CancelRequest{CancelRequest: &etcdpb.WatchCancelRequest{WatchId: id}}}); err != nil {
		t.Fatal(err)
	}
	if r := stream.next(); !r.Canceled {
		t.Fatalf("%v", r)
	}
	w.put(t, "/b/1", []byte("unheard"))
	if now := stream.create(&etcdpb.WatchCreateRequest{Key: []byte("/b/1")}); now.Header.Revision <= last {
		t.Errorf("a watch from now on begins at %d", now.Header.Revision)
	}
	w.put(t, "/b/1", []byte("heard"))
	if r := stream.next(); len(r.Events) != 1 || string(r.Events[0].Kv.Value) != "heard" {
		t.Errorf("%v", r)
	}
}

// TestLocksReachScopesThatAreNotHeld: one who waits at a node that holds the root scope alone gets a lock of another
// scope when it is let go, and when its holder's lease ends.
func TestLocksReachScopesThatAreNotHeld(t *testing.T) {
	t.Parallel()
	testshort.Skip(t)
	w := newWorld(t, 1, Config{})
	w.put(t, "/b/0", []byte("v")) // it listens now
	light := w.light(t)
	w.delegate(t, "", "/b/")
	holder, waiter := etcdpb.NewLockClient(w.conn), etcdpb.NewLockClient(light.conn)
	lease := func() int64 {
		t.Helper()
		r, err := light.LeaseGrant(w.ctx, &etcdpb.LeaseGrantRequest{TTL: 60})
		if err != nil {
			t.Fatal(err)
		}
		return r.ID
	}
	for round, letGo := range []func(key []byte, lease int64) error{
		func(key []byte, _ int64) error {
			_, err := holder.Unlock(w.ctx, &etcdpb.UnlockRequest{Key: key})
			return err
		},
		func(_ []byte, lease int64) error {
			_, err := w.LeaseRevoke(w.ctx, &etcdpb.LeaseRevokeRequest{ID: lease})
			return err
		},
	} {
		name, first, second := fmt.Appendf(nil, "/b/lock%d", round), lease(), lease()
		held, err := holder.Lock(w.ctx, &etcdpb.LockRequest{Name: name, Lease: first})
		if err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(w.ctx, time.Second)
		if r, err := waiter.Lock(short, &etcdpb.LockRequest{Name: name, Lease: lease()}); status.Code(err) != codes.DeadlineExceeded {
			t.Fatalf("one holds %q, and another gets %q, %v", held.Key, r.GetKey(), err)
		}
		cancel()
		got := make(chan error, 1)
		go func() {
			r, err := waiter.Lock(w.ctx, &etcdpb.LockRequest{Name: name, Lease: second})
			if err == nil && len(r.Key) == 0 {
				err = errors.New("no key")
			}
			got <- err
		}()
		select {
		case err := <-got:
			t.Fatalf("while another holds the lock: %v", err)
		case <-time.After(500 * time.Millisecond):
		}
		if err := letGo(held.Key, first); err != nil {
			t.Fatal(err)
		}
		if err := <-got; err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	campaigner := etcdpb.NewElectionClient(light.conn)
	words, err := campaigner.Observe(w.ctx, &etcdpb.LeaderRequest{Name: []byte("/b/vote")})
	if err != nil {
		t.Fatal(err)
	}
	leads, err := campaigner.Campaign(w.ctx, &etcdpb.CampaignRequest{Name: []byte("/b/vote"), Lease: lease(), Value: []byte("me")})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := campaigner.Leader(w.ctx, &etcdpb.LeaderRequest{Name: []byte("/b/vote")}); err != nil || string(r.Kv.Value) != "me" {
		t.Errorf("%v, %v", r, err)
	}
	if _, err := campaigner.Proclaim(w.ctx, &etcdpb.ProclaimRequest{Leader: leads.Leader, Value: []byte("again")}); err != nil {
		t.Fatal(err)
	}
	if _, err := campaigner.Resign(w.ctx, &etcdpb.ResignRequest{Leader: leads.Leader}); err != nil {
		t.Fatal(err)
	}
	if _, err := etcdpb.NewElectionClient(w.conn).Campaign(w.ctx, &etcdpb.CampaignRequest{Name: []byte("/b/vote"), Lease: lease(), Value: []byte("other")}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"me", "again", "other"} {
		if r, err := words.Recv(); err != nil || string(r.Kv.Value) != want {
			t.Fatalf("observed %q, want %q, %v", r.GetKv().GetValue(), want, err)
		}
	}
}
