package etcd

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/testwait"
)

func TestHealthIsToldAsEtcdDoes(t *testing.T) {
	w := newWorld(t, 2, Config{}) // without a quorum as well
	health := healthpb.NewHealthClient(w.conn)
	r, err := health.Check(w.ctx, &healthpb.HealthCheckRequest{})
	if err != nil || r.Status != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("it is %v, %v", r, err)
	}
	_, err = health.Check(w.ctx, &healthpb.HealthCheckRequest{Service: "etcdserverpb.KV"})
	says(t, "another service", err, codes.NotFound, "unknown service")
	stream, err := health.Watch(w.ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := stream.Recv(); err != nil || r.Status != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("watched, it is %v, %v", r, err)
	}
	start := time.Now()
	w.stopServing()
	_, err = stream.Recv()
	says(t, "its end", err, codes.Unavailable, "etcdserver: server stopped")
	if took := time.Since(start); took >= linger {
		t.Errorf("the end took %s: the server waited for who watches its health", took)
	}
}

// A call that is refused is refused before its request arrives: else requests that
// never do could be as many as connections have streams.
func TestCallsAreRefusedBeforeTheirRequestsAreRead(t *testing.T) {
	w := newWorld(t, 2, Config{})
	unread := func(ctx context.Context) error {
		stream, err := w.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, etcdpb.KV_Range_FullMethodName)
		if err != nil {
			return err
		}
		return stream.RecvMsg(&etcdpb.RangeResponse{})
	}
	ctx, cancel := context.WithTimeout(w.ctx, 5*time.Second)
	defer cancel()
	says(t, "a leader is required", unread(metadata.AppendToOutgoingContext(ctx, "hasleader", "true")), codes.Unavailable, noLeader)
	calls := &w.server.service.calls
	calls.Add(maxCalls)
	says(t, "a call too many", unread(ctx), codes.ResourceExhausted, "etcdserver: too many requests")
	calls.Add(-maxCalls)

	arrivals := &w.server.service.arrivals
	arrivals.most = 20 * time.Millisecond
	for range maxArrivals {
		arrivals.places <- struct{}{}
	}
	says(t, "a request too many", unread(ctx), codes.ResourceExhausted, "etcdserver: too many requests")
	arrivals.most = 5 * time.Second
	go func() { <-arrivals.places }()
	if _, err := w.Range(ctx, &etcdpb.RangeRequest{Key: []byte("a"), Serializable: true}); err != nil {
		t.Errorf("one of a burst, which finds a place: %v", err)
	}
	arrivals.most = 20 * time.Millisecond
	for range maxArrivals/2 - 1 {
		<-arrivals.places
	}
	says(t, "one that takes its time among many", unread(ctx), codes.DeadlineExceeded, "aweigh: many requests arrive at once, and this one was not complete in time; try again")
	if _, err := w.Range(ctx, &etcdpb.RangeRequest{Key: []byte("a"), Serializable: true}); err != nil {
		t.Errorf("one that comes at once: %v", err)
	}
	for range maxArrivals / 2 {
		<-arrivals.places
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if err := unread(short); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a request that never comes: %v", err)
	}
	testwait.Until(t, "calls that ended count no more", func() bool { return calls.Load() == 0 })
}
