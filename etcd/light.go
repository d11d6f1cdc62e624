package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

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
	Listen  string // host:port, of this machine: clients come as they are
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
	unread  rate.Sometimes  // limits what the log says of reads without an answer that holds
	proofs  chan struct{}   // holds a token for each that is under way
	ctx     context.Context // until the end
	stop    context.CancelFunc
	tasks   sync.WaitGroup
	watches atomic.Int64

	memory rangeMemory
}

// Limits of a Light.
const (
	lightWatches = 4096            // at once
	mostProofs   = 32              // under way at once
	leastFetch   = 5 * time.Second // that a proof may take, with all nodes that are asked for it
	unreadEvery  = 5 * time.Second // between lines of the log about reads without an answer that holds
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
		cluster: short(aweigh.Hash(cfg.Network)), reader: cfg.Reader, atMost: cfg.AtMost,
		hints: cfg.Hints, final: cfg.Final, log: cfg.Log, unread: rate.Sometimes{Interval: unreadEvery}, proofs: make(chan struct{}, mostProofs),
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	server := grpc.NewServer(append(connectionLimits(), grpc.MaxRecvMsgSize(maxRequest),
		grpc.UnknownServiceHandler(lightRefuses), grpc.UnaryInterceptor(lightRefusesCalls),
		grpc.StreamInterceptor(lightRefusesStreams), grpc.StatsHandler(lightConns{}),
	)...)
	etcdpb.RegisterKVServer(server, &lightKV{light: s})
	etcdpb.RegisterWatchServer(server, &lightWatch{light: s})
	etcdpb.RegisterMaintenanceServer(server, &lightMaintenance{light: s})
	healthpb.RegisterHealthServer(server, newHealth(s.ctx.Done()))
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
