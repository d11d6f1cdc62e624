package certs

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// revoke writes a list of serial numbers, as PEM or as DER.
func (i *issuer) revoke(file string, asDER bool, serials ...int64) {
	i.t.Helper()
	l := &x509.RevocationList{Number: big.NewInt(time.Now().UnixNano()), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: time.Now().Add(-time.Minute)}
	for _, n := range serials {
		l.RevokedCertificateEntries = append(l.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: big.NewInt(n), RevocationTime: time.Now()})
	}
	der, err := x509.CreateRevocationList(rand.Reader, l, i.cert, i.key)
	if err != nil {
		i.t.Fatal(err)
	}
	if !asDER {
		der = pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})
	}
	if err := os.WriteFile(file, der, 0o600); err != nil {
		i.t.Fatal(err)
	}
}

// TestRevokedClientsAreRefused: from the next handshake on after a list changes, resumed sessions included; a list that
// no trusted issuer signed counts for nothing.
func TestRevokedClientsAreRefused(t *testing.T) {
	dir, i := t.TempDir(), newIssuer(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	f := Files{Cert: at("a.crt"), Key: at("a.key"), ClientCA: at("ca.crt"), Revoked: at("crl")}
	i.save(f)
	if err := write(f.ClientCA, "CERTIFICATE", i.cert.Raw, 0o600); err != nil {
		t.Fatal(err)
	}
	client := func(name string) (tls.Certificate, int64) {
		t.Helper()
		own := Files{Cert: at(name + ".crt"), Key: at(name + ".key")}
		serial := i.save(own)
		c, err := tls.LoadX509KeyPair(own.Cert, own.Key)
		if err != nil {
			t.Fatal(err)
		}
		return c, serial
	}
	good, _ := client("good")
	bad, serial := client("bad")
	i.revoke(f.Revoked, true)
	address, log := served(t, f)
	resumes := &tls.Config{RootCAs: i.pool(), Certificates: []tls.Certificate{bad}, ClientSessionCache: tls.NewLRUClientSessionCache(4), MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12}
	again := func() (resumed bool, err error) {
		c, err := tls.Dial("tcp", address, resumes)
		if err != nil {
			return false, err
		}
		defer c.Close()
		_, err = io.ReadFull(c, make([]byte, 1))
		return c.ConnectionState().DidResume, err
	}
	for range 2 {
		if _, err := again(); err != nil {
			t.Fatal(err)
		}
	}
	if resumed, err := again(); !resumed || err != nil {
		t.Fatalf("no session is resumed: %v", err)
	}
	change := func() {
		later := time.Now().Add(time.Hour)
		if err := os.Chtimes(f.Revoked, later, later); err != nil {
			t.Fatal(err)
		}
	}
	i.revoke(f.Revoked, false, 999, serial)
	change()
	if _, err := again(); err == nil {
		t.Error("a session of a revoked client is resumed")
	}
	if _, err := ask(address, i.pool(), bad); err == nil {
		t.Error("a revoked client is served")
	}
	if _, err := ask(address, i.pool(), good); err != nil {
		t.Errorf("another client: %v", err)
	}

	newIssuer(t).revoke(f.Revoked, false)
	change()
	if _, err := ask(address, i.pool(), bad); err == nil || !strings.Contains(log.String(), "cannot be read") {
		t.Errorf("a list of another issuer counts: %v; the log says %q", err, log)
	}
	if _, err := Server(f, nil); !errors.Is(err, ErrFiles) {
		t.Errorf("a list of another issuer: %v", err)
	}
	if err := os.WriteFile(f.Revoked, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Server(f, nil); !errors.Is(err, ErrFiles) {
		t.Errorf("a file without a list: %v", err)
	}
	f.ClientCA = ""
	if _, err := Server(f, nil); !errors.Is(err, ErrFiles) {
		t.Errorf("a list without issuers: %v", err)
	}
}
