package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestAnAuthorityIssuesForItsMachine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	a, err := NewAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	pem, err := os.ReadFile(a.Cert())
	if err != nil || !roots.AppendCertsFromPEM(pem) {
		t.Fatalf("the authority's own: %v", err)
	}
	leaf := func(f Files, err error) *x509.Certificate {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		own, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(f.Key); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f.Key, info.Mode(), err)
		}
		return own.Leaf
	}
	server, client := leaf(a.Server("server")), leaf(a.Client("admin", "root"))
	for _, host := range []string{"127.0.0.1", "::1", "localhost"} {
		if _, err := server.Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); err != nil {
			t.Error(err)
		}
	}
	if _, err := client.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil || client.Subject.CommonName != "root" {
		t.Errorf("%v: %v", client.Subject, err)
	}
	if _, err := client.Verify(x509.VerifyOptions{Roots: roots}); err == nil {
		t.Error("a client's certificate passes for a server's")
	}
	again, err := NewAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !leaf(again.Server("server")).Equal(server) || leaf(again.Client("admin", "bob")).Equal(client) {
		t.Error("what is there is issued again, or what is not is not")
	}
	if err := os.WriteFile(a.Cert(), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewAuthority(dir); !errors.Is(err, ErrFiles) {
		t.Errorf("a damaged file: %v", err)
	}
}
