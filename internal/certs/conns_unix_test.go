//go:build unix

package certs

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
)

// TestConnectionsWaitForNoFile: clients are answered while a file is read that gives nothing, as on a network that is
// away.
func TestConnectionsWaitForNoFile(t *testing.T) {
	testshort.Skip(t)
	dir, i := t.TempDir(), newIssuer(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	f, own := Files{Cert: at("a.crt"), Key: at("a.key"), ClientCA: at("ca.crt")}, Files{Cert: at("b.crt"), Key: at("b.key")}
	i.save(f)
	i.saveUntil(own, time.Time{})
	if err := write(f.ClientCA, "CERTIFICATE", i.cert.Raw, 0o600); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(own.Cert, own.Key)
	if err != nil {
		t.Fatal(err)
	}
	address := echoing(t, f)
	c, err := tls.Dial("tcp", address, &tls.Config{RootCAs: i.pool(), Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := os.Remove(f.ClientCA); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(f.ClientCA, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // frees the reader
		if w, err := os.OpenFile(f.ClientCA, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			_ = w.Close()
		}
	})
	for began := time.Now(); time.Since(began) < 5*lookAgain; {
		if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond) // the file is looked at meanwhile
	}
}
