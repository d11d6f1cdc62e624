package etcd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/fence"
)

// HTTP/1 on the port is etcd's: probes, and a gateway from JSON to gRPC. The gateway is a client of the server that it
// is part of, by a connection within the process. So its calls are counted, bounded and permitted as all others; but
// the connection has no certificate, and a caller is a user by its token alone (CVE-2018-16886: calls were taken to be
// those of the common name in the gateway's own certificate).

// Bounds of HTTP.
const (
	httpHeader  = 16 << 10         // bytes of a request's header
	httpIdle    = 2 * time.Minute  // after which a silent connection is closed
	httpTaken   = 30 * time.Second // in which a client must have taken partBytes of an answer
	gatewayPipe = 256 << 10        // bytes on the way between the gateway and the server
	httpArrives = 30 * time.Second // in which the body of a request must be there
)

// gateway is the gateway's own connection.
type gateway struct {
	pipe *bufconn.Listener
	conn *grpc.ClientConn
}

// httpBody bounds the body of a request, in bytes: base64 takes a third more than gRPC, and numbers are text.
func httpBody(maxRequest int) int { return 2 * (maxRequest + received) }

func newGateway(maxRequest int) (*gateway, error) {
	g := &gateway{pipe: bufconn.Listen(gatewayPipe)}
	var err error
	g.conn, err = grpc.NewClient("passthrough:///gateway", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return g.pipe.DialContext(ctx) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer), grpc.MaxCallSendMsgSize(httpBody(maxRequest))))
	return g, err
}

func (g *gateway) close() { _, _ = g.conn.Close(), g.pipe.Close() }

// gatewayPeer is the metadata in which the gateway names the address of its client.
const gatewayPeer = "aweigh-gateway-peer"

// byGateway reports whether a call comes by the gateway.
func byGateway(ctx context.Context) bool {
	p, ok := peer.FromContext(ctx)
	if ok {
		_, ok = p.AuthInfo.(gatewayInfo)
	}
	return ok
}

// peerOf is the address that a call comes from, as text.
func peerOf(ctx context.Context) string {
	p, ok := peer.FromContext(ctx)
	switch {
	case !ok || p.Addr == nil:
		return ""
	case byGateway(ctx):
		return strings.Join(metadata.ValueFromIncomingContext(ctx, gatewayPeer), "")
	}
	return p.Addr.String()
}

// headers are those of HTTP that become metadata: as by default, but for what the gateway says itself.
func headers(key string) (string, bool) {
	name, ok := runtime.DefaultHeaderMatcher(key)
	is := func(own string) bool {
		return textproto.CanonicalMIMEHeaderKey(name) == textproto.CanonicalMIMEHeaderKey(own)
	}
	return name, ok && !is(gatewayPeer) && !is(gatewayRequest)
}

// translator answers the gateway's requests.
func (g *gateway) translator(ctx context.Context) (http.Handler, error) {
	mux := runtime.NewServeMux(
		runtime.WithIncomingHeaderMatcher(headers),
		runtime.WithMetadata(func(_ context.Context, r *http.Request) metadata.MD {
			return metadata.Pairs(gatewayPeer, r.RemoteAddr, gatewayRequest, requestID(r))
		}),
		runtime.WithMarshalerOption(runtime.MIMEWildcard, &runtime.HTTPBodyMarshaler{Marshaler: &runtime.JSONPb{ // as in etcd
			MarshalOptions: protojson.MarshalOptions{UseProtoNames: true}, UnmarshalOptions: protojson.UnmarshalOptions{DiscardUnknown: true},
		}}),
	)
	for _, register := range []func(context.Context, *runtime.ServeMux, *grpc.ClientConn) error{
		etcdpb.RegisterKVHandler, etcdpb.RegisterWatchHandler, etcdpb.RegisterLeaseHandler, etcdpb.RegisterClusterHandler,
		etcdpb.RegisterMaintenanceHandler, etcdpb.RegisterAuthHandler, etcdpb.RegisterLockHandler, etcdpb.RegisterElectionHandler,
	} {
		if err := register(ctx, mux, g.conn); err != nil {
			return nil, err
		}
	}
	for path, method := range notServed {
		if err := mux.HandlePath(http.MethodPost, path, func(w http.ResponseWriter, r *http.Request, _ map[string]string) {
			_, out := runtime.MarshalerForRequest(mux, r)
			runtime.HTTPError(r.Context(), mux, out, w, r, status.Error(codes.Unimplemented, insteadOf(method)))
		}); err != nil {
			return nil, err
		}
	}
	return mux, nil
}

// notServed are the paths of etcd's whose methods are not served here.
var notServed = map[string]string{
	"/v3/cluster/member/add":              "/etcdserverpb.Cluster/MemberAdd",
	"/v3/cluster/member/remove":           "/etcdserverpb.Cluster/MemberRemove",
	"/v3/cluster/member/update":           "/etcdserverpb.Cluster/MemberUpdate",
	"/v3/cluster/member/promote":          "/etcdserverpb.Cluster/MemberPromote",
	"/v3/maintenance/transfer-leadership": "/etcdserverpb.Maintenance/MoveLeader",
	"/v3/maintenance/downgrade":           "/etcdserverpb.Maintenance/Downgrade",
}

// arrived reads the body of a request before it is answered, as one of the requests that are read at once: those of
// gRPC count alike. Bodies of streams are read to their end as well, which HTTP/1 asks for before there is an answer.
func (s *service) arrived(h http.Handler) http.Handler {
	most := httpBody(s.maxRequest)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body []byte
		err := s.arrivals.read(r.Context(), func(any) (err error) {
			c := http.NewResponseController(w)
			if err := c.SetReadDeadline(time.Now().Add(httpArrives)); err != nil {
				return err
			}
			if body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, int64(most))); err == nil {
				err = c.SetReadDeadline(time.Time{}) // or the end of it would end the request
			}
			return err
		}, nil)
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			err = status.Errorf(codes.ResourceExhausted, "aweigh: a request of more than %d bytes", most) // the code is gRPC's
		}
		if err != nil {
			mux := runtime.NewServeMux()
			runtime.HTTPError(r.Context(), mux, &runtime.JSONPb{MarshalOptions: protojson.MarshalOptions{UseProtoNames: true}}, w, r, err)
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r, done := s.requesting(r)
		defer done()
		h.ServeHTTP(&taken{w, http.NewResponseController(w)}, r)
	})
}

// taken is an answer that its client must take: what is written of a watch counts to what all watches may hold
// until it is. Between two writes there may be days.
type taken struct {
	http.ResponseWriter
	control *http.ResponseController
}

// Write implements io.Writer.
func (t *taken) Write(p []byte) (written int, err error) {
	defer t.untimed()
	for first := true; err == nil && (first || written < len(p)); first = false {
		t.timed()
		var n int
		n, err = t.ResponseWriter.Write(p[written:min(written+partBytes, len(p))])
		written += n
	}
	return written, err
}

// Flush implements http.Flusher. That the client did not take it shows at the next write.
func (t *taken) Flush() {
	t.timed()
	defer t.untimed()
	_ = t.control.Flush()
}

func (t *taken) timed()   { _ = t.control.SetWriteDeadline(time.Now().Add(httpTaken)) }
func (t *taken) untimed() { _ = t.control.SetWriteDeadline(time.Time{}) }

// Unwrap is for http.ResponseController.
func (t *taken) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// fenced keeps web pages of other hosts out. Under TLS a name that was rebound does not pass, as the certificate
// names another; else the request must name a loopback address, the one listened on, or one announced.
func fenced(cfg *Config, h http.Handler) http.Handler {
	f := fence.Fence{
		Port: "port", Hosts: "loopback addresses, to the host of --etcd-listen and to those of --etcd-announce",
		Refused: cfg.Callers.Fenced,
	}
	if cfg.TLS != nil {
		return f.Around(h)
	}
	names := map[string]bool{}
	for _, text := range cfg.Announce {
		if u, err := url.Parse(text); err == nil {
			names[fence.Hostname(u.Host)] = true
		}
	}
	own := fence.Hostname(cfg.Listen)
	f.Knows = func(host string) bool { return fence.Known(host, own) || names[host] }
	return f.Around(h)
}
