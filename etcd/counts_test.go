package etcd

import (
	"fmt"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/testwait"
)

// byCode is how many calls of a method ended, by code.
type byCode map[codes.Code]uint64

// expect waits until a method has just these counts: a client may get the end of its
// call before that is counted.
func (w *world) expect(t *testing.T, service, method, kind string, started uint64, want byCode) {
	t.Helper()
	testwait.For(t, func() error {
		var last MethodCounts
		found := 0
		for _, m := range w.server.Counts().Methods {
			if m.Service == service && m.Method == method {
				last = m
				found++
			}
		}
		if found != 1 {
			t.Fatalf("%s/%s is counted in %d places", service, method, found)
		}
		same := last.Started == started && last.Kind == kind
		for c, n := range last.Handled {
			same = same && n == want[codes.Code(c)]
		}
		if !same {
			return fmt.Errorf("%s/%s: %+v, not %d started and %v", service, method, last, started, want)
		}
		return nil
	})
}

func TestCallsAreCountedByTheirCode(t *testing.T) {
	w := newWorld(t, 1, Config{})
	for range 7 {
		w.put(t, "a", nil)
	}
	if _, err := w.Put(w.ctx, &etcdpb.PutRequest{Key: []byte("a"), Lease: 4711}); err == nil {
		t.Fatal("a lease that there is not")
	}
	if _, err := w.Put(w.ctx, &etcdpb.PutRequest{}); err == nil {
		t.Fatal("a key without a name")
	}
	calls := &w.server.service.calls
	calls.Add(maxCalls)
	if _, err := w.Range(w.ctx, &etcdpb.RangeRequest{Key: []byte("a")}); err == nil {
		t.Fatal("a call too many")
	}
	calls.Add(-maxCalls)
	w.expect(t, "etcdserverpb.KV", "Put", "unary", 9, byCode{codes.OK: 7, codes.NotFound: 1, codes.InvalidArgument: 1})
	w.expect(t, "etcdserverpb.KV", "Range", "unary", 1, byCode{codes.ResourceExhausted: 1})
	w.expect(t, "etcdserverpb.KV", "Txn", "unary", 0, nil)

	// A stream is one call from its start to its end.
	watching := w.watching(t, w.ctx)
	watching.create(&etcdpb.WatchCreateRequest{Key: []byte("a")})
	watching.create(&etcdpb.WatchCreateRequest{Key: []byte("b")})
	w.expect(t, "etcdserverpb.Watch", "Watch", "bidi_stream", 1, nil)
	if n := w.server.Counts().Watches; n != 2 {
		t.Errorf("%d watches", n)
	}
	snapshot, err := w.Snapshot(w.ctx, &etcdpb.SnapshotRequest{})
	for err == nil {
		_, err = snapshot.Recv()
	}
	w.expect(t, "etcdserverpb.Maintenance", "Snapshot", "server_stream", 1, byCode{codes.OK: 1})
	if _, err := healthpb.NewHealthClient(w.conn).Check(w.ctx, &healthpb.HealthCheckRequest{Service: "none"}); err == nil {
		t.Fatal("a service that there is not")
	}
	w.expect(t, "grpc.health.v1.Health", "Check", "unary", 1, byCode{codes.NotFound: 1})

	methods := len(w.server.Counts().Methods)
	for _, name := range []string{"/etcdserverpb.Cluster/MemberAdd", "/made.up/Name", "/etcdserverpb.KV/Name"} {
		if err := w.conn.Invoke(w.ctx, name, &etcdpb.AlarmRequest{}, &etcdpb.AlarmResponse{}); err == nil {
			t.Fatalf("%s is served", name)
		}
	}
	if n := len(w.server.Counts().Methods); n != methods {
		t.Errorf("%d methods, and %d when clients made up names", methods, n)
	}

	w.stopServing()
	for {
		if _, err := watching.Recv(); err != nil {
			break
		}
	}
	w.expect(t, "etcdserverpb.Watch", "Watch", "bidi_stream", 1, byCode{codes.Unavailable: 1})
}

// Messages count with the bytes that they are, whichever way they go.
func TestBytesOfMessagesAreCounted(t *testing.T) {
	w := newWorld(t, 1, Config{})
	request := &etcdpb.PutRequest{Key: []byte("a"), Value: make([]byte, 100_000)}
	before := w.server.Counts()
	put, err := w.Put(w.ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	asked := &etcdpb.RangeRequest{Key: []byte("a")}
	got, err := w.Range(w.ctx, asked)
	if err != nil {
		t.Fatal(err)
	}
	c := w.server.Counts()
	if in := uint64(proto.Size(request) + proto.Size(asked)); c.Received-before.Received != in {
		t.Errorf("%d bytes were received, not %d", c.Received-before.Received, in)
	}
	if out := uint64(proto.Size(put) + proto.Size(got)); c.Sent-before.Sent != out {
		t.Errorf("%d bytes were sent, not %d", c.Sent-before.Sent, out)
	}
}

// A node without a quorum refuses those that require one, and that counts as well.
func TestRefusalsAreCounted(t *testing.T) {
	w := newWorld(t, 2, Config{})
	ctx := metadata.AppendToOutgoingContext(w.ctx, "hasleader", "true")
	if _, err := w.Range(ctx, &etcdpb.RangeRequest{Key: []byte("a")}); err == nil {
		t.Fatal("a read without a leader")
	}
	stream, err := w.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, etcdpb.Watch_Watch_FullMethodName)
	if err == nil {
		err = stream.RecvMsg(&etcdpb.WatchResponse{})
	}
	if err == nil {
		t.Fatal("a watch without a leader")
	}
	w.expect(t, "etcdserverpb.KV", "Range", "unary", 1, byCode{codes.Unavailable: 1})
	w.expect(t, "etcdserverpb.Watch", "Watch", "bidi_stream", 1, byCode{codes.Unavailable: 1})
}
