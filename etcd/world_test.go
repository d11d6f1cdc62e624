package etcd

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/etcd/auth"
	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/authn"
	"github.com/aweigh/aweigh/internal/testparallel"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store/diskstore"
	"github.com/aweigh/aweigh/votes"
)

func TestMain(m *testing.M) {
	testparallel.Waiting()
	goleak.VerifyTestMain(m)
}

// world is a node that serves etcd's API, and a client of it.
type world struct {
	etcdpb.KVClient
	etcdpb.WatchClient
	etcdpb.MaintenanceClient
	etcdpb.ClusterClient
	etcdpb.LeaseClient
	etcdpb.LockClient
	etcdpb.ElectionClient
	etcdpb.AuthClient
	conn     *grpc.ClientConn
	node     *node.Node
	server   *Server
	identity votes.PrivateKey // of the node
	ctx      context.Context

	stopServing func()
}

// newWorld starts the first of so many anchors; alone, it decides nothing if there
// are more.
func newWorld(t testing.TB, anchors int, cfg Config, change ...func(*scope.Policy)) *world {
	t.Helper()
	return newWorldOf(t, anchors, cfg, node.Config{}, change...)
}

// newWorldOf is newWorld with what else is to be said of the node.
func newWorldOf(t testing.TB, anchors int, cfg Config, n node.Config, change ...func(*scope.Policy)) *world {
	t.Helper()
	policy := scope.OpenPolicy(quorum.BFT)
	for _, c := range change {
		c(&policy)
	}
	key := func() votes.PrivateKey {
		k, err := votes.GenerateKey(votes.Ed25519, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	var founders []machine.Founder
	var first [2]votes.PrivateKey
	for i := range anchors {
		keys := [2]votes.PrivateKey{key(), key()}
		if i == 0 {
			first = keys
		}
		peer, err := machine.PeerOf(keys[0])
		if err != nil {
			t.Fatal(err)
		}
		founders = append(founders, machine.Founder{Name: string(rune('a' + i)), Key: keys[1].Public(), Peer: peer})
	}
	g, err := machine.NewGenesis("test", aweigh.InstantOf(time.Now()), policy, founders...)
	if err != nil {
		t.Fatal(err)
	}
	n.Name, n.Genesis, n.Identity, n.Anchor = "a", g, first[0], &first[1]
	return serve(t, cfg, n)
}

// light starts a node beside a world's, which holds the root scope alone.
func (w *world) light(t testing.TB) *world {
	t.Helper()
	identity, err := votes.GenerateKey(votes.Ed25519, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, Config{}, node.Config{Name: "light", Genesis: w.node.Root().Genesis(), Identity: identity, Bootstrap: w.node.Addrs(), Follow: [][]byte{}})
}

// serve starts a node in memory, and a client of its etcd API.
func serve(t testing.TB, cfg Config, n node.Config) *world {
	t.Helper()
	disk, err := diskstore.Open("store", diskstore.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	n.Store, n.Listen, n.Timeout = disk, []string{"/ip4/127.0.0.1/tcp/0"}, 2*time.Second
	w := &world{identity: n.Identity}
	if w.node, err = node.New(n); err != nil {
		t.Fatal(err)
	}
	if spy, ok := cfg.Node.(*loadSpy); ok {
		spy.Node = w.node
	} else {
		cfg.Node = w.node
	}
	cfg.Listen, cfg.Guard = "127.0.0.1:0", auth.NewGuard(w.node, n.Identity)
	cfg.Callers = &authn.Row{Authenticators: []authn.Authenticator{authn.Users(cfg.Guard.UserOf), authn.Certs{}}, Anonymous: true}
	if w.server, err = Listen(cfg); err != nil {
		t.Fatal(err)
	}
	// Windows of one size: those that grow would hold 16 MiB for each stream of the client.
	if w.conn, err = grpc.NewClient(w.server.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
		grpc.WithStaticStreamWindowSize(1<<16), grpc.WithStaticConnWindowSize(1<<20)); err != nil {
		t.Fatal(err)
	}
	w.KVClient, w.WatchClient = etcdpb.NewKVClient(w.conn), etcdpb.NewWatchClient(w.conn)
	w.MaintenanceClient, w.ClusterClient = etcdpb.NewMaintenanceClient(w.conn), etcdpb.NewClusterClient(w.conn)
	w.LeaseClient, w.LockClient, w.ElectionClient = etcdpb.NewLeaseClient(w.conn), etcdpb.NewLockClient(w.conn), etcdpb.NewElectionClient(w.conn)
	w.AuthClient = etcdpb.NewAuthClient(w.conn)
	served, ran := make(chan error, 1), make(chan error, 1)
	serveCtx, stopServing := context.WithCancel(context.Background())
	runCtx, stopRunning := context.WithCancel(context.Background())
	go func() { served <- w.server.Run(serveCtx) }()
	go func() { ran <- w.node.Run(runCtx) }()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	w.ctx, w.stopServing = ctx, stopServing
	t.Cleanup(func() {
		stopServing() // while streams are open
		err := <-served
		cancel()
		stopRunning()
		if err := errors.Join(err, w.conn.Close(), <-ran, disk.Close()); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) put(t testing.TB, key string, value []byte) int64 {
	t.Helper()
	r, err := w.Put(w.ctx, &etcdpb.PutRequest{Key: []byte(key), Value: value})
	if err != nil {
		t.Fatal(err)
	}
	return r.Header.Revision
}

// watching is a stream of watches.
type watching struct {
	grpc.BidiStreamingClient[etcdpb.WatchRequest, etcdpb.WatchResponse]
	t *testing.T
}

func (w *world) watching(t *testing.T, ctx context.Context) watching {
	t.Helper()
	stream, err := w.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return watching{stream, t}
}

func (w watching) ask(r *etcdpb.WatchCreateRequest) {
	w.t.Helper()
	if err := w.Send(&etcdpb.WatchRequest{RequestUnion: &etcdpb.WatchRequest_CreateRequest{CreateRequest: r}}); err != nil {
		w.t.Fatal(err)
	}
}

func (w watching) next() *etcdpb.WatchResponse {
	w.t.Helper()
	r, err := w.Recv()
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// create opens a watch, and reads that it was.
func (w watching) create(r *etcdpb.WatchCreateRequest) *etcdpb.WatchResponse {
	w.t.Helper()
	w.ask(r)
	created := w.next()
	if !created.Created {
		w.t.Fatalf("%v is answered by %v", r, created)
	}
	return created
}

func (w watching) progress() {
	w.t.Helper()
	if err := w.Send(&etcdpb.WatchRequest{RequestUnion: &etcdpb.WatchRequest_ProgressRequest{ProgressRequest: &etcdpb.WatchProgressRequest{}}}); err != nil {
		w.t.Fatal(err)
	}
}

// again is another connection of a client to a world's server.
func (w *world) again(t testing.TB) *world {
	t.Helper()
	conn, err := grpc.NewClient(w.server.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return &world{WatchClient: etcdpb.NewWatchClient(conn), KVClient: etcdpb.NewKVClient(conn), conn: conn, node: w.node, server: w.server, ctx: w.ctx}
}
