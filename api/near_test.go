package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"connectrpc.com/connect"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/authn"
)

// nearOf is what near says of a request from a loopback address that change has changed.
func nearOf(t *testing.T, change func(*http.Request)) (err error) {
	t.Helper()
	r := httptest.NewRequest("POST", "/aweigh.v1.Node/Govern", nil)
	r.RemoteAddr = "127.0.0.1:5"
	change(r)
	came := false
	users := authn.Users(func(_ context.Context, name string) (string, error) { return name, nil })
	row := &authn.Row{Authenticators: []authn.Authenticator{users, authn.Certs{}, authn.Sockets{}}, Anonymous: r.TLS == nil}
	newCallers(*row, []string{"alice", "bob", "user:carol", "cert:cn:dave", "anonymous"}, nil).before(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		err, came = near(r.Context()), true
	})).ServeHTTP(httptest.NewRecorder(), r)
	if !came {
		t.Error("the request did not come to the handler")
	}
	return err
}

// TestDecisionsAreTakenFromThisMachineOnly: a client that reaches an insecure API from elsewhere, or shows
// another certificate than an administrator's, must not govern with the anchor's key.
func TestDecisionsAreTakenFromThisMachineOnly(t *testing.T) {
	for address, may := range map[string]bool{
		"127.0.0.1:5": true, "127.9.9.9:5": true, "[::1]:5": true, "[::ffff:127.0.0.1]:5": true,
		"192.0.2.1:5": false, "[2001:db8::1]:5": false, "0.0.0.0:5": false, "127.0.0.1": false, "": false, "@": false,
	} {
		if err := nearOf(t, func(r *http.Request) { r.RemoteAddr = address }); (err == nil) != may {
			t.Errorf("%q: %v", address, err)
		}
	}
	// A name that reads as an identity is that of another caller, and no administrator.
	for name, may := range map[string]bool{"alice": true, "bob": true, "dave": true, "mallory": false, "user:carol": false, "anonymous": false} {
		err := nearOf(t, func(r *http.Request) {
			c := &x509.Certificate{Subject: pkix.Name{CommonName: name}}
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c}, VerifiedChains: [][]*x509.Certificate{{c}}}
		})
		if (err == nil) != may {
			t.Errorf("the certificate of %q: %v", name, err)
		}
	}
	// A common name beside a URI or a DNS name is not the caller's name.
	for _, c := range []*x509.Certificate{
		{Subject: pkix.Name{CommonName: "alice"}, DNSNames: []string{"host.corp"}},
		{Subject: pkix.Name{CommonName: "alice"}, URIs: []*url.URL{{Scheme: "spiffe", Host: "corp", Path: "/ci"}},
			KeyUsage: x509.KeyUsageDigitalSignature},
	} {
		if nearOf(t, func(r *http.Request) {
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c}, VerifiedChains: [][]*x509.Certificate{{c}}}
		}) == nil {
			t.Errorf("the certificate of %v %v is that of its common name", c.DNSNames, c.URIs)
		}
	}
	// A user of etcd's API chooses its name.
	for name, may := range map[string]bool{"alice": false, "carol": true} {
		if err := nearOf(t, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+name) }); (err == nil) != may {
			t.Errorf("the user %q: %v", name, err)
		}
	}
	socket := func(r *http.Request) { *r = *r.WithContext(authn.WithUID(r.Context(), 1000)) }
	if err := nearOf(t, socket); err != nil {
		t.Errorf("the node's socket: %v", err)
	}
	if nearOf(t, func(r *http.Request) { socket(r); r.Header.Set("Authorization", "Bearer alice") }) == nil {
		t.Error("the node's socket, with the token of another caller")
	}
	s := &service{} // without a node: nothing may come that far; the requests have no caller
	if _, err := s.Govern(context.Background(), connect.NewRequest(&aweighv1.GovernRequest{})); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("Govern: %v", err)
	}
	if _, err := s.Apply(context.Background(), connect.NewRequest(&aweighv1.ApplyRequest{})); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("Apply: %v", err)
	}
}
