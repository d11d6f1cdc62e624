package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"google.golang.org/grpc"
)

// Server serves on one address: HTTP/1, HTTP/2 without TLS, and what upgrades to
// gRPC.
type Server struct {
	listener net.Listener
	http     *http.Server
	cancel   context.CancelFunc // ends the requests in progress
	upgrades *upgrades          // nil if it takes none
	calls    *grpc.Server       // serves them
	limits   *limits
}

// ErrOpen is wrapped when other machines could reach an address.
var ErrOpen = errors.New("api: the address is not a loopback address, and there is no authentication yet: every client that reaches it can write; --api-open accepts that")

// Listen serves the API of n at an address, host:port with a numeric host or
// "localhost", and its metrics if there are any. One that is not a loopback address
// is refused with ErrOpen, unless open confirms that this is meant.
func Listen(address string, open bool, n Node, metrics http.Handler) (*Server, error) {
	if err := CheckOpen(address, open); err != nil {
		return nil, err
	}
	return listenFor(address, newService(n, n, n.Root()), metrics)
}

// listenFor serves a service, and metrics if there are any, at an address.
func listenFor(address string, service *service, metrics http.Handler) (*Server, error) {
	shared := new(limits)
	up := newUpgrades(maxUpgrades)
	h := shared.limited(fenced(address, routes(service, metrics)))
	s, err := listen(address, up.before(fenced(address, up), h))
	if err != nil {
		return nil, err
	}
	up.addr, s.upgrades, s.calls, s.limits = s.listener.Addr(), up, newCalls(service, shared), shared
	return s, nil
}

// listen opens an address, for every client that reaches it.
func listen(address string, h http.Handler) (*Server, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	ctx, cancel := context.WithCancel(context.Background())
	all := newConns(maxConns)
	return &Server{listener: l, cancel: cancel, http: &http.Server{
		Handler:           h,
		Protocols:         protocols,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute, // no deadline for answers: a watch may last for days
		MaxHeaderBytes:    64 << 10,
		ConnState:         all.note,
		ConnContext:       all.context,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 1000,
			SendPingTimeout:      30 * time.Second, // finds out that a watcher is gone
			PingTimeout:          15 * time.Second,
		},
	}}, nil
}

// ErrAddress is wrapped for an address that is not host:port.
var ErrAddress = errors.New("api: the address is not host:port")

// CheckOpen reports whether Listen would take an address. Errors wrap
// ErrAddress or ErrOpen.
func CheckOpen(address string, open bool) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%w, with a port from 0 to 65535: %q", ErrAddress, address)
	}
	if !open && !loopback(address) {
		return fmt.Errorf("%w: %s", ErrOpen, address)
	}
	return nil
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// Addr is the address listened on, with the port that was chosen.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// linger is how long requests in progress may take after the end.
const linger = 2 * time.Second

// Run serves until ctx ends; then requests in progress get a moment to finish.
// When it returns, nothing of it reads the store any more.
func (s *Server) Run(ctx context.Context) error {
	defer s.cancel()
	calls := make(chan error, 1)
	go func() { calls <- s.serveCalls() }()
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.Background(), linger)
		defer cancel()
		last := time.AfterFunc(linger/2, s.cancel) // watches would never end
		defer last.Stop()
		go s.endCalls()
		err := s.http.Shutdown(grace)
		if errors.Is(err, context.DeadlineExceeded) {
			err = s.http.Close()
		}
		stopped <- err
	})
	err := s.http.Serve(s.listener)
	if stop() || !errors.Is(err, http.ErrServerClosed) {
		err = errors.Join(err, s.Close())
	} else {
		err = <-stopped
	}
	return errors.Join(err, <-calls)
}

// serveCalls serves the upgraded connections until endCalls or Close.
func (s *Server) serveCalls() error {
	if s.calls == nil {
		return nil
	}
	if err := s.calls.Serve(s.upgrades); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("api: %w", err)
	}
	return nil
}

// endCalls waits a moment for the calls on upgraded connections to finish.
func (s *Server) endCalls() {
	if s.calls == nil {
		return
	}
	last := time.AfterFunc(linger, s.calls.Stop)
	defer last.Stop()
	s.calls.GracefulStop()
}

// Close releases the address of a server that is not to Run.
func (s *Server) Close() error {
	s.cancel()
	if s.calls != nil {
		s.calls.Stop()
		_ = s.upgrades.Close()
	}
	if err := errors.Join(s.listener.Close(), s.http.Close()); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("api: %w", err)
	}
	return nil
}
