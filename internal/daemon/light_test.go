package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/etcd"
	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/scope"
)

// lights is a light reader, with a client of it.
type lights struct {
	conn *grpc.ClientConn
	mu   sync.Mutex
	lied []string // the nodes whose answers did not hold
}

// newLight starts a light reader of nodes. hints says whether these tell it of changes.
func newLight(t *testing.T, network aweigh.NetworkID, atMost time.Duration, hints bool, nodes ...string) *lights {
	t.Helper()
	c, err := client.Dial(nodes...)
	if err != nil {
		t.Fatal(err)
	}
	out := &lights{}
	reader := c.Verified(network, atMost, nil)
	reader.Refused = func(node string, _ error) {
		out.mu.Lock()
		defer out.mu.Unlock()
		out.lied = append(out.lied, node)
	}
	cfg := etcd.LightConfig{Listen: "127.0.0.1:0", Network: network, Reader: reader, AtMost: atMost}
	if hints {
		cfg.Hints = c.Hints
	}
	l, err := etcd.ListenLight(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	if out.conn, err = grpc.NewClient(l.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, out.conn.Close()); err != nil {
			t.Error(err)
		}
		c.Close()
	})
	return out
}

// refused reports whether an answer of a node was found not to hold.
func (l *lights) refused(node string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.lied {
		if strings.Contains(n, strings.TrimPrefix(node, "http://")) {
			return true
		}
	}
	return false
}

// TestLightReadersAreNotDeceived: clients of a light reader read and watch what is true, though the node that it asks
// first lies, and hears which node that was; from a liar alone they get no answer.
func TestLightReadersAreNotDeceived(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	r, p, network := newProven(t)
	p.write("/a", "1")
	p.write("/b", "1")
	x := &deceiver{node: p.api("")}
	hides := func(p *scope.RangeProof) {
		p.Parts[0].Kvs, p.Parts[0].Leaves.Leaves = p.Parts[0].Kvs[:1], p.Parts[0].Leaves.Leaves[:1]
	}
	x.lie.Store(&hides)
	liar := x.serve(t)

	all := &etcdpb.RangeRequest{Key: []byte("/"), RangeEnd: []byte("0")}
	alone := newLight(t, network, time.Minute, true, liar)
	if _, err := etcdpb.NewKVClient(alone.conn).Range(p.ctx, all); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "answer that holds") {
		t.Errorf("from the liar alone: %v", err)
	}
	for _, hints := range []bool{true, false} {
		both := newLight(t, network, 10*time.Second, hints, liar, r.on[0].API())
		kv := etcdpb.NewKVClient(both.conn)
		got, err := kv.Range(p.ctx, all)
		if err != nil || len(got.Kvs) != 2 || got.Count != 2 {
			t.Fatal(got, err)
		}
		if !both.refused(liar) {
			t.Error("the liar is not named")
		}
		limited, err := kv.Range(p.ctx, &etcdpb.RangeRequest{Key: all.Key, RangeEnd: all.RangeEnd, Limit: 1, KeysOnly: true, SortOrder: etcdpb.RangeRequest_DESCEND})
		if err != nil || len(limited.Kvs) != 1 || string(limited.Kvs[0].Key) != "/b" || len(limited.Kvs[0].Value) != 0 || !limited.More || limited.Count != 2 {
			t.Error(limited, err)
		}
		for _, r := range []*etcdpb.RangeRequest{{Key: []byte("/none")}, {Key: []byte("/b"), RangeEnd: []byte("/a")}} {
			if none, err := kv.Range(p.ctx, r); err != nil || none.Count != 0 {
				t.Error(none, err)
			}
		}
		if _, err := kv.Range(p.ctx, &etcdpb.RangeRequest{Key: all.Key, RangeEnd: all.RangeEnd, Revision: 1}); status.Code(err) != codes.OutOfRange {
			t.Errorf("an old revision: %v", err)
		}
		if _, err := kv.Put(p.ctx, &etcdpb.PutRequest{Key: []byte("/a")}); status.Code(err) != codes.Unimplemented {
			t.Errorf("a put: %v", err)
		}
		followsTheTruth(t, p, both, got.Header.Revision+1)
		again := newLight(t, network, 10*time.Second, hints, r.on[0].API()) // that told its client nothing
		for _, c := range []struct {
			of   *lights
			from int64
		}{{both, got.Header.Revision - 1}, {both, got.Header.Revision + 1000}, {again, got.Header.Revision + 1}} {
			w := c.of.watch(t, p.ctx, c.from)
			if m := w.next(t); !m.Created || m.Canceled {
				t.Errorf("a watch from %d on: %v", c.from, m)
			}
			if m := w.next(t); !m.Canceled || m.CompactRevision <= got.Header.Revision {
				t.Errorf("a watch from %d on, which names nothing: %v", c.from, m)
			}
		}
	}
}

// followsTheTruth watches from a revision, and changes keys meanwhile.
func followsTheTruth(t *testing.T, p *ports, l *lights, from int64) {
	t.Helper()
	now := fmt.Sprint(from)
	p.write("/a", now) // before the watch begins
	w := l.watch(t, p.ctx, from)
	if m := w.next(t); !m.Created || m.Canceled {
		t.Fatal(m)
	}
	e := w.event(t)
	if e.Type != etcdpb.Event_PUT || string(e.Kv.Key) != "/a" || string(e.Kv.Value) != now || string(e.PrevKv.GetValue()) == now || e.Kv.ModRevision < from {
		t.Error(e)
	}
	last := e.Kv.ModRevision
	p.write("/c", "3")
	if e = w.event(t); string(e.Kv.Key) != "/c" || e.Kv.ModRevision <= last {
		t.Error(e)
	}
	last = e.Kv.ModRevision
	must[*connect.Response[aweighv1.DeleteResponse]](t)(p.api("").Delete(p.ctx, connect.NewRequest(&aweighv1.DeleteRequest{Key: []byte("/c")})))
	if e = w.event(t); e.Type != etcdpb.Event_DELETE || string(e.Kv.Key) != "/c" || string(e.PrevKv.GetValue()) != "3" || e.Kv.ModRevision <= last {
		t.Error(e)
	}
}

// lightWatched is a watch of all keys.
type lightWatched struct {
	stream  grpc.BidiStreamingClient[etcdpb.WatchRequest, etcdpb.WatchResponse]
	pending []*etcdpb.Event
}

func (l *lights) watch(t *testing.T, ctx context.Context, from int64) *lightWatched {
	t.Helper()
	stream, err := etcdpb.NewWatchClient(l.conn).Watch(ctx)
	if err == nil {
		err = stream.Send(&etcdpb.WatchRequest{RequestUnion: &etcdpb.WatchRequest_CreateRequest{CreateRequest: &etcdpb.WatchCreateRequest{
			Key: []byte("/"), RangeEnd: []byte("0"), StartRevision: from, PrevKv: true,
		}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return &lightWatched{stream: stream}
}

func (w *lightWatched) next(t *testing.T) *etcdpb.WatchResponse {
	t.Helper()
	m, err := w.stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (w *lightWatched) event(t *testing.T) *etcdpb.Event {
	t.Helper()
	for len(w.pending) == 0 {
		w.pending = w.next(t).Events
	}
	e := w.pending[0]
	w.pending = w.pending[1:]
	return e
}

// TestWatchesEndWhereNothingIsProven: a watch of a light reader whose node begins to lie ends, and does not go on as if
// nothing happened.
func TestWatchesEndWhereNothingIsProven(t *testing.T) {
	t.Parallel()
	_, p, network := newProven(t)
	x := &deceiver{node: p.api("")}
	honest, hides := func(*scope.RangeProof) {}, func(p *scope.RangeProof) { p.Parts[0].Kvs, p.Parts[0].Leaves.Leaves = nil, nil }
	x.lie.Store(&honest)
	p.write("/a", "1")
	l := newLight(t, network, 2*time.Second, false, x.serve(t))
	var w *lightWatched
	begins := func() error { // again, if this process stood still for as long as a proof may be old
		w = l.watch(t, p.ctx, 0)
		for _, created := range []bool{true, false} { // the second one says how far it is
			m, err := w.stream.Recv()
			if err != nil {
				return err
			}
			if m.Created != created || m.Canceled || len(m.Events) > 0 {
				t.Fatalf("a watch without a start hears %v", m)
			}
		}
		return nil
	}
	testwait.For(t, begins)
	x.lie.Store(&hides)
	begun := time.Now()
	testwait.For(t, func() error {
		m, err := w.stream.Recv()
		switch {
		case err == nil:
			t.Errorf("the watch delivered %v", m)
		case errors.Is(err, io.EOF) || status.Code(err) != codes.Unavailable:
			t.Errorf("the watch ended with %v", err)
		}
		return nil
	})
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("the watch went on for %s", took)
	}
	x.lie.Store(&honest)
	testwait.For(t, begins)
}
