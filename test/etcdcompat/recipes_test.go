package etcdcompat

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/mirror"
	"go.etcd.io/etcd/client/v3/namespace"
	"go.etcd.io/etcd/client/v3/naming/endpoints"
	"go.etcd.io/etcd/client/v3/naming/resolver"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// TestNamespacesOfEtcdsClient puts all of one client's keys under a prefix, with the client's own
// wrappers of keys, watches and leases.
func TestNamespacesOfEtcdsClient(t *testing.T) {
	s := startAweigh(t, 1)
	c, raw := s.client(t, 0), s.client(t, 0)
	c.KV, c.Watcher, c.Lease = namespace.NewKV(c.KV, "app/"), namespace.NewWatcher(c.Watcher, "app/"), namespace.NewLease(c.Lease, "app/")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	watch := c.Watch(ctx, "k", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	<-watch
	lease, err := c.Grant(ctx, 60)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Txn(ctx).If(clientv3.Compare(clientv3.Version("k1"), "=", 0)).Then(clientv3.OpPut("k1", "v", clientv3.WithLease(lease.ID))).Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Put(ctx, "k2", "of nobody here"); err != nil {
		t.Fatal(err)
	}
	if r, err := c.Get(ctx, "", clientv3.WithPrefix()); err != nil || len(r.Kvs) != 1 || string(r.Kvs[0].Key) != "k1" {
		t.Errorf("within: %v, %v", r, err)
	}
	if r, err := raw.Get(ctx, "app/k1"); err != nil || len(r.Kvs) != 1 {
		t.Errorf("from outside: %v, %v", r, err)
	}
	if w := <-watch; len(w.Events) != 1 || string(w.Events[0].Kv.Key) != "k1" {
		t.Errorf("watched: %+v", w)
	}
	if r, err := c.TimeToLive(ctx, lease.ID, clientv3.WithAttachedKeys()); err != nil || len(r.Keys) != 1 || string(r.Keys[0]) != "k1" {
		t.Errorf("the lease: %+v, %v", r, err)
	}
}

// TestMirrorOfEtcdsClient copies what is there and what comes with the client's syncer.
func TestMirrorOfEtcdsClient(t *testing.T) {
	s := startAweigh(t, 1)
	c := s.client(t, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, key := range []string{"m/1", "m/2", "n/1", "m/3"} {
		if _, err := c.Put(ctx, key, key); err != nil {
			t.Fatal(err)
		}
	}
	syncer := mirror.NewSyncer(c, "m/", 0)
	base, failed := syncer.SyncBase(ctx)
	var keys []string
	for r := range base {
		for _, kv := range r.Kvs {
			keys = append(keys, string(kv.Key))
		}
	}
	if err := <-failed; err != nil || !slices.Equal(keys, []string{"m/1", "m/2", "m/3"}) {
		t.Fatalf("the base: %v, %v", keys, err)
	}
	updates := syncer.SyncUpdates(ctx)
	if _, err := c.Put(ctx, "m/4", "new"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Delete(ctx, "m/1"); err != nil {
		t.Fatal(err)
	}
	var events []*clientv3.Event
	for len(events) < 2 {
		w, open := <-updates
		if !open || w.Err() != nil {
			t.Fatalf("updates end: %v", w.Err())
		}
		events = append(events, w.Events...)
	}
	if len(events) != 2 || string(events[0].Kv.Key) != "m/4" || events[1].Type != clientv3.EventTypeDelete {
		t.Errorf("updates: %v", events)
	}
}

// TestResolverOfEtcdsClient finds a gRPC server by a name that stands in the keys, and follows when it moves.
func TestResolverOfEtcdsClient(t *testing.T) {
	s := startAweigh(t, 4)
	c := newClient(t, s.addresses...)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	serve := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		grpc_health_v1.RegisterHealthServer(server, health.NewServer())
		go func() { _ = server.Serve(l) }()
		t.Cleanup(server.Stop)
		return l.Addr().String()
	}
	manager, err := endpoints.NewManager(c, "services/demo")
	if err != nil {
		t.Fatal(err)
	}
	if err := manager.AddEndpoint(ctx, "services/demo/1", endpoints.Endpoint{Addr: serve()}); err != nil {
		t.Fatal(err)
	}
	builder, err := resolver.NewBuilder(c)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("etcd:///services/demo", grpc.WithResolvers(builder), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	asked := grpc_health_v1.NewHealthClient(conn)
	if _, err := asked.Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Fatal(err)
	}
	if err := manager.AddEndpoint(ctx, "services/demo/2", endpoints.Endpoint{Addr: serve()}); err != nil {
		t.Fatal(err)
	}
	if err := manager.DeleteEndpoint(ctx, "services/demo/1"); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := asked.Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.WaitForReady(true)); err != nil {
			t.Fatal(err)
		}
	}
	for { // List is a serializable read, of any of the nodes
		all, err := manager.List(ctx)
		if err != nil {
			t.Fatalf("%v, %v", all, err)
		}
		if _, there := all["services/demo/2"]; there && len(all) == 1 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
