package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/etcd/auth"
	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/authn"
	"github.com/aweigh/aweigh/internal/requestlog"
	"github.com/aweigh/aweigh/node"
)

// Node is the part of a node that the API needs; *node.Node is one.
type Node interface {
	Keys
	Leases
	Claims
	Watches
	Members
	Users
	Root() *node.Replica
	Answers() *node.AnswerBudget
	Scopes() []node.ScopeInfo
}

// Config states what is served, and where. Listen, Node, Guard and Callers are required.
type Config struct {
	Listen string      // host:port
	TLS    *tls.Config // nil: clients come as they are
	// UsersOnly refuses all calls about the content while users are not enabled.
	UsersOnly bool
	Node      Node
	// Guard has the rights of callers, and makes the tokens of users.
	Guard *auth.Guard
	// Callers finds the caller of each call. It accepts anonymous ones, as Authenticate is such a call: the rights of
	// users decide then.
	Callers *authn.Row
	Size    func() (taken, live int64) // bytes of the store's files, and of those that are needed; nil if that is not known
	Log     *slog.Logger
	// Announce are the URLs at which clients reach the server, for other nodes to tell.
	// Default: the address listened on, unless that is every one.
	Announce []string
	// Scratch is a directory for files of a moment, such as snapshots, on a disk with
	// room for the content. Default: that of the system.
	Scratch string

	// Metrics answers GET /metrics; nil: nothing does.
	Metrics http.Handler
	// Requests records refusals, and reads where it is configured to; nil: nothing does.
	Requests *requestlog.Log

	// MaxRequest bounds a request, in bytes, up to LargestRequest. Default 1.5 MiB, as in etcd.
	MaxRequest int

	// ProgressEvery is how often a watch that asked for it gets its progress
	// while nothing happens. Default 10 minutes, as in etcd.
	ProgressEvery time.Duration
}

// Limits of one server. They keep clients that are broken or hostile from taking
// what others need.
const (
	maxRequest  = 3 << 19                // bytes of a request by default, 1.5 MiB, as in etcd
	received    = 512 << 10              // bytes above those, from which on gRPC does not even read a request
	maxAnswer   = 1<<31 - 1              // a range may be large, as in etcd
	maxConns    = 2048                   // connections at once
	maxStreams  = 4096                   // calls at once of one connection
	maxCalls    = 8192                   // calls at once, watches' streams included
	maxArrivals = 256                    // requests that are being read at once
	arrivalTime = 10 * time.Second       // in which each of those above half of them must be there
	unread      = 128 << 10              // bytes that a call may have sent and that are unread
	maxWatches  = 65536                  // at once, of all streams
	idlePing    = 30 * time.Second       // after which a silent connection is asked whether it lives
	minPing     = 5 * time.Second        // how often clients may ask the same, as in etcd
	workers     = 256                    // goroutines that are kept for calls, so that each need not grow a stack of its own
	greeting    = 10 * time.Second       // in which a connection must have shaken hands
	linger      = 2 * time.Second        // how long calls may take after the end
	leaderFresh = 500 * time.Millisecond // for how long one look for a quorum is good
)

// LargestRequest bounds Config.MaxRequest: no scope takes a larger mutation.
const LargestRequest = 6 << 20

// Server serves the API on one address.
type Server struct {
	port    *port
	grpc    *grpc.Server
	http    *http.Server
	gateway *gateway
	stop    context.CancelFunc // ends the watches
	service *service
}

// service is shared by the services.
type service struct {
	node            Node
	usersOnly       bool // as in Config
	cluster, member uint64
	size            func() (taken, live int64)
	log             *slog.Logger
	requests        *requestlog.Log // nil: none are recorded
	progressEvery   time.Duration
	maxRequest      int // bytes
	stopping        <-chan struct{}

	conns     *boundedListener
	sources   sources
	requested sync.Map      // the answers to requests of the gateway, *node.Answer, by their identity
	numbered  atomic.Uint64 // such requests
	watches   atomic.Int64
	calls     atomic.Int64
	counted   counted
	arrivals  arrivals
	leader    leaderSense
	guard     *auth.Guard
	row       *authn.Row
	passwords *auth.Passwords
	hashing   chan struct{} // holds a token while a digest is computed
	saving    chan struct{} // holds a token while a snapshot is made
	scratch   string
}

// Listen opens the server's address. Every client that reaches it can read and write:
// the caller decides which addresses are allowed; users, if they are enabled, restrict
// requests.
func Listen(cfg Config) (*Server, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.ProgressEvery <= 0 {
		cfg.ProgressEvery = 10 * time.Minute
	}
	if cfg.MaxRequest <= 0 {
		cfg.MaxRequest = maxRequest
	}
	if cfg.MaxRequest > LargestRequest {
		return nil, fmt.Errorf("etcd: requests of %d bytes; at most %d can be taken", cfg.MaxRequest, LargestRequest)
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
	g, last := cfg.Node.Root().Genesis(), cfg.Node.Root().LastStatus()
	s := &service{
		node: cfg.Node, cluster: short(aweigh.Hash(g.Hash())), member: memberID(&last, cfg.Node.Peer()),
		usersOnly: cfg.UsersOnly, size: cfg.Size, log: cfg.Log, requests: cfg.Requests,
		progressEvery: cfg.ProgressEvery, maxRequest: cfg.MaxRequest,
		stopping: ctx.Done(), hashing: make(chan struct{}, 1), saving: make(chan struct{}, 1), scratch: cfg.Scratch, arrivals: arrivals{places: make(chan struct{}, maxArrivals), most: arrivalTime},
		guard: cfg.Guard, row: cfg.Callers, passwords: auth.NewPasswords(), counted: counted{streams: make(map[string]*methodCounts)},
	}
	s.conns = bounded(l, maxConns)
	server := grpc.NewServer(append(connectionLimits(), grpc.Creds(newGreeted()), grpc.MaxRecvMsgSize(s.maxRequest+received),
		grpc.StreamInterceptor(s.stream), grpc.ForceServerCodecV2(newCodec(&s.counted)),
		grpc.UnknownServiceHandler(s.unimplemented), grpc.NumStreamWorkers(workers),
	)...)
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
		{healthpb.Health_ServiceDesc, newHealth(s.stopping)},
	} {
		server.RegisterService(s.admitted(x.desc), x.impl)
	}
	if len(cfg.Announce) == 0 {
		cfg.Announce = announced(l.Addr().String(), cfg.TLS != nil)
	}
	out := &Server{port: newPort(ctx, s.conns, cfg.TLS), grpc: server, stop: stop, service: s}
	if err := out.serveHTTP(ctx, &cfg); err != nil {
		stop()
		return nil, errors.Join(fmt.Errorf("etcd: %w", err), l.Close())
	}
	cfg.Node.ServeClients(cfg.Announce)
	return out, nil
}

// connectionLimits bound what a connection takes.
func connectionLimits() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ConnectionTimeout(greeting), grpc.MaxSendMsgSize(maxAnswer), grpc.MaxConcurrentStreams(maxStreams),
		grpc.StaticStreamWindowSize(unread), grpc.StaticConnWindowSize(8 * unread), grpc.WaitForHandlers(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: idlePing, Timeout: idlePing / 2}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing}),
	}
}

// serveHTTP makes what answers HTTP/1.
func (s *Server) serveHTTP(ctx context.Context, cfg *Config) (err error) {
	if s.gateway, err = newGateway(cfg.MaxRequest); err != nil {
		return err
	}
	translator, err := s.gateway.translator(ctx)
	if err != nil {
		s.gateway.close()
		return err
	}
	mux := s.service.probes(cfg.Metrics)
	mux.Handle("/v3/", s.service.arrived(translator))
	s.http = &http.Server{
		Handler: fenced(cfg, mux), MaxHeaderBytes: httpHeader, ReadHeaderTimeout: greeting, IdleTimeout: httpIdle,
		ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
	}
	return nil
}

// Addr is the address listened on, with the port that was chosen.
func (s *Server) Addr() string { return s.port.Addr().String() }

// Run serves until ctx ends; then calls in progress get a moment to finish. When
// it returns, nothing of it reads the store any more.
func (s *Server) Run(ctx context.Context) error {
	stopped := make(chan struct{})
	end := context.AfterFunc(ctx, func() {
		defer close(stopped)
		s.stop()
		_ = s.port.Close()
		last := time.AfterFunc(linger, func() { _ = s.http.Close(); s.grpc.Stop() })
		defer last.Stop()
		_ = s.http.Shutdown(context.Background()) // which ends with its last request, or with Close
		s.gateway.close()
		s.grpc.GracefulStop()
	})
	var all errgroup.Group
	serve := func(run func() error) {
		all.Go(func() error {
			err := run()
			_ = s.port.Close() // one without the others serves no client
			if errors.Is(err, net.ErrClosed) || errors.Is(err, http.ErrServerClosed) || errors.Is(err, grpc.ErrServerStopped) {
				return nil
			}
			return err
		})
	}
	serve(s.port.run)
	serve(func() error { return s.grpc.Serve(s.port.grpc) })
	serve(func() error { return s.http.Serve(s.port.http) })
	served := make(chan struct{})
	go func() { // ends with the gateway's pipe
		defer close(served)
		_ = s.grpc.Serve(s.gateway.pipe)
	}()
	err := all.Wait()
	if end() {
		err = errors.Join(err, s.Close())
		<-served
		return err
	}
	<-stopped
	<-served
	return nil
}

// Close ends a server that does not Run.
func (s *Server) Close() error {
	s.stop()
	_ = s.http.Close()
	s.gateway.close()
	s.grpc.Stop()
	if err := s.port.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("etcd: %w", err)
	}
	return nil
}
