package etcd

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// value is content that tells one change from another.
func value(n, size int) []byte { return bytes.Repeat([]byte{byte(n)}, size) }

// TestManyWatchesStayInTheirBudget opens sixteen watches with prev_kv on 24 MiB, each on a stream of its own, which
// nobody reads for a while, and which then hear all of it.
func TestManyWatchesStayInTheirBudget(t *testing.T) {
	testshort.Skip(t)
	const budget, size, puts, streams = 4 << 20, 1 << 20, 24, 16
	w := newWorldOf(t, 1, Config{}, node.Config{WatchMemory: budget, WatchSlow: time.Hour})
	for i := range puts {
		w.put(t, "k", value(i, size))
	}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, most := heap(), int64(0)
	var all []watching
	for range streams {
		s := w.watching(t, w.ctx)
		ask := everyKey(1)
		ask.PrevKv = true
		s.create(ask)
		all = append(all, s)
	}
	for range 20 {
		most = max(most, heap()-before)
		time.Sleep(20 * time.Millisecond) // the heap is measured while watches rest
	}
	// A loan goes above the budget by a change and what it replaced, and others that were under way meanwhile do too.
	if c := w.node.WatchMemory(); c.Used > budget+16*size || c.Used < size {
		t.Errorf("watches that nobody reads hold %d bytes of %d", c.Used, c.Limit)
	}
	done := make(chan error, streams)
	for _, s := range all {
		go func() {
			for next := 0; next < puts; {
				r, err := s.Recv()
				if err != nil {
					done <- err
					return
				}
				for _, e := range r.Events {
					if !bytes.Equal(e.Kv.Value, value(next, size)) || next > 0 && !bytes.Equal(e.PrevKv.GetValue(), value(next-1, size)) || next == 0 && e.PrevKv != nil {
						done <- fmt.Errorf("change %d comes as %d bytes after %d", next, len(e.Kv.Value), len(e.PrevKv.GetValue()))
						return
					}
					next++
				}
			}
			done <- nil
		}()
	}
	for left := streams; left > 0; {
		select {
		case err := <-done:
			if left--; err != nil {
				t.Fatal(err)
			}
		case <-time.After(20 * time.Millisecond):
			most = max(most, heap()-before)
		}
	}
	t.Logf("%d MiB more in use at most", most>>20)
	if most > 256<<20 { // the clients' own included, which are in this process: up to 160 MiB are theirs
		t.Errorf("%d MiB were in use for watches with a budget of %d", most>>20, budget>>20)
	}
}

// TestWatchesShareWhatTheyDeliver has many streams deliver one large change, and no more of it held than once.
func TestWatchesShareWhatTheyDeliver(t *testing.T) {
	w := newWorld(t, 1, Config{})
	var all []watching
	for range 3 * fewWatches {
		s := w.watching(t, w.ctx)
		s.create(everyKey(0))
		all = append(all, s)
	}
	const size = 1 << 20
	w.put(t, "k", value(1, size))
	for _, s := range all {
		if r := s.next(); len(r.Events) != 1 || !bytes.Equal(r.Events[0].Kv.Value, value(1, size)) {
			t.Fatal("it does not bring the change")
		}
	}
	if c := w.node.WatchMemory(); c.Used < size || c.Used > size+size/2 {
		t.Errorf("%d bytes are held for %d streams with a change of %d", c.Used, len(all), size)
	}
}

func TestAnEventAboveTheBudgetIsHeard(t *testing.T) {
	w := newWorldOf(t, 1, Config{}, node.Config{WatchMemory: 64 << 10, WatchSlow: time.Hour})
	var all []watching
	for range 3 {
		s := w.watching(t, w.ctx)
		s.create(everyKey(1))
		all = append(all, s)
	}
	for i := range 3 {
		w.put(t, "k", value(i, 1<<20))
	}
	done := make(chan error, len(all))
	for _, s := range all {
		go func() { done <- s.hears(3, 1<<20) }()
	}
	for range all {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// hears reads so many changes, of which the nth has the content of the nth value.
func (w watching) hears(count, size int) error {
	for next := 0; next < count; {
		r, err := w.Recv()
		if err != nil {
			return err
		}
		for _, e := range r.Events {
			if !bytes.Equal(e.Kv.Value, value(next, size)) {
				return fmt.Errorf("instead of change %d comes another", next)
			}
			next++
		}
	}
	return nil
}

// TestLargeRevisionsComeInFragments deletes more at one revision than the budget for watches holds. It comes as one
// answer, and to who asked for fragments in several.
func TestLargeRevisionsComeInFragments(t *testing.T) {
	w := newWorldOf(t, 1, Config{}, node.Config{WatchMemory: 1 << 20})
	const keys, size = 6, 512 << 10
	for i := range keys {
		w.put(t, fmt.Sprintf("k%d", i), value(i, size))
	}
	r, err := w.DeleteRange(w.ctx, &etcdpb.DeleteRangeRequest{Key: []byte("k"), RangeEnd: []byte("l")})
	if err != nil {
		t.Fatal(err)
	}
	last := w.put(t, "z", nil)
	for _, fragment := range []bool{false, true} {
		ask := everyKey(r.Header.Revision)
		ask.PrevKv, ask.Fragment = true, fragment
		s := w.watching(t, w.ctx)
		s.create(ask)
		gone, parts := 0, 0
		for revision := int64(0); revision < last; {
			r := s.next()
			if parts++; proto.Size(r) > 2*loanOf && fragment {
				t.Errorf("a fragment of %d bytes", proto.Size(r))
			}
			for _, e := range r.Events {
				if revision = e.Kv.ModRevision; revision == last {
					continue
				}
				if e.Type != etcdpb.Event_DELETE || !bytes.Equal(e.PrevKv.GetValue(), value(gone, size)) || e.Kv.Value != nil {
					t.Fatalf("deletion %d comes as %v", gone, e.Type)
				}
				gone++
			}
			if whole := gone == keys; whole == r.Fragment {
				t.Errorf("after %d of %d deletions, fragment is %v", gone, keys, r.Fragment)
			}
		}
		if gone != keys || fragment != (parts > 2) {
			t.Errorf("%d deletions in %d answers, with fragments: %v", gone, parts, fragment)
		}
	}
}

// loadSpy is a node, and what is asked of it.
type loadSpy struct {
	*node.Node
	most atomic.Int64 // changes that a watch held at a time
}

func (s *loadSpy) Load(ctx context.Context, b *node.Borrower, changes []node.Change, prev, split bool) (
	l *node.Loan, rest []node.Change, err error) {
	l, rest, err = s.Node.Load(ctx, b, changes, prev, split)
	for n := int64(max(len(changes), len(rest))); ; {
		if is := s.most.Load(); n <= is || s.most.CompareAndSwap(is, n) {
			return l, rest, err
		}
	}
}

// TestManyWatchesOfOneLargeRevision has sixteen streams watch a revision with 20,000 deletions, half of them in
// fragments, which no client reads for a while. They hold few of its places, and what they deliver within the budget.
// Each hears every deletion once, in order, and those without fragments all in one answer.
func TestManyWatchesOfOneLargeRevision(t *testing.T) {
	testshort.Skip(t)
	const keys, budget, streams = 20_000, 4 << 20, 16
	spy := new(loadSpy)
	w := newWorldOf(t, 1, Config{Node: spy}, node.Config{WatchMemory: budget, WatchSlow: time.Hour})
	key := func(i int) string { return fmt.Sprintf("k%05d", i) }
	for i := 0; i < keys; {
		txn := new(etcdpb.TxnRequest)
		for ; i < keys && len(txn.Success) < 125; i++ {
			put := &etcdpb.PutRequest{Key: []byte(key(i))}
			txn.Success = append(txn.Success, &etcdpb.RequestOp{Request: &etcdpb.RequestOp_RequestPut{RequestPut: put}})
		}
		if _, err := w.Txn(w.ctx, txn); err != nil {
			t.Fatal(err)
		}
	}
	r, err := w.DeleteRange(w.ctx, &etcdpb.DeleteRangeRequest{Key: []byte("k"), RangeEnd: []byte("l")})
	if err != nil || r.Deleted != keys {
		t.Fatalf("%d are deleted: %v", r.GetDeleted(), err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute) // with -race, beside others
	defer cancel()
	var all []watching
	for i := range streams {
		s := w.watching(t, ctx)
		ask := everyKey(r.Header.Revision)
		ask.Fragment = i%2 == 1
		s.create(ask)
		all = append(all, s)
	}
	testwait.Until(t, "half of the loads wait", func() bool { return w.node.WatchMemory().Waited >= streams/2 })
	const one = 400 // bytes at most that are counted for a deletion, and for its encoding
	if used := w.node.WatchMemory().Used; used > budget+keys*one {
		t.Errorf("%d bytes are held", used)
	}
	done := make(chan error, streams)
	for i, s := range all {
		go func() {
			for next, fragment := 0, true; fragment; {
				r, err := s.Recv()
				if err != nil {
					done <- err
					return
				}
				for _, e := range r.Events {
					if string(e.Kv.Key) != key(next) || e.Type != etcdpb.Event_DELETE {
						done <- fmt.Errorf("deletion %d is of %s", next, e.Kv.Key)
						return
					}
					next++
				}
				if fragment = r.Fragment; fragment && i%2 == 0 || fragment != (next < keys) {
					done <- fmt.Errorf("stream %d: after %d deletions, fragment is %v", i, next, fragment)
					return
				}
			}
			done <- nil
		}()
	}
	for range all {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if most := spy.most.Load(); most > 4096 || most == 0 {
		t.Errorf("a watch holds the places of %d changes at a time", most)
	}
}

// loanOf is about what one answer holds at most, in bytes.
const loanOf = 1 << 20

// TestWatchersThatTakeNothingAreCutOff fills the budget with watches of a client that reads nothing, and another
// client's goes on.
func TestWatchersThatTakeNothingAreCutOff(t *testing.T) {
	testshort.Skip(t)
	w := newWorldOf(t, 1, Config{}, node.Config{WatchMemory: 1 << 20, WatchSlow: 2 * time.Second})
	for i := range 8 {
		w.put(t, "k", value(i, 1<<20))
	}
	for range 4 {
		w.watching(t, w.ctx).create(everyKey(1))
	}
	other := w.again(t)
	s := other.watching(t, w.ctx)
	s.create(everyKey(1))
	if err := s.hears(8, 1<<20); err != nil {
		t.Fatal(err)
	}
	if c := w.node.WatchMemory(); c.Cut == 0 || c.Waited == 0 {
		t.Errorf("nobody was cut off: %+v", c)
	}
}

// TestDeliveriesAreWhatProtobufWrites encodes events by hand, and decodes them by protobuf.
func TestDeliveriesAreWhatProtobufWrites(t *testing.T) {
	w := newWorld(t, 1, Config{})
	b := w.node.Borrower(nil)
	defer b.Close()
	l, _, err := w.node.Load(w.ctx, b, nil, true, false)
	if err != nil {
		t.Fatal(err)
	}
	var events []*scope.Event
	want := &etcdpb.WatchResponse{Header: &etcdpb.ResponseHeader{Revision: 9}, WatchId: 7, Fragment: true}
	for i, size := range []int{0, 1, 127, 128, sharedFrom - 1, sharedFrom, partBytes, partBytes + 1, 3*partBytes + 5} {
		kv := scope.KeyValue{Key: []byte("k"), Value: value(i, size), CreateRevision: int64(i), ModRevision: 3, Version: int64(size), Lease: int64(-i)}
		before := scope.KeyValue{Key: []byte("k"), Value: value(i+1, size), ModRevision: 1, Lease: 1 << 60}
		for _, e := range []*scope.Event{
			{Class: lineage.Insert, Kv: kv},
			{Class: lineage.Update, Kv: kv, Prev: &before},
			{Class: lineage.Delete, Kv: scope.KeyValue{Key: []byte("d"), ModRevision: 3, UID: kv.UID}, Prev: &before},
		} {
			events = append(events, e)
			out := &etcdpb.Event{Kv: kvOf(&e.Kv)}
			if e.Class == lineage.Delete {
				out.Type = etcdpb.Event_DELETE
			}
			if e.Prev != nil {
				out.PrevKv = kvOf(e.Prev)
			}
			want.Events = append(want.Events, out)
		}
	}
	d := &delivery{head: &etcdpb.WatchResponse{Header: want.Header, WatchId: 7, Fragment: true}, events: events, prev: true, loan: l}
	d.parts.Store(1)
	raw, err := d.encode()
	if err != nil {
		t.Fatal(err)
	}
	got := new(etcdpb.WatchResponse)
	if err := proto.Unmarshal(raw.Materialize(), got); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got, want) {
		t.Error("what is decoded is not what was encoded")
	}
	held := w.node.WatchMemory().Used
	raw.Free()
	d.Put(nil)
	if left := w.node.WatchMemory().Used; held == 0 || left != 0 {
		t.Errorf("%d bytes were held for it, and %d are when it was written", held, left)
	}
}

// TestClientsOfTheGatewayThatTakeNothingAreCutOff: their streams come from within the process, and what is closed is
// their own connection.
func TestClientsOfTheGatewayThatTakeNothingAreCutOff(t *testing.T) {
	testshort.SkipUnlessLong(t)
	w := newWorldOf(t, 1, Config{}, node.Config{WatchMemory: 1 << 20, WatchSlow: 2 * time.Second})
	const puts = 24 // more than sockets hold
	for i := range puts {
		w.put(t, "k", value(i, 1<<20))
	}
	const body = `{"create_request":{"key":"aw==","start_revision":"1"}}`
	for range 2 {
		c, err := net.Dial("tcp", w.server.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := fmt.Fprintf(c, "POST /v3/watch HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
			t.Fatal(err)
		}
	}
	testwait.Until(t, "the gateway's watches hold changes", func() bool { return w.node.WatchMemory().Used >= 1<<20 })
	s, began := w.watching(t, w.ctx), time.Now()
	s.create(everyKey(1))
	if err := s.hears(puts, 1<<20); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > httpTaken/2 {
		t.Errorf("another watch heard all after %v: it waited for clients that take nothing", took)
	}
}
