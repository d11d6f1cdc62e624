package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/scope"
)

// ProvenReader reads keys, and verifies the proof of each answer (P61). *client.Verified is one.
type ProvenReader interface {
	Range(ctx context.Context, key, end []byte) (*scope.RangeProof, scope.RangeReport, error)
}

// LightConfig states what a Light serves, and where. Listen, Network, Reader and AtMost are required.
type LightConfig struct {
	Listen  string      // host:port
	TLS     *tls.Config // nil: clients come as they are
	Network aweigh.NetworkID
	Reader  ProvenReader
	// AtMost is the age up to which Reader takes an answer. A watch proves its range anew four times as often.
	AtMost time.Duration
	// Hints calls changed when a range may have changed, until ctx ends. It is believed nothing else. nil: a watch
	// hears of a change when it proves its range anew.
	Hints func(ctx context.Context, key, end []byte, changed func()) error
	// Final returns the code for an error of Reader that the same request would meet again, OK for any other. nil: all
	// may pass.
	Final func(error) codes.Code
	Log   *slog.Logger
}

// Light serves the part of etcd's API that reads, from answers that were proven from the network's identity alone. It
// has no state but what it needs to tell watches what changed.
type Light struct {
	light *light
	l     net.Listener
	grpc  *grpc.Server
}

// light is shared by the services of a Light.
type light struct {
	cluster uint64
	reader  ProvenReader
	atMost  time.Duration
	hints   func(ctx context.Context, key, end []byte, changed func()) error
	final   func(error) codes.Code
	log     *slog.Logger
	proofs  chan struct{}   // holds a token for each that is under way
	ctx     context.Context // until the end
	stop    context.CancelFunc
	tasks   sync.WaitGroup
	watches atomic.Int64

	mu     sync.Mutex
	ranges map[string]*provenRange // by key and end
	idle   int                     // of these no watch follows
	made   uint64                  // ranges, ever
}

// Limits of a Light.
const (
	mostRanges   = 64              // that it remembers and that no watch follows
	lightWatches = 4096            // at once
	mostProofs   = 32              // under way at once
	leastFetch   = 5 * time.Second // that a proof may take, with all nodes that are asked for it
)

// ListenLight opens a Light's address. Every client that reaches it can read what the Reader can.
func ListenLight(cfg LightConfig) (*Light, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	l, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	s := &light{
		cluster: short(aweigh.Hash(cfg.Network)), reader: cfg.Reader, atMost: cfg.AtMost, hints: cfg.Hints, final: cfg.Final,
		log: cfg.Log, proofs: make(chan struct{}, mostProofs), ranges: make(map[string]*provenRange),
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	creds := insecure.NewCredentials()
	if cfg.TLS != nil {
		creds = credentials.NewTLS(cfg.TLS)
	}
	server := grpc.NewServer(
		grpc.Creds(creds), grpc.ConnectionTimeout(greeting), grpc.MaxRecvMsgSize(maxRequest), grpc.MaxSendMsgSize(maxAnswer),
		grpc.MaxConcurrentStreams(maxStreams), grpc.StaticStreamWindowSize(unread), grpc.StaticConnWindowSize(8*unread),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: idlePing, Timeout: idlePing / 2}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing}),
		grpc.UnknownServiceHandler(lightRefuses), grpc.UnaryInterceptor(lightRefusesCalls), grpc.StreamInterceptor(lightRefusesStreams),
		grpc.WaitForHandlers(true), grpc.StatsHandler(lightConns{}),
	)
	etcdpb.RegisterKVServer(server, &lightKV{light: s})
	etcdpb.RegisterWatchServer(server, &lightWatch{light: s})
	etcdpb.RegisterMaintenanceServer(server, &lightMaintenance{light: s})
	healthpb.RegisterHealthServer(server, health.NewServer())
	return &Light{light: s, l: bounded(l, maxConns), grpc: server}, nil
}

// Addr is the address listened on, with the port that was chosen.
func (x *Light) Addr() string { return x.l.Addr().String() }

// Run serves until ctx ends; then calls in progress get a moment to finish.
func (x *Light) Run(ctx context.Context) error {
	stopped := make(chan struct{})
	end := context.AfterFunc(ctx, func() {
		defer close(stopped)
		x.light.stop()
		last := time.AfterFunc(linger, x.grpc.Stop)
		defer last.Stop()
		x.grpc.GracefulStop()
	})
	err := x.grpc.Serve(x.l)
	if end() { // it ended by itself
		x.light.stop()
		x.grpc.Stop()
	} else {
		<-stopped
		err = nil
	}
	x.light.tasks.Wait()
	if err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("etcd: %w", err)
	}
	return nil
}

// Close ends a Light that does not Run.
func (x *Light) Close() error {
	x.light.stop()
	x.grpc.Stop()
	return x.l.Close()
}

// background runs a task that Run waits for.
func (s *light) background(task func()) { s.tasks.Go(task) }

func (s *light) header(revision int64) *etcdpb.ResponseHeader {
	return &etcdpb.ResponseHeader{ClusterId: s.cluster, MemberId: s.cluster, Revision: revision}
}

// rangeOf returns what is known of a range. watches is 1 if a watch begins to follow it.
func (s *light) rangeOf(key, end []byte, watches int) *provenRange {
	name := fmt.Sprintf("%q %q", key, end)
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.ranges[name]
	if x == nil {
		s.made++
		x = &provenRange{key: key, end: end, light: s, id: s.made, changed: make(chan struct{})}
		s.ranges[name] = x
		s.idle++
	}
	x.used = time.Now()
	defer s.forget()
	if x.watches += watches; watches > 0 && x.watches == watches {
		s.idle--
		ctx, cancel := context.WithCancel(s.ctx)
		x.unfollow = cancel
		s.background(func() { x.follow(ctx) })
	}
	return x
}

// left notes that a watch follows a range no more.
func (s *light) left(x *provenRange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.watches--; x.watches == 0 {
		x.unfollow()
		s.idle++
		s.forget()
	}
}

// forget drops ranges that no watch follows, those that were not used for longest, while there are too many.
func (s *light) forget() {
	for ; s.idle > mostRanges; s.idle-- {
		oldest := ""
		for name, x := range s.ranges {
			if x.watches == 0 && (oldest == "" || x.used.Before(s.ranges[oldest].used)) {
				oldest = name
			}
		}
		delete(s.ranges, oldest)
	}
}

// status returns the status of an error for a client.
func (s *light) status(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case s.ctx.Err() != nil:
		return errStopped
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	}
	if code := s.lasting(err); code != codes.OK {
		return status.Error(code, "aweigh: "+err.Error())
	}
	if told := toStatus(ctx, err); status.Code(told) != codes.Unknown {
		return told
	}
	return status.Error(codes.Unavailable, "aweigh: no node gives an answer that holds: "+err.Error())
}

// lasting returns the code of an error that the same request would meet again, OK for any other.
func (s *light) lasting(err error) codes.Code {
	if s.final == nil {
		return codes.OK
	}
	return s.final(err)
}

// lightRefuses answers calls of services that a Light does not have.
func lightRefuses(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	return refusedByLight(method)
}

// lightRefusesCalls gives calls that a service of a Light leaves out the same answer.
func lightRefusesCalls(ctx context.Context, r any, call *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	out, err := handle(ctx, r)
	if status.Code(err) == codes.Unimplemented {
		err = refusedByLight(call.FullMethod)
	}
	return out, err
}

// lightRefusesStreams is lightRefusesCalls for streams.
func lightRefusesStreams(s any, stream grpc.ServerStream, call *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	err := handle(s, stream)
	if status.Code(err) == codes.Unimplemented {
		err = refusedByLight(call.FullMethod)
	}
	return err
}

func refusedByLight(method string) error {
	name := method[strings.LastIndex(method, "/")+1:]
	if name == "Authenticate" {
		return status.Error(codes.Unimplemented, "aweigh: a light reader reads with its own credentials, and has no users: leave the user out")
	}
	return status.Errorf(codes.Unimplemented, "aweigh: %s is not served: a light reader only reads; send it to a node", name)
}
