package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/testshort"
)

// TestListsAndWatchesGoTogether is what every informer does: it lists, and watches from the
// revision of the answer on. What it knows so is what there is. Here the range is of
// two scopes, and a list must not claim a revision up to which it has not read all.
func TestListsAndWatchesGoTogether(t *testing.T) {
	testshort.Skip(t)
	w := newWorld(t, 1, Config{})
	w.put(t, "/a/x", []byte("0"))
	w.put(t, "/b/x", []byte("0"))
	w.delegate(t, "", "/b/")
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	stop := make(chan struct{})
	var working sync.WaitGroup
	for i, key := range []string{"/a/x", "/a/y", "/b/x", "/b/y"} {
		working.Go(func() {
			for n := 1; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := w.Put(w.ctx, &etcdpb.PutRequest{Key: []byte(key), Value: []byte(fmt.Sprint(n))}); err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Duration(i) * time.Millisecond / 3) // clients of several paces
			}
		})
	}
	missed := 0
	for range 60 {
		stream := w.watching(t, ctx)
		list, err := w.Range(w.ctx, &etcdpb.RangeRequest{Key: []byte("/"), RangeEnd: []byte("0")})
		if err != nil {
			t.Fatal(err)
		}
		versions := make(map[string]int64)
		for _, kv := range list.Kvs {
			versions[string(kv.Key)] = kv.Version
		}
		stream.create(&etcdpb.WatchCreateRequest{Key: []byte("/"), RangeEnd: []byte("0"), StartRevision: list.Header.Revision + 1})
		seen := make(map[string]bool)
		for len(seen) < 2 && missed == 0 { // the next change of each scope at least
			for _, e := range stream.next().Events {
				key := string(e.Kv.Key)
				seen[key[:3]] = true
				if e.Kv.Version > versions[key]+1 {
					missed++
					t.Logf("listed at revision %d with %s version %d; the watch goes on with version %d at %d", list.Header.Revision, key, versions[key], e.Kv.Version, e.Kv.ModRevision)
				}
				versions[key] = e.Kv.Version
			}
		}
		_ = stream.CloseSend()
		if missed > 0 {
			break
		}
	}
	close(stop)
	working.Wait()
	if missed > 0 {
		t.Error("changes are in neither the list nor the watch from it on")
	}
}

// TestProgressOfAWatchWhosePrefixWent: a watch of [/b/, 0) is open when /b/ gets
// a scope of its own. What it says to have delivered, it has.
func TestProgressOfAWatchWhosePrefixWent(t *testing.T) {
	w := newWorld(t, 1, Config{})
	start := w.put(t, "/b/1", []byte("0"))
	var sent []*etcdpb.WatchResponse
	send := func(r *etcdpb.WatchResponse) error {
		sent = append(sent, r)
		return nil
	}
	ws := w.server.service.newStream(w.ctx, send, func(d *delivery) error {
		raw, err := d.encode()
		r := new(etcdpb.WatchResponse)
		if err == nil {
			err = proto.Unmarshal(raw.Materialize(), r)
		}
		return errors.Join(err, send(r))
	})
	defer ws.close()
	if err := ws.create(&etcdpb.WatchCreateRequest{Key: []byte("/b/"), RangeEnd: []byte("0"), StartRevision: start + 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := ws.deliver(); err != nil {
		t.Fatal(err)
	}
	w.delegate(t, "", "/b/")
	first := w.put(t, "/b/1", []byte("1")) // the child's
	time.Sleep(5 * time.Millisecond)       // revisions of several scopes have the order of their milliseconds
	w.put(t, "/c", []byte("1"))            // the parent's
	w.put(t, "/d", []byte("1"))
	for range 3 {
		if _, err := ws.deliver(); err != nil {
			t.Fatal(err)
		}
	}
	x := ws.all[0]
	for _, l := range x.segments {
		for i := 1; i < len(l.Read); i++ {
			if l.Read[i].Revision < l.Read[i-1].Revision {
				t.Errorf("a segment of %q holds %s at %d before %s at %d", l.Key, l.Read[i-1].Key, l.Read[i-1].Revision, l.Read[i].Key, l.Read[i].Revision)
			}
		}
	}
	told := false
	for _, r := range sent {
		for _, e := range r.Events {
			told = told || e.Kv.ModRevision == first
		}
	}
	if x.next > first && !told {
		t.Errorf("its progress is %d, and the change at %d was not delivered", x.next-1, first)
	}
}

// TestProgressReachesLists: what a list claims to be as of, a watch that is asked for its
// progress tells to have delivered, or who waits for that, as Kubernetes does, waits in
// vain. The scope's newest block changes nothing here, and its time goes on.
func TestProgressReachesLists(t *testing.T) {
	for _, watches := range []int{1, fewWatches + 4} { // each for itself, and with a feed
		w := newWorld(t, 1, Config{})
		w.put(t, "/b/1", []byte("0"))
		w.delegate(t, "", "/b/")
		ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
		defer cancel()
		stream := w.watching(t, ctx)
		for range watches {
			stream.create(&etcdpb.WatchCreateRequest{Key: []byte("/b/"), RangeEnd: []byte("/b0")})
		}
		for range 3 {
			_, err := w.Txn(ctx, &etcdpb.TxnRequest{
				Compare: []*etcdpb.Compare{{Key: []byte("/b/1"), Target: etcdpb.Compare_VERSION, TargetUnion: &etcdpb.Compare_Version{Version: 7}}},
				Success: []*etcdpb.RequestOp{putInScope("/b/1", "x")},
			})
			if err != nil {
				t.Fatal(err)
			}
			_, listed := w.all(t, "/b/", "/b0")
			for told := int64(0); told < listed; {
				stream.progress()
				told = stream.next().Header.Revision
			}
		}
		cancel()
		for { // until the server has ended the stream
			if _, err := stream.Recv(); err != nil {
				break
			}
		}
	}
}

// TestRevisionsOfOneScopeCountInOthers: Kubernetes reads the newest revision with a key
// that another scope has, waits for its watch to get there, and lists as of it. No change
// in the scope of the watch does come.
func TestRevisionsOfOneScopeCountInOthers(t *testing.T) {
	w := newWorld(t, 1, Config{})
	w.put(t, "/b/1", []byte("0"))
	w.delegate(t, "", "/b/")
	ctx, cancel := context.WithTimeout(w.ctx, 20*time.Second)
	defer cancel()
	_, listed := w.all(t, "/b/", "/b0")
	stream := w.watching(t, ctx)
	stream.create(&etcdpb.WatchCreateRequest{Key: []byte("/b/"), RangeEnd: []byte("/b0"), StartRevision: listed + 1})
	for range 3 {
		time.Sleep(2 * time.Millisecond) // so that the time of the blocks goes on
		w.put(t, "/a", []byte("x"))
		_, newest := w.all(t, "/b", "") // the root scope's
		stream.progress()
		if told := stream.next(); told.Header.Revision < newest || told.WatchId != noWatch {
			t.Errorf("progress is told to %d, and %d was read before", told.Header.Revision, newest)
		}
	}
	time.Sleep(2 * time.Millisecond) // so that the time of the blocks goes on
	newest := w.put(t, "/a", []byte("x"))
	r, err := w.Range(ctx, &etcdpb.RangeRequest{Key: []byte("/b/"), RangeEnd: []byte("/b0"), Revision: newest})
	if err != nil || len(r.Kvs) != 1 {
		t.Errorf("at the revision of another scope: %v, %v", r, err)
	}
	_, err = w.Range(ctx, &etcdpb.RangeRequest{Key: []byte("/b/"), RangeEnd: []byte("/b0"), Revision: newest + 1<<40})
	if err == nil || !strings.Contains(err.Error(), "future revision") {
		t.Errorf("at a revision that no scope has: %v", err)
	}
	stream.create(&etcdpb.WatchCreateRequest{Key: []byte("/b/"), RangeEnd: []byte("/b0"), StartRevision: newest + 1<<40})
	stream.progress() // which cannot be told
	stream.create(&etcdpb.WatchCreateRequest{Key: []byte("/c")})
	cancel()
	for { // until the server has ended the stream
		if _, err := stream.Recv(); err != nil {
			return
		}
	}
}

// TestRangesAsOfARevisionGoOverScopes: a list that comes page by page is as of the revision
// of the first page, whichever scopes its keys are of and whatever is written meanwhile.
func TestRangesAsOfARevisionGoOverScopes(t *testing.T) {
	w := newWorld(t, 1, Config{})
	keys := []string{"/a/1", "/a/2", "/b/1", "/b/2", "/c/1"}
	for _, key := range keys {
		w.put(t, key, []byte("0"))
	}
	before := w.put(t, "/d", []byte("0"))
	w.delegate(t, "", "/b/")
	at := func(revision int64) string {
		t.Helper()
		found := ""
		for from := "/"; ; {
			r, err := w.Range(w.ctx, &etcdpb.RangeRequest{Key: []byte(from), RangeEnd: []byte("0"), Revision: revision, Limit: 2})
			if err != nil {
				t.Fatal(err)
			}
			for _, kv := range r.Kvs {
				found += fmt.Sprintf("%s=%s ", kv.Key, kv.Value)
				from = string(kv.Key) + "\x00"
			}
			if !r.More {
				return found
			}
		}
	}
	for i := 1; i < 4; i++ {
		want := ""
		var last int64
		for _, key := range keys {
			last = max(last, w.put(t, key, []byte(fmt.Sprint(i))))
			want += fmt.Sprintf("%s=%d ", key, i)
		}
		want += "/d=0 "
		if got := at(last); got != want {
			t.Errorf("at %d: %s, want %s", last, got, want)
		}
		time.Sleep(2 * time.Millisecond) // so that the time of the blocks goes on
		for _, key := range keys {
			w.put(t, key, []byte("later"))
		}
		if got := at(last); got != want {
			t.Errorf("later, at %d: %s, want %s", last, got, want)
		}
	}
	_, err := w.Range(w.ctx, &etcdpb.RangeRequest{Key: []byte("/"), RangeEnd: []byte("0"), Revision: before})
	if err == nil || !strings.Contains(err.Error(), "compacted") {
		t.Errorf("as of before there were several: %v", err)
	}
}
