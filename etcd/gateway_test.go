package etcd

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/testshort"
)

// issued is a certificate for a common name, by an issuer or, without one, by itself.
func issued(t *testing.T, name string, issuer *tls.Certificate) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IsCA: issuer == nil, BasicConstraintsValid: true,
	}
	parent, by := c, any(key)
	if issuer != nil {
		parent, by = issuer.Leaf, issuer.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// ask sends a request of HTTP to a server, and gives the code and the body.
func ask(t *testing.T, c *http.Client, method, url, body string, header ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if r.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// browser is a client whose connections end with the test.
func browser(t *testing.T, secure *tls.Config) *http.Client {
	tr := &http.Transport{TLSClientConfig: secure, ForceAttemptHTTP2: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// TestGatewayHasNoUserOfItsOwn: over TLS with clients' certificates a caller by gRPC is the user that its certificate
// names; through the gateway it has no user without a token, whatever its certificate or its headers say.
func TestGatewayHasNoUserOfItsOwn(t *testing.T) {
	ca := issued(t, "ca", nil)
	pool := x509.NewCertPool()
	pool.AddCert(ca.Leaf)
	inner := &tls.Config{Certificates: []tls.Certificate{*issued(t, "root", ca)}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
	w := newWorld(t, 1, Config{TLS: &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return inner, nil }}})
	client := &tls.Config{Certificates: []tls.Certificate{*issued(t, "root", ca)}, RootCAs: pool}
	conn, err := grpc.NewClient(w.server.Addr(), grpc.WithTransportCredentials(credentials.NewTLS(client.Clone())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	auth, kv := etcdpb.NewAuthClient(conn), etcdpb.NewKVClient(conn)
	for _, err := range []error{
		second(auth.UserAdd(w.ctx, &etcdpb.AuthUserAddRequest{Name: "root", Password: "pw"})),
		second(auth.UserGrantRole(w.ctx, &etcdpb.AuthUserGrantRoleRequest{User: "root", Role: "root"})),
		second(auth.AuthEnable(w.ctx, &etcdpb.AuthEnableRequest{})),
		second(kv.Put(w.ctx, &etcdpb.PutRequest{Key: []byte("k")})), // by its certificate
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	c, url := browser(t, client), "https://"+w.server.Addr()
	const empty = `"etcdserver: user name is empty"`
	for what, header := range map[string][]string{
		"nothing": nil, "metadata": {"Grpc-Metadata-User", "root"}, "the gateway's own metadata": {"Grpc-Metadata-" + gatewayPeer, "root"}, "a header": {"X-Remote-User", "root"},
	} {
		if code, text := ask(t, c, "POST", url+"/v3/kv/put", `{"key":"aw=="}`, header...); code != 400 || !strings.Contains(text, empty) {
			t.Errorf("with %s: %d %s", what, code, text)
		}
	}
	code, text := ask(t, c, "POST", url+"/v3/auth/authenticate", `{"name":"root","password":"pw"}`)
	var x struct{ Token string }
	if err := json.Unmarshal([]byte(text), &x); code != 200 || err != nil || x.Token == "" {
		t.Fatalf("%d %s", code, text)
	}
	if code, text := ask(t, c, "POST", url+"/v3/kv/put", `{"key":"aw=="}`, "Authorization", x.Token); code != 200 {
		t.Errorf("with a token: %d %s", code, text)
	}
	if code, text := ask(t, c, "GET", url+"/health", ""); code != 200 || text != `{"health":"true","reason":""}` {
		t.Errorf("health: %d %s", code, text)
	}
	bare := browser(t, &tls.Config{RootCAs: pool})
	if _, err := bare.Get(url + "/health"); err == nil {
		t.Error("a client without a certificate is answered")
	}
}

// TestWebPagesAreKeptOut: a page of another host, or one whose name was rebound, does nothing.
func TestWebPagesAreKeptOut(t *testing.T) {
	w := newWorld(t, 1, Config{Announce: []string{"http://db1.example.org:2379"}})
	c, url := browser(t, nil), "http://"+w.server.Addr()
	for what, x := range map[string]struct {
		header []string
		code   int
	}{
		"a program": {nil, 200}, "localhost": {[]string{"Host", "localhost:1"}, 200}, "an announced name": {[]string{"Host", "db1.example.org:2379"}, 200},
		"a rebound name": {[]string{"Host", "evil.example.org"}, 403}, "another origin": {[]string{"Origin", "http://evil.example.org"}, 403},
		"no origin": {[]string{"Origin", "null"}, 403}, "its own": {[]string{"Origin", url}, 200},
	} {
		if code, text := ask(t, c, "POST", url+"/v3/kv/put", `{"key":"aw=="}`, append(x.header, "Content-Type", "text/plain")...); code != x.code {
			t.Errorf("%s: %d %s", what, code, text)
		}
		if code, _ := ask(t, c, "GET", url+"/health", "", x.header...); code != x.code {
			t.Errorf("%s: health %d", what, code)
		}
	}
}

// TestGatewayIsBounded: bodies above the bound are refused, long ones that gRPC takes are taken, streams end with the
// server, and calls by the gateway count as all others.
func TestGatewayIsBounded(t *testing.T) {
	testshort.Skip(t)
	w := newWorld(t, 1, Config{})
	c, url := browser(t, nil), "http://"+w.server.Addr()
	if code, text := ask(t, c, "POST", url+"/v3/kv/put", `{"key":"`+strings.Repeat("a", httpBody(maxRequest))+`"}`); code != 429 || !strings.Contains(text, `"code":8`) {
		t.Errorf("%d %.200s", code, text)
	}
	if code, text := ask(t, c, "POST", url+"/v3/kv/put", fmt.Sprintf(`{"key":"aw==","value":%q}`, strings.Repeat("YWFh", 1<<20/3))); code != 200 {
		t.Errorf("a value of 1 MiB: %d %.200s", code, text)
	}
	long, err := http.NewRequestWithContext(w.ctx, "POST", url+"/v3/kv/put", strings.NewReader(`{"key":"aw=="}`))
	if err != nil {
		t.Fatal(err)
	}
	long.Header.Set("Authorization", strings.Repeat("x", 2*httpHeader))
	if resp, err := c.Do(long); err == nil { // or the connection ends before the answer is read
		if _ = resp.Body.Close(); resp.StatusCode != 431 {
			t.Errorf("a long header: %s", resp.Status)
		}
	}
	resp, err := c.Post(url+"/v3/watch", "application/json", strings.NewReader(`{"create_request":{"key":"aw=="}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	line := make([]byte, 512)
	if n, err := resp.Body.Read(line); !bytes.Contains(line[:n], []byte(`"created":true`)) {
		t.Fatalf("%s %v", line[:n], err)
	}
	for _, m := range w.server.Counts().Methods {
		if m.Service != "grpc.health.v1.Health" && (m.Method == "Put" || m.Method == "Watch") && m.Started != 1 {
			t.Errorf("%s: %d calls", m.Method, m.Started)
		}
	}
	w.stopServing()
	if rest, err := io.ReadAll(resp.Body); err != nil || !bytes.Contains(rest, []byte("etcdserver: server stopped")) {
		t.Errorf("%q %v", rest, err)
	}
}

// TestProtocolsShareThePort: over TLS a client that offers HTTP/1.1 gets it, one without ALPN as well, and one that
// offers HTTP/2 alone is a client of gRPC; what says nothing is closed, and what is neither hears so.
func TestProtocolsShareThePort(t *testing.T) {
	cert := issued(t, "server", nil)
	pool := x509.NewCertPool()
	pool.AddCert(cert.Leaf)
	w := newWorld(t, 1, Config{TLS: &tls.Config{Certificates: []tls.Certificate{*cert}}})
	for _, c := range []struct {
		offers []string
		want   string
	}{{[]string{"h2"}, "h2"}, {[]string{"h2", "http/1.1"}, "http/1.1"}, {[]string{"http/1.1"}, "http/1.1"}, {nil, ""}} {
		conn, err := tls.Dial("tcp", w.server.Addr(), &tls.Config{RootCAs: pool, NextProtos: c.offers})
		if err != nil {
			t.Fatal(err)
		}
		if got := conn.ConnectionState().NegotiatedProtocol; got != c.want {
			t.Errorf("%q gets %q", c.offers, got)
		}
		if c.want != "h2" {
			fmt.Fprintf(conn, "GET /version HTTP/1.0\r\nHost: localhost\r\n\r\n")
			if text, err := io.ReadAll(conn); err != nil || !bytes.Contains(text, []byte(`{"etcdserver":"`+apiVersion)) {
				t.Errorf("%q: %q %v", c.offers, text, err)
			}
		}
		_ = conn.Close()
	}
	plain := newWorld(t, 1, Config{})
	conn, err := net.Dial("tcp", plain.server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "PR")
	fmt.Fprint(conn, "OPFIND /health HTTP/1.0\r\n\r\n")
	if text, err := io.ReadAll(conn); err != nil || !bytes.HasPrefix(text, []byte("HTTP/1.0 4")) {
		t.Errorf("%q %v", text, err)
	}
	plain.put(t, "k", nil) // gRPC beside it
}

// TestPasswordsOfTheGatewayWaitByAddress: the clients of the gateway are told apart by their addresses, which none of
// them chooses.
func TestPasswordsOfTheGatewayWaitByAddress(t *testing.T) {
	t.Parallel()
	for key, ok := range map[string]bool{"Authorization": true, "Grpc-Metadata-Hasleader": true, "Grpc-Metadata-" + gatewayPeer: false, "Grpc-Metadata-Aweigh-Gateway-Peer": false} {
		if _, passes := headers(http.CanonicalHeaderKey(key)); passes != ok {
			t.Errorf("%s passes: %v", key, passes)
		}
	}
	at := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 7}
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs(gatewayPeer, "10.0.0.2:8"))
	if got := peerOf(peer.NewContext(ctx, &peer.Peer{Addr: at, AuthInfo: credentials.TLSInfo{}})); got != at.String() {
		t.Errorf("a call of gRPC comes from %q", got)
	}
	if got := peerOf(peer.NewContext(ctx, &peer.Peer{Addr: at, AuthInfo: gatewayInfo{}})); got != "10.0.0.2:8" {
		t.Errorf("a call by the gateway comes from %q", got)
	}
	w := newUsers(t)
	if code, text := ask(t, browser(t, nil), "POST", "http://"+w.server.Addr()+"/v3/auth/authenticate", `{"name":"root","password":"of root"}`); code != 200 {
		t.Errorf("%d %s", code, text)
	}
}
