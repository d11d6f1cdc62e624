package client

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
)

func TestAddressesNameWhereANodeIs(t *testing.T) {
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	for _, c := range []struct {
		address string
		secure  *tls.Config
		url     string // empty: refused
		network string
	}{
		{"127.0.0.1:7177", nil, "http://127.0.0.1:7177", "tcp"},
		{"127.0.0.1:7177", secure, "https://127.0.0.1:7177", "tcp"},
		{"http://a.example:1/", secure, "http://a.example:1", "tcp"},
		{"https://a.example:1", nil, "https://a.example:1", "tcp"},
		{"unix:///a/b.sock", secure, "http://localhost", "unix"},
		{"unix://a/b.sock", nil, "", ""},
		{"unix:a", nil, "", ""},
		{"ftp://a.example:1", nil, "", ""},
		{"https://a.example", nil, "", ""},
		{"a.example:0", nil, "", ""},
	} {
		p, err := placeOf(c.address, c.secure)
		if (err == nil) != (c.url != "") || p.url != c.url || p.network != c.network || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %+v, %v", c.address, p, err)
		}
		if err == nil {
			if again, err := placeOf(p.address, nil); err != nil || again.url != p.url {
				t.Errorf("%s is named %s, which is %+v, %v", c.address, p.address, again, err)
			}
		}
	}
}

// handler serves a fake, and counts.
func (f *fake) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(aweighv1connect.NewNodeHandler(f))
	return mux
}

func TestSocketsAreDialled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	absent := dial(t, "unix://"+path)
	if _, err := absent.Get(t.Context(), []byte("/a")); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "there is no socket "+path) {
		t.Errorf("no socket: %v", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(new(fake).handler())
	s.Listener.Close()
	s.Listener, s.Config.Protocols = l, new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	defer s.Close()
	if _, err := dial(t, "unix://"+path).Range(t.Context(), &aweighv1.RangeRequest{Key: []byte("/a")}); err != nil {
		t.Error(err)
	}
}

// issued is a certificate of an issuer; without one, of itself.
func issued(t *testing.T, until time.Time, issuer *tls.Certificate) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "one"},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
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

// TestCertificatesGoBothWays: a client and a node take each other's certificates, or the client learns which one was
// refused, and that the node got no request.
func TestCertificatesGoBothWays(t *testing.T) {
	soon, past := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	ca, other := issued(t, soon, nil), issued(t, soon, nil)
	pool, strange := x509.NewCertPool(), x509.NewCertPool()
	pool.AddCert(ca.Leaf)
	strange.AddCert(other.Leaf)
	s := httptest.NewUnstartedServer(new(fake).handler())
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetHTTP2(true)
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*issued(t, soon, ca)}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
		NextProtos: []string{"h2", "http/1.1"}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	plain := new(fake).serve(t)
	for name, c := range map[string]struct {
		address string
		issuers *x509.CertPool
		own     *tls.Certificate
		want    string // in the error; empty: none
	}{
		"both":                 {s.Listener.Addr().String(), pool, issued(t, soon, ca), ""},
		"no certificate":       {s.Listener.Addr().String(), pool, nil, "refuses this client: tls: certificate required"},
		"of another issuer":    {s.Listener.Addr().String(), pool, issued(t, soon, other), "refuses this client: tls: unknown certificate authority"},
		"expired":              {s.Listener.Addr().String(), pool, issued(t, past, ca), "refuses this client: tls: "},
		"a node of another":    {s.Listener.Addr().String(), strange, issued(t, soon, ca), "the certificate of the node does not verify"},
		"a node without TLS":   {plain, pool, issued(t, soon, ca), "the TLS handshake failed"},
		"no TLS on both sides": {"http://" + plain, pool, nil, ""},
	} {
		settings := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.issuers}
		if c.own != nil {
			settings.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.own, nil }
		}
		client, err := DialTLS(settings, c.address)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err = client.Put(ctx, &aweighv1.PutRequest{Key: []byte("/a"), Value: []byte("b")})
		cancel()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrUndecided)) {
			t.Errorf("%s: %v", name, err)
		}
		client.Close()
	}
}
