package certs

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
)

// echoing serves connections with the settings of the files, and sends back what it reads.
func echoing(t *testing.T, f Files) (address string) {
	t.Helper()
	cfg, err := Server(f, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	secure := tls.NewListener(Listener(l), cfg)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := secure.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); serving.Wait() })
	return l.Addr().String()
}

// TestConnectionsEndWithTheCertificate: an open connection ends when the certificate of its client ends, is revoked, or
// is of an issuer that is not trusted any more; others go on.
func TestConnectionsEndWithTheCertificate(t *testing.T) {
	testshort.Skip(t)
	dir, i := t.TempDir(), newIssuer(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	f := Files{Cert: at("a.crt"), Key: at("a.key"), ClientCA: at("ca.crt"), Revoked: at("crl"), Optional: true}
	i.save(f)
	other := newIssuer(t)
	trust := func(all ...*issuer) {
		t.Helper()
		if err := os.Remove(f.ClientCA); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for n, x := range all {
			part := at("part")
			if err := write(part, "CERTIFICATE", x.cert.Raw, 0o600); err != nil {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(part)
			if err != nil {
				t.Fatal(err)
			}
			to, err := os.OpenFile(f.ClientCA, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				t.Fatal(n, err)
			}
			if _, err := to.Write(raw); err != nil {
				t.Fatal(err)
			}
			if err := to.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	trust(i, other)
	i.revoke(f.Revoked, false)
	address := echoing(t, f)
	open := func(by *issuer, name string, end time.Time) (*tls.Conn, int64) {
		t.Helper()
		cfg := &tls.Config{RootCAs: i.pool(), MinVersion: tls.VersionTLS12}
		var serial int64
		if by != nil {
			own := Files{Cert: at(name + ".crt"), Key: at(name + ".key")}
			serial = by.saveUntil(own, end)
			c, err := tls.LoadX509KeyPair(own.Cert, own.Key)
			if err != nil {
				t.Fatal(err)
			}
			cfg.Certificates = []tls.Certificate{c}
		}
		c, err := tls.Dial("tcp", address, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c, serial
	}
	echoes := func(c *tls.Conn) error {
		if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			return err
		}
		if _, err := c.Write([]byte{1}); err != nil {
			return err
		}
		_, err := io.ReadFull(c, make([]byte, 1))
		return err
	}
	// ends waits until the server closes the connection, to which the client sends nothing.
	ends := func(c *tls.Conn) bool {
		t.Helper()
		if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		_, err := c.Read(make([]byte, 1))
		late, ok := err.(net.Error)
		return err != nil && !(ok && late.Timeout())
	}
	end := time.Now().Add(4 * time.Second).Truncate(time.Second)
	good, _ := open(i, "good", time.Time{})
	none, _ := open(nil, "", time.Time{})
	short, _ := open(i, "short", end)
	bad, serial := open(i, "bad", time.Time{})
	others, _ := open(other, "other", time.Time{})
	for _, c := range []*tls.Conn{good, none, short, bad, others} {
		if err := echoes(c); err != nil {
			t.Fatal(err)
		}
	}
	later := func(file string) {
		t.Helper()
		at := time.Now().Add(time.Hour)
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	i.revoke(f.Revoked, false, serial)
	later(f.Revoked)
	if !ends(bad) {
		t.Error("a client that was revoked stays connected")
	}
	if !ends(short) || time.Now().Before(end) {
		t.Error("a client whose certificate ended stays connected")
	}
	if err := echoes(others); err != nil {
		t.Error(err)
	}
	trust(i)
	later(f.ClientCA)
	if !ends(others) {
		t.Error("a client of an issuer that is trusted no more stays connected")
	}
	for _, c := range []*tls.Conn{good, none} {
		if err := echoes(c); err != nil {
			t.Errorf("another client: %v", err)
		}
	}
}

// TestCertificatesEndByTheGivenClock: a client's certificate ends by the clock of ServerBy, not by that of the machine.
func TestCertificatesEndByTheGivenClock(t *testing.T) {
	dir, i := t.TempDir(), newIssuer(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	f, own := Files{Cert: at("a.crt"), Key: at("a.key"), ClientCA: at("ca.crt")}, Files{Cert: at("b.crt"), Key: at("b.key")}
	i.save(f)
	i.saveUntil(own, time.Now().Add(10*time.Minute))
	if err := write(f.ClientCA, "CERTIFICATE", i.cert.Raw, 0o600); err != nil {
		t.Fatal(err)
	}
	r := &reloading{now: time.Now, files: f, log: slog.New(slog.DiscardHandler)}
	var err error
	if r.content, err = r.load(); err != nil {
		t.Fatal(err)
	}
	c, err := tls.LoadX509KeyPair(own.Cert, own.Key)
	if err != nil {
		t.Fatal(err)
	}
	chains := [][]*x509.Certificate{{c.Leaf, i.cert}}
	if !r.good(chains) {
		t.Error("a certificate that is good is not")
	}
	r.now = func() time.Time { return time.Now().Add(20 * time.Minute) }
	if r.good(chains) {
		t.Error("a certificate that ended is good")
	}
	if of, err := r.load(); err != nil || of.config.Time().Before(time.Now().Add(time.Minute)) {
		t.Errorf("handshakes go by another clock: %v", err)
	}
}
