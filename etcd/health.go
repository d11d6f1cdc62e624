package etcd

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// healthServer implements gRPC's health service as etcd has it: the server as a
// whole, "", serves for as long as it answers at all, and other names are not
// known. Whether the node can decide, /readyz on its own API says.
type healthServer struct {
	*health.Server
	stopping <-chan struct{}
}

func newHealth(stopping <-chan struct{}) *healthServer {
	return &healthServer{Server: health.NewServer(), stopping: stopping}
}

// Watch implements healthpb.HealthServer. It ends with the server, which would
// otherwise wait for it.
func (h *healthServer) Watch(r *healthpb.HealthCheckRequest, stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	go func() {
		select {
		case <-h.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := h.Server.Watch(r, healthStream{stream, ctx})
	if stream.Context().Err() == nil && status.Code(err) == codes.Canceled {
		return errStopped
	}
	return err
}

// healthStream is a stream that ends with another context.
type healthStream struct {
	grpc.ServerStreamingServer[healthpb.HealthCheckResponse]
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s healthStream) Context() context.Context { return s.ctx }
