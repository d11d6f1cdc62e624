package auth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/url"
	"testing"

	"github.com/aweigh/aweigh/internal/authn"
)

// TestTheIdentityNamesTheUser: the common name of a certificate is the user's only if it is the caller's identity.
func TestTheIdentityNamesTheUser(t *testing.T) {
	ci := &url.URL{Scheme: "spiffe", Host: "corp", Path: "/ci"}
	root := pkix.Name{CommonName: "root"}
	for name, x := range map[string]struct {
		cert x509.Certificate
		want string
	}{
		"a common name":              {x509.Certificate{Subject: root}, "root"},
		"a URI":                      {x509.Certificate{Subject: root, URIs: []*url.URL{ci}, KeyUsage: x509.KeyUsageDigitalSignature}, "cert:spiffe://corp/ci"},
		"a DNS name":                 {x509.Certificate{Subject: root, DNSNames: []string{"Host.corp"}}, "cert:dns:host.corp"},
		"several URIs":               {x509.Certificate{Subject: root, URIs: []*url.URL{ci, ci}}, ""},
		"a bad URI":                  {x509.Certificate{Subject: root, URIs: []*url.URL{ci}}, ""},
		"a wildcard":                 {x509.Certificate{Subject: root, DNSNames: []string{"*.corp"}}, ""},
		"the name of another caller": {x509.Certificate{Subject: pkix.Name{CommonName: "user:root"}}, "cert:cn:user:root"},
		"no name":                    {x509.Certificate{}, ""},
	} {
		row := authn.Row{Authenticators: []authn.Authenticator{authn.Certs{}}}
		ctx, _ := row.Identify(context.Background(), &authn.Request{
			Header: func(string) []string { return nil },
			TLS: &tls.ConnectionState{
				PeerCertificates: []*x509.Certificate{&x.cert}, VerifiedChains: [][]*x509.Certificate{{&x.cert}},
			},
		})
		if got := nameOf(ctx); got != x.want {
			t.Errorf("%s: user %q, want %q", name, got, x.want)
		}
	}
}
