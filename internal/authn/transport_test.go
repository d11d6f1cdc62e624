package authn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// whoami is a node whose API answers a request with the name of its caller.
type whoami struct {
	aweighv1connect.UnimplementedNodeHandler
}

func (whoami) Put(ctx context.Context, _ *connect.Request[aweighv1.PutRequest]) (*connect.Response[aweighv1.PutResponse], error) {
	id, ok := FromContext(ctx)
	if !ok {
		return nil, errors.New("no row looked at the request")
	}
	out := connect.NewResponse(&aweighv1.PutResponse{})
	out.Header().Set("caller", id.String())
	return out, nil
}

// TestCallersOfTheAPI: handlers of Connect see the caller, and refusals have the code of the client's protocol.
func TestCallersOfTheAPI(t *testing.T) {
	row := &Row{Authenticators: []Authenticator{Users(alice)}}
	mux := http.NewServeMux()
	mux.Handle(aweighv1connect.NewNodeHandler(whoami{}))
	mux.HandleFunc("GET /metrics", func(http.ResponseWriter, *http.Request) {})
	s := httptest.NewUnstartedServer(row.Middleware(mux))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	for _, o := range [][]connect.ClientOption{nil, {connect.WithGRPC()}, {connect.WithGRPCWeb()}} {
		client := aweighv1connect.NewNodeClient(s.Client(), s.URL, o...)
		for token, want := range map[string]connect.Code{
			"Bearer good": 0, "Bearer bad": connect.CodeUnauthenticated, "Bearer later": connect.CodeUnavailable, "": connect.CodeUnauthenticated,
		} {
			req := connect.NewRequest(&aweighv1.PutRequest{})
			if token != "" {
				req.Header().Set("Authorization", token)
			}
			got, err := client.Put(t.Context(), req)
			if want == 0 && (err != nil || got.Header().Get("caller") != "user:alice") {
				t.Errorf("%s: %v, %v", token, got, err)
			}
			if want != 0 && connect.CodeOf(err) != want {
				t.Errorf("%s: %v", token, err)
			}
		}
	}
	for token, want := range map[string]int{"good": http.StatusOK, "bad": http.StatusUnauthorized, "later": http.StatusServiceUnavailable} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/metrics", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := s.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want || (want == http.StatusUnauthorized) != (resp.Header.Get("WWW-Authenticate") == "Bearer") {
			t.Errorf("%s: %s, %v", token, resp.Status, resp.Header)
		}
	}
}

// TestTheSocketsOfTheAPI: a connection's uid is that of its requests.
func TestTheSocketsOfTheAPI(t *testing.T) {
	row := &Row{Authenticators: []Authenticator{Sockets{}}}
	var got Identity
	h := row.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got, _ = FromContext(r.Context()) }))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody).WithContext(WithUID(t.Context(), 1000)))
	if got.String() != "local:1000" {
		t.Errorf("the caller is %v", got)
	}
}

// calls answers gRPC's health checks with an error that has the name of the caller.
type calls struct {
	healthpb.UnimplementedHealthServer
}

func callerIn(ctx context.Context) error {
	if id, ok := FromContext(ctx); ok {
		return status.Error(codes.AlreadyExists, id.String())
	}
	return errors.New("no row looked at the call")
}

func (calls) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	return nil, callerIn(ctx)
}

func (calls) Watch(_ *healthpb.HealthCheckRequest, s grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	return callerIn(s.Context())
}

// TestCallersOfGRPC: calls and streams see the caller by its token, or by its certificate.
func TestCallersOfGRPC(t *testing.T) {
	own := selfSigned(t, "node")
	client := selfSigned(t, "alice")
	pool := x509.NewCertPool()
	pool.AddCert(own.Leaf)
	pool.AddCert(client.Leaf)
	row := &Row{Authenticators: []Authenticator{Users(alice), Certs{}}}
	server := grpc.NewServer(grpc.UnaryInterceptor(row.Unary), grpc.StreamInterceptor(row.Stream), grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{own}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: pool, MinVersion: tls.VersionTLS13,
	})))
	healthpb.RegisterHealthServer(server, calls{})
	l := bufconn.Listen(1 << 16)
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	defer func() { server.Stop(); <-done }()
	dial := func(certs ...tls.Certificate) healthpb.HealthClient {
		conn, err := grpc.NewClient("passthrough:///node", grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }),
			grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool, ServerName: "node", Certificates: certs, MinVersion: tls.VersionTLS13})))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return healthpb.NewHealthClient(conn)
	}
	for _, x := range []struct {
		what   string
		client healthpb.HealthClient
		token  string
		code   codes.Code
		text   string
	}{
		{"a token", dial(), "good", codes.AlreadyExists, "user:alice"},
		{"a certificate", dial(client), "", codes.AlreadyExists, "cert:dns:alice"},
		{"a token goes first", dial(client), "good", codes.AlreadyExists, "user:alice"},
		{"a bad token and a good certificate", dial(client), "bad", codes.Unauthenticated, "authenticate again"},
		{"a token that cannot be checked now", dial(), "later", codes.Unavailable, "later"},
		{"nothing", dial(), "", codes.Unauthenticated, "requires a credential"},
	} {
		ctx := t.Context()
		if x.token != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "token", x.token)
		}
		_, err := x.client.Check(ctx, &healthpb.HealthCheckRequest{})
		stream, errStream := x.client.Watch(ctx, &healthpb.HealthCheckRequest{})
		if errStream == nil {
			_, errStream = stream.Recv()
		}
		for _, err := range []error{err, errStream} {
			if status.Code(err) != x.code || !strings.Contains(err.Error(), x.text) {
				t.Errorf("%s: %v, want %v with %q", x.what, err, x.code, x.text)
			}
		}
	}
}

// TestConnectionsWithoutAnIdentity: only TLS and Unix sockets give gRPC a caller; the connection of a gateway does not.
func TestConnectionsWithoutAnIdentity(t *testing.T) {
	row := &Row{Authenticators: []Authenticator{Certs{}, Sockets{}}}
	_, gateway, _ := insecure.NewCredentials().ServerHandshake(nil)
	for _, x := range []struct {
		info credentials.AuthInfo
		want string
	}{{SocketInfo{UID: 7}, "local:7"}, {gateway, ""}, {nil, ""}} {
		ctx, err := row.Call(peer.NewContext(t.Context(), &peer.Peer{AuthInfo: x.info}))
		id, ok := FromContext(ctx)
		if ok != (x.want != "") || ok && id.String() != x.want || (err == nil) != ok {
			t.Errorf("%v: %v, %v", x.info, id, err)
		}
	}
}

// selfSigned returns a certificate for a host, with its key, for servers and clients.
func selfSigned(t *testing.T, host string) tls.Certificate {
	t.Helper()
	return signed(t, x509.Certificate{
		Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}
