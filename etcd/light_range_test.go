package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

// shown is a ProvenReader of what a map holds.
type shown struct {
	kvs map[string]scope.KeyValue
	err error
}

func (x *shown) Range(context.Context, []byte, []byte) (*scope.RangeProof, scope.RangeReport, error) {
	var r scope.RangeReport
	for _, k := range slices.Sorted(maps.Keys(x.kvs)) {
		r.Kvs = append(r.Kvs, x.kvs[k])
	}
	return nil, r, x.err
}

// TestWatchesOfProofsMissNothing: a watch that takes the changes of a proven range from any revision on holds in the
// end what the last proof showed, however often and from where it begins again; and it is refused where changes are
// missing.
func TestWatchesOfProofsMissNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now, reader := int64(1), &shown{kvs: make(map[string]scope.KeyValue)}
		x := newTestLight(t.Context(), reader).remembered([]byte("a"), []byte("z"))
		var last proven
		prove := func() {
			var err error
			if last, err = x.fetch(t.Context()); err != nil {
				t.Fatal(err)
			}
			if last.revision > now {
				t.Fatalf("revision %d, and the newest of the store is %d", last.revision, now)
			}
			if x.reached(last.revision + 1) {
				t.Fatalf("revision %d was not reached", last.revision+1)
			}
		}
		prove()
		watches := map[string]map[string]int64{"w": {}} // the mod revisions that each holds
		after := map[string]int64{"w": last.revision}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			key := rapid.SampledFrom([]string{"b", "c", "d"}).Draw(t, "key")
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1:
				now++
				v := reader.kvs[key]
				reader.kvs[key] = scope.KeyValue{Key: []byte(key), Value: fmt.Append(nil, now), ModRevision: now, CreateRevision: max(v.CreateRevision, 1), Version: v.Version + 1, UID: aweigh.UID{1}}
			case 2:
				if _, ok := reader.kvs[key]; ok {
					now++
					delete(reader.kvs, key)
				}
			case 3:
				prove()
			case 4: // another watch begins where a reader of what was proven last would
				name := fmt.Sprint("w", len(watches))
				watches[name], after[name] = make(map[string]int64), last.revision
				for _, v := range last.kvs {
					watches[name][string(v.Key)] = v.ModRevision
				}
			case 5:
				name := rapid.SampledFrom(slices.Sorted(maps.Keys(watches))).Draw(t, "watch")
				hears(t, x, watches[name], after, name)
			}
		}
		prove()
		want := make(map[string]int64)
		for k, v := range reader.kvs {
			want[k] = v.ModRevision
		}
		for _, name := range slices.Sorted(maps.Keys(watches)) {
			if hears(t, x, watches[name], after, name); !maps.Equal(watches[name], want) {
				t.Fatalf("%s holds %v, and the keys %v", name, watches[name], want)
			}
		}
	})
}

// hears delivers to a watch.
func hears(t *rapid.T, x *provenRange, held, after map[string]int64, name string) {
	events, through, _, ok := x.since(after[name])
	if !ok || !x.reached(after[name]) {
		t.Fatalf("%s: the changes after %d are not remembered", name, after[name])
	}
	for i := range events {
		e := &events[i]
		if e.Kv.ModRevision <= after[name] {
			t.Fatalf("%s: a change at %d, and those after %d were asked for", name, e.Kv.ModRevision, after[name])
		}
		if was := held[string(e.Kv.Key)]; e.Prev != nil && e.Prev.ModRevision != was {
			t.Fatalf("%s: %q was of %d, not of %d", name, e.Kv.Key, was, e.Prev.ModRevision)
		}
		if e.Class == lineage.Delete {
			delete(held, string(e.Kv.Key))
		} else {
			held[string(e.Kv.Key)] = e.Kv.ModRevision
		}
	}
	after[name] = through
}

// TestOldChangesOfProofsAreForgotten: what is remembered is bounded, and a watch that needs what is gone hears so.
func TestOldChangesOfProofsAreForgotten(t *testing.T) {
	t.Parallel()
	reader := &shown{kvs: make(map[string]scope.KeyValue)}
	light := newTestLight(t.Context(), reader)
	x := light.remembered([]byte("k"), nil)
	for rev := int64(1); rev < 20; rev++ {
		reader.kvs["k"] = scope.KeyValue{Key: []byte("k"), Value: bytes.Repeat([]byte{byte(rev)}, 1<<20), ModRevision: rev, Version: rev}
		if _, err := x.fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	light.tasks.Wait()
	if x.size > keptBytes || len(x.batches) == 0 {
		t.Errorf("%d batches of %d bytes", len(x.batches), x.size)
	}
	if _, _, _, ok := x.since(x.floor - 1); ok || x.reached(x.floor-1) {
		t.Errorf("the change at %d is still there", x.floor)
	}
	if events, _, _, ok := x.since(x.floor); !ok || len(events) != len(x.batches) || !x.reached(x.floor) {
		t.Errorf("changes after %d are not there", x.floor)
	}
	reader.err = errors.New("none proves it")
	if _, err := x.fetch(t.Context()); !errors.Is(err, reader.err) || x.stale(time.Hour) != nil || !errors.Is(x.stale(0), reader.err) {
		t.Error(err, x.stale(time.Hour), x.stale(0))
	}
}

// TestRevisionsOfOthersNameNothing: a revision that a connection was not told of says nothing of what its client has
// seen.
func TestRevisionsOfOthersNameNothing(t *testing.T) {
	t.Parallel()
	c := &lightConn{since: make(map[uint64]int64)}
	x, other := &provenRange{id: 1}, &provenRange{id: 2}
	if c.tell(x, 5); c.knows(x, 4) || !c.knows(x, 5) || !c.knows(x, 9) || c.knows(other, 5) {
		t.Error(c.since)
	}
	if c.tell(x, 3); c.knows(x, 4) {
		t.Error("an earlier revision that came later is known")
	}
	for id := range uint64(mostTold + 10) {
		c.tell(&provenRange{id: id}, 1)
	}
	if len(c.since) > mostTold {
		t.Errorf("%d ranges", len(c.since))
	}
}

// newTestLight is a light reader without a port.
func newTestLight(ctx context.Context, reader ProvenReader) *light {
	return &light{reader: reader, ctx: ctx, atMost: time.Hour, proofs: make(chan struct{}, 1), log: slog.New(slog.DiscardHandler)}
}

// TestRangesThatNoWatchFollowsAreForgotten: what a light reader remembers is bounded, and so is what watches follow,
// which is not forgotten.
func TestRangesThatNoWatchFollowsAreForgotten(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	s := newTestLight(ctx, &shown{})
	m := &s.memory
	var watched []*provenRange
	for i := range mostFollowed {
		watched = append(watched, s.followed(fmt.Append(nil, "w", i), nil))
		s.remembered(fmt.Append(nil, "r", i), nil)
	}
	if s.followed([]byte("one more"), nil) != nil || s.followed([]byte("w0"), nil) != watched[0] {
		t.Error("the ranges that watches follow are not bounded, or one has no room for another watch")
	}
	m.left(watched[0])
	if len(m.ranges) != mostFollowed+mostRanges || m.idle != mostRanges {
		t.Errorf("%d ranges, %d idle", len(m.ranges), m.idle)
	}
	for _, x := range watched {
		if s.remembered(x.key, nil) != x {
			t.Fatal("a range that a watch follows was forgotten")
		}
		m.left(x)
	}
	if len(m.ranges) != mostRanges || m.idle != mostRanges {
		t.Errorf("%d ranges, %d idle, after all watches", len(m.ranges), m.idle)
	}
	stop()
	s.tasks.Wait()
}

// TestChangesKeepNoOldListsInMemory: an event holds what one key held before, and not all of the range.
func TestChangesKeepNoOldListsInMemory(t *testing.T) {
	t.Parallel()
	reader := &shown{kvs: map[string]scope.KeyValue{"a": {Key: []byte("a"), ModRevision: 1}, "b": {Key: []byte("b"), ModRevision: 2}}}
	s := newTestLight(t.Context(), reader)
	x := s.remembered([]byte("a"), []byte("z"))
	prove := func() {
		if _, err := x.fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.tasks.Wait()
	}
	prove()
	old := weak.Make(&x.now.kvs[0])
	reader.kvs["a"] = scope.KeyValue{Key: []byte("a"), ModRevision: 3}
	delete(reader.kvs, "b")
	prove()
	if runtime.GC(); old.Value() != nil {
		t.Error("the list is still in memory")
	}
	if events, _, _, ok := x.since(x.floor); !ok || len(events) != 2 || events[0].Prev.ModRevision != 1 {
		t.Error(events, ok)
	}
}

// TestOneWatchThatCannotBeProvenEndsAlone: where the same request would be refused again, the watch is cancelled, and
// the others of its stream go on.
func TestOneWatchThatCannotBeProvenEndsAlone(t *testing.T) {
	t.Parallel()
	reader := &choosy{}
	l, err := ListenLight(LightConfig{
		Listen: "127.0.0.1:0", Reader: reader, AtMost: 500 * time.Millisecond,
		Final: func(error) codes.Code { return codes.InvalidArgument },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	conn, err := grpc.NewClient(l.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stream, err := etcdpb.NewWatchClient(conn).Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	watch := func(id int64, key string) {
		t.Helper()
		err := stream.Send(&etcdpb.WatchRequest{RequestUnion: &etcdpb.WatchRequest_CreateRequest{
			CreateRequest: &etcdpb.WatchCreateRequest{Key: []byte(key), WatchId: id},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	came := make(map[int64][]*etcdpb.WatchResponse)
	next := func(id int64) (m *etcdpb.WatchResponse) {
		t.Helper()
		for len(came[id]) == 0 {
			m, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if m.Created || m.Canceled || len(m.Events) > 0 {
				came[m.WatchId] = append(came[m.WatchId], m)
			}
		}
		m, came[id] = came[id][0], came[id][1:]
		return m
	}
	watch(1, "good")
	next(1)
	watch(2, "bad")
	next(2)
	reader.refuses.Store(true)
	if m := next(2); !m.Canceled || m.Created || !strings.Contains(m.CancelReason, "too long") {
		t.Error(m)
	}
	watch(3, "bad")
	if m := next(3); !m.Canceled || !m.Created {
		t.Error(m)
	}
	if m := next(1); len(m.Events) != 1 {
		t.Error(m)
	}
}

// choosy shows one key, and refuses ranges that begin with "bad" from some time on. Then "good" has another version.
type choosy struct{ refuses atomic.Bool }

func (x *choosy) Range(_ context.Context, key, _ []byte) (*scope.RangeProof, scope.RangeReport, error) {
	v := scope.KeyValue{Key: key, ModRevision: 1, Version: 1}
	if x.refuses.Load() {
		if string(key) == "bad" {
			return nil, scope.RangeReport{}, errors.New("too long")
		}
		v.ModRevision, v.Version = 2, 2
	}
	return nil, scope.RangeReport{Kvs: []scope.KeyValue{v}}, nil
}

// TestWaitingReadsShareAProof: a read takes no proof that began before it did, and those that wait share one.
func TestWaitingReadsShareAProof(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reader := &slowReader{end: make(chan struct{})}
		x := newTestLight(t.Context(), reader).remembered([]byte("k"), nil)
		var done atomic.Int64
		read := func() {
			if _, err := x.fetch(t.Context()); err != nil {
				t.Error(err)
			}
			done.Add(1)
		}
		go read()
		synctest.Wait()
		for range 8 {
			go read()
			synctest.Wait()
		}
		for _, want := range []int64{1, 9} {
			reader.end <- struct{}{}
			synctest.Wait()
			if n := done.Load(); n != want {
				t.Errorf("%d reads have an answer, not %d", n, want)
			}
		}
		if reader.begun != 2 {
			t.Errorf("%d proofs, not 2", reader.begun)
		}
	})
}

// slowReader counts proofs, and ends one at a time.
type slowReader struct {
	begun int
	end   chan struct{}
}

func (x *slowReader) Range(context.Context, []byte, []byte) (*scope.RangeProof, scope.RangeReport, error) {
	x.begun++
	<-x.end
	return nil, scope.RangeReport{}, nil
}
