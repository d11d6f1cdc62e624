package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"google.golang.org/grpc"

	"github.com/aweigh/aweigh/etcd/auth"
	"github.com/aweigh/aweigh/internal/authn"
	"github.com/aweigh/aweigh/internal/certs"
	"github.com/aweigh/aweigh/internal/fence"
	"github.com/aweigh/aweigh/internal/requestlog"
	"github.com/aweigh/aweigh/internal/socket"
)

// Server serves at one address or socket: HTTP/1, HTTP/2, and what upgrades to gRPC.
type Server struct {
	listener net.Listener
	http     *http.Server
	cancel   context.CancelFunc // ends the requests in progress
	upgrades *upgrades          // nil if it takes none
	calls    *grpc.Server       // serves them
	limits   *limits
}

// Config states what is served, and to which callers.
type Config struct {
	Node    Node
	Metrics http.Handler // answers GET /metrics; nil: none does
	// Requests records refusals, and reads where it is configured to; nil: none does.
	Requests *requestlog.Log
	Log      *slog.Logger // default: none
	// Open are the ports of the node, this one or others, that take clients without certificates. Status returns them.
	Open []string

	// Guard has the rights of users; nil: all callers have all rights.
	Guard *auth.Guard
	// Callers finds the caller of each request. Default: the names in certificates of clients, the users at sockets,
	// and without TLS also anonymous callers.
	Callers *authn.Row

	// The fields below apply to TCP addresses alone, not to sockets.

	// TLS are the settings of the server, which ask clients for certificates; nil: any client that reaches the address
	// is served.
	TLS *tls.Config
	// Admins are the callers that may use the anchor's key, and have all rights: common names of certificates, and
	// texts of identities.
	Admins []string
}

// Listen serves the API at an address of the network, host:port.
func Listen(address string, cfg Config) (*Server, error) {
	if err := CheckAddress(address); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	own := fence.Hostname(address)
	if cfg.TLS != nil { // a name that was rebound does not pass, as the certificate names another
		l, own = tls.NewListener(certs.Listener(l), cfg.TLS), anyHost
	}
	return serverOf(l, own, newService(cfg.Node, cfg.Node, cfg.Node.Root()), cfg), nil
}

// ListenSocket serves the API at a Unix socket, to the user of this process and to root. Both may use the anchor's key.
func ListenSocket(path string, cfg Config) (*Server, error) {
	l, err := socket.Listen(path)
	if err != nil {
		return nil, err
	}
	return serverOf(l, anyHost, newService(cfg.Node, cfg.Node, cfg.Node.Root()), cfg), nil
}

// serverOf serves a service to the connections of a listener, with metrics if there are any.
func serverOf(l net.Listener, own string, service *service, cfg Config) *Server {
	service.open, service.gate, service.requests = cfg.Open, &gate{cfg.Guard}, cfg.Requests
	if cfg.Callers == nil {
		known := []authn.Authenticator{authn.Certs{}, authn.Sockets{}}
		cfg.Callers = &authn.Row{Authenticators: known, Anonymous: cfg.TLS == nil}
	}
	who := newCallers(*cfg.Callers, cfg.Admins, cfg.Requests)
	shared := new(limits)
	up := newUpgrades(maxUpgrades)
	h := shared.limited(fenced(own, cfg.Callers.Fenced, routes(service, cfg.Metrics)))
	s := newServer(l, who.before(up.before(fenced(own, cfg.Callers.Fenced, up), h)), cfg.Log)
	up.addr, s.upgrades, s.calls, s.limits = l.Addr(), up, newCalls(service, shared, who), shared
	return s
}

// newServer serves a handler to the connections of a listener.
func newServer(l net.Listener, h http.Handler, log *slog.Logger) *Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
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
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return connected(all.context(ctx, c), c) },
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug), // clients that fail a handshake
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 1000,
			SendPingTimeout:      30 * time.Second, // finds out that a watcher is gone
			PingTimeout:          15 * time.Second,
		},
	}}
}

// ErrAddress is wrapped for an address that is not host:port.
var ErrAddress = errors.New("api: the address is not host:port")

// CheckAddress reports whether Listen would take an address. Errors wrap ErrAddress.
func CheckAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%w, with a port from 0 to 65535: %q", ErrAddress, address)
	}
	return nil
}

// Loopback reports whether only this machine reaches an address, host:port.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.Unmap().IsLoopback()
}

// Addr is the address listened on, with the port that was chosen: host:port, or unix:// and a path.
func (s *Server) Addr() string {
	a := s.listener.Addr()
	if a.Network() == "unix" {
		return "unix://" + a.String()
	}
	return a.String()
}

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
