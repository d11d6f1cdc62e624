package etcdcompat

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// startNode starts a network of one node that serves etcd's API, and gives its
// address and directory.
func startNode(t *testing.T, flags ...string) (address, dir string) {
	t.Helper()
	program, err := aweighBinary()
	if err != nil {
		t.Fatal(err)
	}
	address, dir = freeAddress(t), filepath.Join(t.TempDir(), "node")
	init := exec.Command(program, append([]string{"init", "--data-dir", dir, "--listen", "/ip4/127.0.0.1/tcp/0",
		"--insecure", "--etcd-listen", address, "--log-level", "warn"}, flags...)...)
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", init, err, out)
	}
	launch(t, exec.Command(program, "node", "--data-dir", dir), nil)
	return address, dir
}

// certificate writes one and its key, signed by an issuer or, without one, by itself.
func certificate(t *testing.T, name string, issuer *tls.Certificate) (made tls.Certificate, cert, key string) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IsCA: issuer == nil, BasicConstraintsValid: true,
	}
	parent, by := c, any(secret)
	if issuer != nil {
		parent, by = issuer.Leaf, issuer.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, secret.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	pkcs, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if made, err = tls.LoadX509KeyPair(cert, key); err != nil {
		t.Fatal(err)
	}
	return made, cert, key
}

// puts writes through etcd's client until it works, or a time is over.
func puts(t *testing.T, address string, secure *tls.Config, within time.Duration) error {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, TLS: secure, DialTimeout: 2 * time.Second})
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for {
		once, end := context.WithTimeout(ctx, 3*time.Second)
		_, err = c.Put(once, "k", "v")
		end()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

// TestEtcdctlOverTLS: a node that makes its certificate itself serves whoever
// trusts it, and one that asks for certificates those who have one. Nobody else.
func TestEtcdctlOverTLS(t *testing.T) {
	ctl := os.Getenv("AWEIGH_ETCDCTL")
	command := func(address string, args ...string) {
		t.Helper()
		if ctl == "" {
			return
		}
		out, err := exec.CommandContext(t.Context(), ctl, append([]string{"--endpoints", "https://" + address, "get", "k"}, args...)...).CombinedOutput()
		if err != nil || string(out) != "k\nv\n" {
			t.Errorf("etcdctl: %v: %s", err, out)
		}
	}
	t.Run("made by itself", func(t *testing.T) {
		address, dir := startNode(t, "--etcd-auto-tls")
		ca := filepath.Join(dir, "tls", "auto.crt")
		until(t, "the certificate is there", 20*time.Second, func() bool { _, err := os.Stat(ca); return err == nil })
		data, err := os.ReadFile(ca)
		trust := x509.NewCertPool()
		if err != nil || !trust.AppendCertsFromPEM(data) {
			t.Fatal(err)
		}
		if err := puts(t, address, &tls.Config{RootCAs: trust}, 30*time.Second); err != nil {
			t.Fatal(err)
		}
		command(address, "--cacert", ca)
		if err := puts(t, address, nil, time.Second); err == nil {
			t.Error("a client without TLS is served")
		}
	})
	t.Run("mutual", func(t *testing.T) {
		issuer, ca, _ := certificate(t, "ca", nil)
		_, cert, key := certificate(t, "server", &issuer)
		own, clientCert, clientKey := certificate(t, "client", &issuer)
		address, _ := startNode(t, "--etcd-cert-file", cert, "--etcd-key-file", key, "--etcd-trusted-ca-file", ca)
		trust := x509.NewCertPool()
		trust.AddCert(issuer.Leaf)
		if err := puts(t, address, &tls.Config{RootCAs: trust, Certificates: []tls.Certificate{own}}, 30*time.Second); err != nil {
			t.Fatal(err)
		}
		command(address, "--cacert", ca, "--cert", clientCert, "--key", clientKey)
		if err := puts(t, address, &tls.Config{RootCAs: trust}, time.Second); err == nil {
			t.Error("a client without a certificate is served")
		}
	})
}
