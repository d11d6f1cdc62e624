package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

// nearOf is what near says of a request from a loopback address that change has changed.
func nearOf(t *testing.T, change func(*http.Request)) (err error) {
	t.Helper()
	r := httptest.NewRequest("POST", "/aweigh.v1.Node/Govern", nil)
	r.RemoteAddr = "127.0.0.1:5"
	change(r)
	came := false
	identified([]string{"alice", "bob"}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
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
	for name, may := range map[string]bool{"alice": true, "bob": true, "mallory": false, "": false} {
		if err := nearOf(t, func(r *http.Request) {
			r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{Subject: pkix.Name{CommonName: name}}}}}
		}); (err == nil) != may {
			t.Errorf("the certificate of %q: %v", name, err)
		}
	}
	if nearOf(t, func(r *http.Request) { r.TLS = new(tls.ConnectionState) }) == nil {
		t.Error("TLS without a certificate")
	}
	if err := nearOf(t, func(r *http.Request) {
		*r = *r.WithContext(context.WithValue(r.Context(), callerKey{}, caller{socket: true}))
	}); err != nil {
		t.Errorf("the node's socket: %v", err)
	}
	s := &service{} // without a node: nothing may come that far; the requests have no caller
	if _, err := s.Govern(context.Background(), connect.NewRequest(&aweighv1.GovernRequest{})); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("Govern: %v", err)
	}
	if _, err := s.Apply(context.Background(), connect.NewRequest(&aweighv1.ApplyRequest{})); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("Apply: %v", err)
	}
}
