package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Node is what the API needs of a node; *node.Node is one.
type Node interface {
	Txn(ctx context.Context, t scope.Txn, once node.Once) (node.Receipt, error)
	Compact(ctx context.Context, revision int64, once node.Once) (node.Receipt, error)
	Grant(ctx context.Context, id, ttl int64, once node.Once) (int64, node.Receipt, error)
	Revoke(ctx context.Context, id int64, once node.Once) (node.Receipt, error)
	KeepAlive(ctx context.Context, ids []int64) ([]int64, error)
	AwaitMotion(ctx context.Context, id []byte, tell func(node.Motion, scope.Head) error) error
	Range(ctx context.Context, key, end []byte, r scope.Range, linearizable bool) (scope.RangeResult, scope.Head, error)
	Page(ctx context.Context, key, end []byte, r scope.Range, most int, sure bool) (scope.RangeResult, error)
	Latest(ctx context.Context, key, end []byte, linearizable bool) (int64, error)
	Read(ctx context.Context, linearizable bool) (*node.View, error)
	ReadOf(ctx context.Context, ranges node.Ranges, linearizable bool) (*node.View, error)
	Holds(ctx context.Context, ranges node.Ranges) (bool, error)
	Look(ctx context.Context, t *scope.Txn, linearizable bool) (node.Looked, error)
	Root() *node.Part
	Legs(ctx context.Context, key, end []byte, from int64) (legs []*node.Leg, newest, compacted int64, err error)
	Follow(ctx context.Context, l *node.Leg, from int64) ([]*node.Leg, error)
	Watch(ctx context.Context, key, end []byte, from int64, deliver func(node.Changes) error) error
	Closed(ctx context.Context) int64
	Lease(ctx context.Context, id int64, keys bool) (scope.Granted, [][]byte, bool, scope.Head, error)
	Changed() <-chan struct{}
	LastHead() scope.Head
	LastStatus() node.Status
	Peer() node.Peer
	Overview() node.Overview
	Wheres(ctx context.Context, peers []node.Peer) map[node.Peer]node.Where
	ServeClients(urls []string)
	Scopes() []node.ScopeInfo
	Reach() node.Reach
	Genesis() scope.Genesis
	Limits() scope.Limits
}

// Config says what is served, and where. Listen and Node are required.
type Config struct {
	Listen string      // host:port
	TLS    *tls.Config // nil: clients come as they are
	Node   Node
	// Identity is the node's own: it signs the tokens of clients that it knows.
	Identity votes.PrivateKey
	Size     func() (taken, live int64) // bytes of the store's files, and of those that are needed; nil if nobody knows
	Log      *slog.Logger
	// Announce are the URLs at which clients reach the server, for other nodes to tell.
	// Default: the address listened on, unless that is every one.
	Announce []string
	// Scratch is a directory for files of a moment, such as snapshots, on a disk with
	// room for the content. Default: that of the system.
	Scratch string

	// ProgressEvery is how often a watch that asked for it hears how far it is
	// while nothing happens. Default 10 minutes, as in etcd.
	ProgressEvery time.Duration
}

// Limits of one server. They keep clients that are broken or hostile from taking
// what others need.
const (
	maxRequest  = 3 << 19                // bytes of a request, 1.5 MiB, as in etcd
	maxReceived = maxRequest + 512<<10   // above it, gRPC does not even read one
	maxAnswer   = 1<<31 - 1              // a range may be large, as in etcd
	maxConns    = 2048                   // connections at once
	maxStreams  = 4096                   // calls at once of one connection
	maxCalls    = 8192                   // calls at once, watches' streams included
	maxArrivals = 256                    // requests that are being read at once
	arrivalTime = 10 * time.Second       // in which each of those above half of them must be there
	unread      = 128 << 10              // bytes that a call may have sent and nobody has read
	maxWatches  = 65536                  // at once, of all streams
	idlePing    = 30 * time.Second       // after which a silent connection is asked whether it lives
	minPing     = 5 * time.Second        // how often clients may ask the same, as in etcd
	workers     = 256                    // goroutines that are kept for calls, so that each need not grow a stack of its own
	greeting    = 10 * time.Second       // in which a connection must have shaken hands
	linger      = 2 * time.Second        // how long calls may take after the end
	leaderFresh = 500 * time.Millisecond // for how long one look for a quorum is good
)

// Server serves the API on one address.
type Server struct {
	listener net.Listener
	grpc     *grpc.Server
	stop     context.CancelFunc // ends the watches
	service  *service
}

// service is what the services share.
type service struct {
	node            Node
	cluster, member uint64
	size            func() (taken, live int64)
	log             *slog.Logger
	progressEvery   time.Duration
	stopping        <-chan struct{}

	sources  sources
	watches  atomic.Int64
	calls    atomic.Int64
	counted  counted
	arrivals arrivals
	leader   leaderSense
	guard    guard
	tokens   tokens
	identity votes.PrivateKey
	hashes   hashes
	hashing  chan struct{} // holds a token while a digest is computed
	saving   chan struct{} // holds a token while a snapshot is made
	scratch  string
}

// Listen opens the server's address. Whoever reaches it can read and write: the
// caller says which addresses are allowed; users, if they are enabled, what may be done.
func Listen(cfg Config) (*Server, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.ProgressEvery <= 0 {
		cfg.ProgressEvery = 10 * time.Minute
	}
	if cfg.Size == nil {
		cfg.Size = func() (int64, int64) { return 0, 0 }
	}
	if cfg.Scratch == "" {
		cfg.Scratch = os.TempDir()
	}
	l, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	g, last := cfg.Node.Genesis(), cfg.Node.LastStatus()
	s := &service{
		node: cfg.Node, cluster: short(aweigh.Hash(g.Hash())), member: memberID(&last, cfg.Node.Peer()),
		size: cfg.Size, log: cfg.Log, progressEvery: cfg.ProgressEvery,
		stopping: ctx.Done(), hashing: make(chan struct{}, 1), saving: make(chan struct{}, 1), scratch: cfg.Scratch, arrivals: arrivals{places: make(chan struct{}, maxArrivals), most: arrivalTime},
		identity: cfg.Identity, hashes: hashes{turn: make(chan struct{}, 1)}, counted: counted{streams: make(map[string]*methodCounts)},
	}
	transport := insecure.NewCredentials()
	if cfg.TLS != nil {
		transport = credentials.NewTLS(cfg.TLS)
	}
	server := grpc.NewServer(
		grpc.Creds(transport), grpc.ConnectionTimeout(greeting),
		grpc.MaxRecvMsgSize(maxReceived), grpc.MaxSendMsgSize(maxAnswer), grpc.MaxConcurrentStreams(maxStreams),
		grpc.StaticStreamWindowSize(unread), grpc.StaticConnWindowSize(8*unread),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: idlePing, Timeout: idlePing / 2}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing}),
		grpc.StreamInterceptor(s.stream), grpc.ForceServerCodecV2(newCodec(&s.counted)),
		grpc.UnknownServiceHandler(s.unimplemented), grpc.WaitForHandlers(true), grpc.NumStreamWorkers(workers),
	)
	keys := &kvServer{service: s}
	leases := &leaseServer{service: s}
	claims := claims{s, keys, leases}
	for _, x := range []struct {
		desc grpc.ServiceDesc
		impl any
	}{
		{etcdpb.KV_ServiceDesc, keys},
		{etcdpb.Lease_ServiceDesc, leases},
		{etcdpb.Lock_ServiceDesc, &lockServer{claims: claims}},
		{etcdpb.Election_ServiceDesc, &electionServer{claims: claims}},
		{etcdpb.Watch_ServiceDesc, &watchServer{service: s}},
		{etcdpb.Cluster_ServiceDesc, &clusterServer{service: s}},
		{etcdpb.Auth_ServiceDesc, &authServer{service: s}},
		{etcdpb.Maintenance_ServiceDesc, &maintenanceServer{service: s}},
		{healthpb.Health_ServiceDesc, newHealth(s)},
	} {
		server.RegisterService(s.admitted(x.desc), x.impl)
	}
	if len(cfg.Announce) == 0 {
		cfg.Announce = announced(l.Addr().String(), cfg.TLS != nil)
	}
	cfg.Node.ServeClients(cfg.Announce)
	return &Server{listener: bounded(l, maxConns), grpc: server, stop: stop, service: s}, nil
}

// Addr is the address listened on, with the port that was chosen.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Run serves until ctx ends; then calls in progress get a moment to finish. When
// it returns, nothing of it reads the store any more.
func (s *Server) Run(ctx context.Context) error {
	stopped := make(chan struct{})
	end := context.AfterFunc(ctx, func() {
		defer close(stopped)
		s.stop()
		last := time.AfterFunc(linger, s.grpc.Stop)
		defer last.Stop()
		s.grpc.GracefulStop()
	})
	err := s.grpc.Serve(s.listener)
	if end() {
		return errors.Join(err, s.Close())
	}
	<-stopped
	return nil
}

// Close ends a server that does not Run.
func (s *Server) Close() error {
	s.stop()
	s.grpc.Stop()
	if err := s.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("etcd: %w", err)
	}
	return nil
}
