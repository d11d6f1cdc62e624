package etcdcompat

import (
	"testing"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// TestHealthIsServed asks what probes and balancers of gRPC ask, of a node and,
// where there is one to compare with, of etcd.
func TestHealthIsServed(t *testing.T) {
	systems := map[string]func(*testing.T) *system{
		"etcd":   startEtcd,
		"aweigh": func(t *testing.T) *system { return startAweigh(t, 1) },
	}
	for name, start := range systems {
		t.Run(name, func(t *testing.T) {
			health := healthpb.NewHealthClient(start(t).conn(0))
			r, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{})
			if err != nil || r.Status != healthpb.HealthCheckResponse_SERVING {
				t.Errorf("it is %v, %v", r, err)
			}
			_, err = health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: "etcdserverpb.KV"})
			if s := status.Convert(err); s.Code() != codes.NotFound || s.Message() != "unknown service" {
				t.Errorf("of one service: %v", err)
			}
			stream, err := health.Watch(t.Context(), &healthpb.HealthCheckRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if r, err := stream.Recv(); err != nil || r.Status != healthpb.HealthCheckResponse_SERVING {
				t.Errorf("watched, it is %v, %v", r, err)
			}
		})
	}
}
