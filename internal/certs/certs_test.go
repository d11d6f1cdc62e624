package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// issuer signs certificates of tests.
type issuer struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	n    int64
}

func newIssuer(t *testing.T) *issuer {
	i := &issuer{t: t}
	i.cert, i.key = i.issue(x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign})
	return i
}

func (i *issuer) issue(c x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	i.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	i.n++
	c.SerialNumber, c.Subject = big.NewInt(i.n), pkix.Name{CommonName: "test"}
	c.NotBefore = time.Now().Add(-time.Hour)
	if c.NotAfter.IsZero() {
		c.NotAfter = time.Now().Add(time.Hour)
	}
	parent, by := &c, key
	if i.cert != nil {
		parent, by = i.cert, i.key
	}
	der, err := x509.CreateCertificate(rand.Reader, &c, parent, key.Public(), by)
	if err != nil {
		i.t.Fatal(err)
	}
	out, err := x509.ParseCertificate(der)
	if err != nil {
		i.t.Fatal(err)
	}
	return out, key
}

// save writes a certificate for a server and clients, and its key.
func (i *issuer) save(f Files) int64 {
	i.t.Helper()
	return i.saveUntil(f, time.Time{})
}

// saveUntil is save for a certificate that ends at a time.
func (i *issuer) saveUntil(f Files, end time.Time) int64 {
	i.t.Helper()
	c, key := i.issue(x509.Certificate{
		NotAfter: end, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		i.t.Fatal(err)
	}
	if err := errors.Join(write(f.Key, "PRIVATE KEY", der, 0o600), write(f.Cert, "CERTIFICATE", c.Raw, 0o600)); err != nil {
		i.t.Fatal(err)
	}
	return c.SerialNumber.Int64()
}

func (i *issuer) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(i.cert)
	return p
}

// served is a server of the files that answers with one byte, and its log.
func served(t *testing.T, f Files) (address string, log *bytes.Buffer) {
	t.Helper()
	log = new(bytes.Buffer)
	cfg, err := Server(f, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", cfg)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte{1})
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String(), log
}

// ask shakes hands and gives the serial number of the certificate shown.
func ask(address string, trust *x509.CertPool, own ...tls.Certificate) (int64, error) {
	c, err := tls.Dial("tcp", address, &tls.Config{RootCAs: trust, Certificates: own, MinVersion: tls.VersionTLS12})
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		return 0, err
	}
	return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64(), nil
}

// TestCertificatesAreReadAgain: the next handshake shows a renewed certificate, and
// while the files are broken the last good one.
func TestCertificatesAreReadAgain(t *testing.T) {
	dir, i := t.TempDir(), newIssuer(t)
	f := Files{Cert: filepath.Join(dir, "a.crt"), Key: filepath.Join(dir, "a.key")}
	first := i.save(f)
	address, log := served(t, f)
	if got, err := ask(address, i.pool()); got != first || err != nil {
		t.Fatalf("serial %d, %v; want %d", got, err, first)
	}
	second := i.save(f)
	later := time.Now().Add(time.Second) // clocks of file systems are coarse
	if err := os.Chtimes(f.Cert, later, later); err != nil {
		t.Fatal(err)
	}
	if got, err := ask(address, i.pool()); got != second || err != nil {
		t.Fatalf("serial %d, %v; want the new one, %d", got, err, second)
	}
	if err := os.WriteFile(f.Cert, []byte("half a cert"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got, err := ask(address, i.pool()); got != second || err != nil {
			t.Fatalf("serial %d, %v; want the last good one, %d", got, err, second)
		}
	}
	if n := strings.Count(log.String(), "cannot be read"); n != 1 {
		t.Errorf("it is said %d times: %s", n, log)
	}
	third := i.save(f)
	if got, err := ask(address, i.pool()); got != third || err != nil {
		t.Fatalf("serial %d, %v; want %d", got, err, third)
	}
}

// TestClientsShowTheirs: with an issuer of clients, all other clients are refused.
func TestClientsShowTheirs(t *testing.T) {
	dir, i, other := t.TempDir(), newIssuer(t), newIssuer(t)
	ca := filepath.Join(dir, "ca.crt")
	if err := write(ca, "CERTIFICATE", i.cert.Raw, 0o600); err != nil {
		t.Fatal(err)
	}
	f := Files{Cert: filepath.Join(dir, "a.crt"), Key: filepath.Join(dir, "a.key"), ClientCA: ca}
	i.save(f)
	address, _ := served(t, f)
	own := func(i *issuer, name string) tls.Certificate {
		g := Files{Cert: filepath.Join(dir, name+".crt"), Key: filepath.Join(dir, name+".key")}
		i.save(g)
		c, err := tls.LoadX509KeyPair(g.Cert, g.Key)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if _, err := ask(address, i.pool(), own(i, "client")); err != nil {
		t.Errorf("a client of the issuer's: %v", err)
	}
	if _, err := ask(address, i.pool()); err == nil {
		t.Error("a client without a certificate comes in")
	}
	if _, err := ask(address, i.pool(), own(other, "stranger")); err == nil {
		t.Error("a client of another issuer comes in")
	}
}

func TestBadFilesAreRefused(t *testing.T) {
	dir, i := t.TempDir(), newIssuer(t)
	f := Files{Cert: filepath.Join(dir, "a.crt"), Key: filepath.Join(dir, "a.key")}
	i.save(f)
	g := Files{Cert: filepath.Join(dir, "b.crt"), Key: filepath.Join(dir, "b.key")}
	i.save(g)
	for name, f := range map[string]Files{
		"no key":             {Cert: f.Cert},
		"no certificate":     {Key: f.Key},
		"an issuer alone":    {ClientCA: f.Cert},
		"another's key":      {Cert: f.Cert, Key: g.Key},
		"a key as an issuer": {Cert: f.Cert, Key: f.Key, ClientCA: f.Key},
	} {
		if _, err := Server(f, nil); !errors.Is(err, ErrFiles) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Server(Files{Cert: f.Cert, Key: filepath.Join(dir, "none")}, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// TestAutoVouchesForItself: the certificate is kept, is good for this machine and
// the hosts named, and is made anew for another host.
func TestAutoVouchesForItself(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	f, err := Auto(dir, "node.example")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(f.Key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v", info.Mode(), err)
	}
	trust := func() *x509.CertPool {
		data, err := os.ReadFile(f.Cert)
		p := x509.NewCertPool()
		if err != nil || !p.AppendCertsFromPEM(data) {
			t.Fatal(err)
		}
		return p
	}
	address, _ := served(t, f)
	first, err := ask(address, trust())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Auto(dir, "node.example"); err != nil {
		t.Fatal(err)
	}
	if again, err := ask(address, trust()); again != first || err != nil {
		t.Errorf("it was made anew: %v", err)
	}
	if _, err := Auto(dir, "10.1.2.3"); err != nil {
		t.Fatal(err)
	}
	own, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil || own.Leaf.VerifyHostname("10.1.2.3") != nil || own.Leaf.VerifyHostname("localhost") != nil {
		t.Errorf("the one for another host: %v", err)
	}
}
