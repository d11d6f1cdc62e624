package etcd

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// everyKey asks for all changes from a revision on.
func everyKey(from int64) *etcdpb.WatchCreateRequest {
	return &etcdpb.WatchCreateRequest{Key: everything, RangeEnd: everything, StartRevision: from}
}

// TestEveryWatchSeesEveryChangeOnce opens watches at many revisions, past and
// future, while there are writes: few, which read for themselves, and many, which
// share a feed.
func TestEveryWatchSeesEveryChangeOnce(t *testing.T) {
	for _, count := range []int{fewWatches, 5 * fewWatches} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			w := newWorld(t, 1, Config{})
			stream := w.watching(t, w.ctx)
			const last = 300
			go func() {
				for range last - 1 {
					if _, err := w.Put(w.ctx, &etcdpb.PutRequest{Key: []byte("k")}); err != nil {
						t.Error(err)
						return
					}
				}
			}()
			for i := range count {
				stream.ask(everyKey(int64(1 + i*last/count)))
			}
			next := make(map[int64]int64) // revision, by watch
			for done := 0; done < count; {
				r := stream.next()
				if r.Created {
					next[r.WatchId] = max(2, int64(1+int(r.WatchId)*last/count)) // the first change makes revision 2
				}
				for _, e := range r.Events {
					if e.Kv.ModRevision != next[r.WatchId] || r.Header.Revision < e.Kv.ModRevision {
						t.Fatalf("watch %d was to see revision %d: %v", r.WatchId, next[r.WatchId], r)
					}
					if next[r.WatchId]++; e.Kv.ModRevision == last {
						done++
					}
				}
			}
		})
	}
}

// TestSlowWatchersKeepNobodyWaiting writes far more than a feed holds, to a stream
// that nobody reads, and to one that somebody does.
func TestSlowWatchersKeepNobodyWaiting(t *testing.T) {
	testshort.Skip(t)
	w := newWorld(t, 1, Config{})
	slow, fast := w.watching(t, w.ctx), w.watching(t, w.ctx)
	slow.create(everyKey(0))
	for range fewWatches {
		fast.create(everyKey(0))
	}
	value := bytes.Repeat([]byte("v"), 256<<10)
	const count = 128 // 32 MiB
	go func() {
		for range count {
			if _, err := w.Put(w.ctx, &etcdpb.PutRequest{Key: []byte("k"), Value: value}); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	read := func(s watching, watches int) {
		t.Helper()
		for seen := 0; seen < count*watches; {
			r := s.next()
			for _, e := range r.Events {
				if want := int64(2 + seen/watches); watches == 1 && e.Kv.ModRevision != want {
					t.Fatalf("revision %d where %d was next", e.Kv.ModRevision, want)
				}
				seen++
			}
		}
	}
	read(fast, fewWatches)
	read(slow, 1)
}

// TestFeedForgetsWholeRevisions fills a feed beyond its bounds, and compares what
// it still gives with all that was put in.
func TestFeedForgetsWholeRevisions(t *testing.T) {
	var f feed
	f.from, f.next = 5, 5
	var all []node.Change
	early := f.window
	for rev := int64(5); rev < 5000; rev++ {
		var events []node.Change
		for sub := range 1 + rev%4 {
			e := node.Change{Place: scope.Place{Revision: rev, Sub: uint32(sub), Key: make([]byte, rev%7*40)}}
			events = append(events, e)
		}
		all = append(all, events...)
		f.add(events, rev+1)
		if len(f.events) > feedEvents || f.bytes > feedBytes {
			t.Fatalf("it holds %d events of %d bytes", len(f.events), f.bytes)
		}
		if rev == 100 {
			early = f.window
		}
	}
	got, ok := f.since(f.from)
	i := slices.IndexFunc(all, func(e node.Change) bool { return e.Revision == f.from })
	if !ok || len(got) != len(all)-i || f.from == 5 || f.next != 5000 {
		t.Fatalf("from %d to %d it gives %d events of %d", f.from, f.next, len(got), len(all)-i)
	}
	for j := range got {
		if got[j].Revision != all[i+j].Revision || got[j].Sub != all[i+j].Sub {
			t.Fatalf("event %d is %v, not %v", j, got[j].Place, all[i+j].Place)
		}
	}
	if _, ok := f.since(f.from - 1); ok {
		t.Error("it gives what it has forgotten a part of")
	}
	events, ok := early.since(50)
	if !ok || events[0].Revision != 50 || events[len(events)-1].Revision != 100 {
		t.Error("what was given away before has changed")
	}
}

func TestLargeRevisionsComeOneByOne(t *testing.T) {
	w := newWorld(t, 1, Config{})
	for range 6 {
		w.put(t, "k", make([]byte, 1<<20))
	}
	ask := everyKey(1)
	ask.Fragment = true
	s := w.watching(t, w.ctx)
	s.create(ask)
	for revision := int64(2); revision < 8; {
		r := s.next()
		for _, e := range r.Events {
			if e.Kv.ModRevision != revision {
				t.Fatalf("revision %d where %d was next", e.Kv.ModRevision, revision)
			}
			revision++
		}
		if r.Fragment || proto.Size(r) > 2*loanOf {
			t.Errorf("%d revisions come in %d bytes, fragment: %v", len(r.Events), proto.Size(r), r.Fragment)
		}
	}
}

func TestProgressIsToldWhenAllIsDelivered(t *testing.T) {
	testshort.Skip(t)
	w := newWorld(t, 1, Config{ProgressEvery: 20 * time.Millisecond})
	rev := int64(1)
	for range 5 * firstMost {
		rev = w.put(t, "a", make([]byte, 64<<10))
	}
	s := w.watching(t, w.ctx)
	s.ask(everyKey(1))
	s.progress()
	if r := s.next(); !r.Created {
		t.Fatalf("instead of a watch came %v", r)
	}
	for next := int64(2); next <= rev; {
		r := s.next()
		if len(r.Events) == 0 || r.Events[0].Kv.ModRevision != next {
			t.Fatalf("instead of revision %d came %v", next, r)
		}
		next += int64(len(r.Events))
	}
	if r := s.next(); r.WatchId != noWatch || r.Header.Revision != rev || len(r.Events) > 0 {
		t.Errorf("instead of progress came %v", r)
	}
	told := &etcdpb.WatchCreateRequest{Key: []byte("z"), ProgressNotify: true, WatchId: 7}
	s.create(told)
	rev = w.put(t, "b", nil)
	for progress, change := false, false; !progress || !change; { // of two watches, in either order
		r := s.next()
		progress = progress || r.WatchId == 7 && r.Header.Revision == rev
		change = change || r.WatchId != 7 && len(r.Events) > 0
		if r.WatchId == 7 && r.Header.Revision > rev {
			t.Fatalf("progress beyond the newest revision: %v", r)
		}
	}
	s.ask(everyKey(rev + 5)) // of what is to come there is no progress
	for r := s.next(); !r.Created; r = s.next() {
		if r.WatchId != 7 || len(r.Events) > 0 {
			t.Fatalf("instead of a watch came %v", r)
		}
	}
	s.progress()
	for range 3 {
		if r := s.next(); r.WatchId != 7 {
			t.Errorf("progress of all, where one waits for the future: %v", r)
		}
	}
}

func TestWatchesThatCannotBeAreCancelled(t *testing.T) {
	w := newWorld(t, 1, Config{})
	for range fewWatches + 1 { // so that a feed holds what is compacted
		w.watching(t, w.ctx).create(everyKey(0))
	}
	w.put(t, "a", nil)
	rev := w.put(t, "a", nil)
	if _, err := w.Compact(w.ctx, &etcdpb.CompactionRequest{Revision: rev}); err != nil {
		t.Fatal(err)
	}
	s := w.watching(t, w.ctx)
	s.create(&etcdpb.WatchCreateRequest{Key: []byte("a"), WatchId: 3})
	for why, r := range map[string]*etcdpb.WatchCreateRequest{
		"mvcc: duplicate watch ID provided on the WatchStream": {Key: []byte("a"), WatchId: 3},
		"mvcc: watcher range is empty":                         {Key: []byte("b"), RangeEnd: []byte("a")},
		revisionCompacted:                                      {Key: []byte("a"), StartRevision: -1},
	} {
		if got := s.create(r); !got.Canceled || got.WatchId != noWatch || got.CancelReason != why {
			t.Errorf("%v: %v", r, got)
		}
	}
	if got := s.create(&etcdpb.WatchCreateRequest{Key: []byte("a"), StartRevision: rev - 1}); got.Canceled {
		t.Errorf("a compacted start: %v", got)
	}
	if got := s.next(); !got.Canceled || got.CompactRevision != rev || got.CancelReason != "" {
		t.Errorf("then: %v", got)
	}
	if err := s.Send(&etcdpb.WatchRequest{RequestUnion: &etcdpb.WatchRequest_CancelRequest{CancelRequest: &etcdpb.WatchCancelRequest{WatchId: 3}}}); err != nil {
		t.Fatal(err)
	}
	if got := s.next(); !got.Canceled || got.WatchId != 3 {
		t.Errorf("cancelled: %v", got)
	}
}

func TestWatchesHearThatTheServerStops(t *testing.T) {
	w := newWorld(t, 1, Config{})
	s := w.watching(t, w.ctx)
	s.create(everyKey(0))
	w.stopServing()
	_, err := s.Recv()
	says(t, "its end", err, codes.Unavailable, "etcdserver: server stopped")
}

func TestWatchesAreCountedUntilTheyEnd(t *testing.T) {
	w := newWorld(t, 1, Config{})
	count := func() int64 { return w.server.service.watches.Load() }
	ctx, cancel := context.WithCancel(w.ctx)
	s := w.watching(t, ctx)
	for range 3 {
		s.create(everyKey(0))
	}
	if count() != 3 {
		t.Errorf("%d watches are counted, not 3", count())
	}
	cancel()
	_, err := s.Recv()
	says(t, "its end", err, codes.Canceled, "context canceled")
	testwait.For(t, func() error {
		if watches, calls := count(), w.server.service.calls.Load(); watches > 0 || calls > 0 {
			return fmt.Errorf("%d watches and %d calls are still counted", watches, calls)
		}
		return nil
	})
}
