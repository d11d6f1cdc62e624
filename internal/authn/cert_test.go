package authn

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"
)

// certificate returns a certificate as a parser reads it, signed by itself.
func certificate(t testing.TB, c x509.Certificate, uris ...string) *x509.Certificate {
	return signed(t, c, uris...).Leaf
}

// signed returns the same with its key.
func signed(t testing.TB, c x509.Certificate, uris ...string) tls.Certificate {
	t.Helper()
	for _, s := range uris {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		c.URIs = append(c.URIs, u)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.NotAfter, c.BasicConstraintsValid = big.NewInt(1), time.Now().Add(time.Hour), true
	if c.KeyUsage == 0 {
		c.KeyUsage = x509.KeyUsageDigitalSignature
	}
	der, err := x509.CreateCertificate(rand.Reader, &c, &c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: parsed}
}

func verified(c *x509.Certificate) *Request {
	return &Request{Header: none, TLS: &tls.ConnectionState{
		PeerCertificates: []*x509.Certificate{c}, VerifiedChains: [][]*x509.Certificate{{c}},
	}}
}

func none(string) []string { return nil }

func TestNamesOfCertificates(t *testing.T) {
	alice := pkix.Name{CommonName: "alice"}
	for _, x := range []struct {
		what string
		cert x509.Certificate
		uris []string
		want string // empty: refused
	}{
		{"a SPIFFE ID goes first", x509.Certificate{Subject: alice, DNSNames: []string{"a.example"}}, []string{"spiffe://corp/ns/ci"}, "cert:spiffe://corp/ns/ci"},
		{"a URI goes first", x509.Certificate{Subject: alice, DNSNames: []string{"a.example"}}, []string{"https://ci.example/a"}, "cert:uri:https://ci.example/a"},
		{"then the first DNS name", x509.Certificate{Subject: alice, DNSNames: []string{"A.example", "b.example"}}, nil, "cert:dns:a.example"},
		{"then the common name", x509.Certificate{Subject: alice}, nil, "cert:cn:alice"},
		{"a common name passes for no URI", x509.Certificate{Subject: pkix.Name{CommonName: "spiffe://corp/ns/ci"}}, nil, "cert:cn:spiffe://corp/ns/ci"},
		{"no name", x509.Certificate{}, nil, ""},
		{"two URIs", x509.Certificate{Subject: alice}, []string{"spiffe://corp/a", "https://ci.example/a"}, ""},
		{"a bad URI does not make room for the next name", x509.Certificate{Subject: alice}, []string{"spiffe://corp/a//b"}, ""},
		{"a wildcard", x509.Certificate{Subject: alice, DNSNames: []string{"*.a.example"}}, nil, ""},
		{"an authority's", x509.Certificate{IsCA: true, KeyUsage: x509.KeyUsageDigitalSignature}, []string{"spiffe://corp/a"}, ""},
		{"one that may sign others", x509.Certificate{KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCRLSign}, []string{"spiffe://corp/a"}, ""},
		{"one that may not sign", x509.Certificate{KeyUsage: x509.KeyUsageKeyEncipherment}, []string{"spiffe://corp/a"}, ""},
		{"a control character", x509.Certificate{Subject: pkix.Name{CommonName: "a\tb"}}, nil, ""},
		{"a long name", x509.Certificate{}, []string{"spiffe://corp/" + strings.Repeat("a", maxIdentity)}, ""},
	} {
		id, refused := Certs{}.Authenticate(context.Background(), verified(certificate(t, x.cert, x.uris...)))
		switch {
		case x.want == "" && (refused == nil || refused.Kind != Cert || refused.Reason != Name):
			t.Errorf("%s: got %v, %v", x.what, id, refused)
		case x.want != "" && (refused != nil || id.String() != x.want):
			t.Errorf("%s: got %v, %v", x.what, id, refused)
		}
		if refused != nil && strings.Contains(refused.Error(), "corp") {
			t.Errorf("%s: the refusal quotes the certificate: %v", x.what, refused)
		}
	}
}

// TestIDsOfSPIFFE: an ID has one spelling (SPIFFE ID, section 2).
func TestIDsOfSPIFFE(t *testing.T) {
	for _, id := range []string{"spiffe://corp/a", "spiffe://corp.example/ns/x/sa/Y_1.2-3", "spiffe://1_2/..."} {
		if err := checkSPIFFE(id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	for _, id := range []string{
		"", "spiffe:", "spiffe://", "spiffe:///a", "spiffe://corp", "spiffe://corp/", "spiffe://corp//a", "spiffe://corp/a/", "spiffe://corp/./a",
		"spiffe://corp/../a", "spiffe://Corp/a", "spiffe://corp:1/a", "spiffe://u@corp/a", "spiffe://corp/a?b", "spiffe://corp/a#b",
		"spiffe://corp/a%41", "spiffe://corp/ä", "SPIFFE://corp/a", "https://corp/a", "spiffe://" + strings.Repeat("a", maxDomain+1) + "/a",
	} {
		if checkSPIFFE(id) == nil {
			t.Errorf("%s is an ID", id)
		}
	}
}

// TestUnverifiedCertificatesAreRefused: a certificate that TLS did not verify names no caller, and makes none
// anonymous.
func TestUnverifiedCertificatesAreRefused(t *testing.T) {
	r := verified(certificate(t, x509.Certificate{Subject: pkix.Name{CommonName: "alice"}}))
	r.TLS.VerifiedChains = nil
	for _, row := range []Row{{Authenticators: []Authenticator{Certs{}}, Anonymous: true}, {Anonymous: true}} {
		if id, refused := row.Authenticate(context.Background(), r); refused == nil {
			t.Errorf("the caller is %v", id)
		}
	}
}
