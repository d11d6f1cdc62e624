package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/certs"
	"github.com/aweigh/aweigh/internal/testshort"
)

// lone is a network of one node, as "aweigh init" makes it.
type lone struct {
	t        *testing.T
	dir, log string
	env      []string
	cmd      *exec.Cmd
}

func newLone(t *testing.T) *lone {
	t.Helper()
	needsProcesses(t)
	dir, err := os.MkdirTemp("", "aweigh-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	x := &lone{t: t, dir: dir, log: filepath.Join(dir, "log"), env: environment(dir)}
	t.Cleanup(func() {
		x.stop()
		if !t.Failed() {
			_ = os.RemoveAll(dir)
		}
	})
	x.want(0, "", "init", "--data-dir", "node", "--listen", "/ip4/127.0.0.1/tcp/0")
	return x
}

// run runs the program, and gives what it prints and its exit code.
func (x *lone) run(args ...string) (out string, code int) {
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Dir = x.env, x.dir
	text, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok || ok && !exit.Exited() {
		x.t.Fatalf("%v: %v", args, err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// want runs the program, which must print a text and exit with a code.
func (x *lone) want(code int, text string, args ...string) {
	x.t.Helper()
	if out, got := x.run(args...); got != code || !strings.Contains(out, text) {
		x.t.Errorf("%s: exit code %d, want %d and %q:\n%s", strings.Join(args, " "), got, code, text, out)
	}
}

// start starts the node, and waits until it answers its owner.
func (x *lone) start(args ...string) {
	x.t.Helper()
	log, err := os.Create(x.log)
	if err != nil {
		x.t.Fatal(err)
	}
	defer log.Close()
	x.cmd = exec.Command(program, append([]string{"node", "--data-dir", "node"}, args...)...)
	x.cmd.Env, x.cmd.Dir, x.cmd.Stdout, x.cmd.Stderr = x.env, x.dir, log, log
	tie(x.cmd)
	if err := x.cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
	until(x.t, 20*time.Second, "the node answers", func(context.Context) error {
		if out, code := x.run("status"); code != 0 {
			printed, _ := os.ReadFile(x.log)
			return fmt.Errorf("%s%s", out, printed)
		}
		return nil
	})
}

// stop kills the node.
func (x *lone) stop() {
	if x.cmd != nil {
		_ = x.cmd.Process.Signal(sigKill)
		_ = x.cmd.Wait()
		x.cmd = nil
	}
}

// TestFreshNodesAnswerTheirOwnerAlone: without settings a node has no port for clients, and its owner needs no address.
// A port without certificates is refused at start, with the ways out.
func TestFreshNodesAnswerTheirOwnerAlone(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	x := newLone(t)
	port := fmt.Sprintf("127.0.0.1:%d", freePorts(t, 1)[0])
	for _, setting := range []string{"--api-listen", "--etcd-listen"} {
		x.want(2, "would take every client that reaches it", "node", "--data-dir", "node", setting, port)
	}
	for round := range 2 { // a node that was killed leaves its socket
		x.start()
		x.want(0, "OK", "put", "/a", fmt.Sprint(round))
		x.want(0, fmt.Sprint(round), "get", "/a", "-o", "value")
		x.want(0, fmt.Sprint(round), "get", "/a", "-o", "value", "--api", "unix://"+filepath.Join(x.dir, "node", "run", "api.sock"))
		x.want(0, "", "policy", "show") // and what the anchor's key signs:
		if out, code := x.run("auth", "grant", fmt.Sprint("guest", round), "--any", "--prefix", "/guests/"); code != 0 {
			t.Errorf("auth grant by the socket: %d\n%s", code, out)
		}
		log, err := os.ReadFile(x.log)
		if err != nil || !bytes.Contains(log, []byte(`api="" etcd="" metrics=""`)) || bytes.Contains(log, []byte("insecure")) {
			t.Errorf("the node has a port: %v\n%s", err, log)
		}
		if out, _ := x.run("status"); strings.Contains(out, "insecure") {
			t.Errorf("the status says that it is insecure:\n%s", out)
		}
		x.stop()
	}
	x.want(6, "no node runs here", "get", "/a")
	x.start("--api-listen", port, "--insecure")
	x.want(0, "insecure  api-listen "+port+" takes clients without certificates", "status")
	x.want(0, "1", "get", "/a", "-o", "value", "--api", port)
	if log, err := os.ReadFile(x.log); err != nil || !bytes.Contains(log, []byte("level=WARN msg=\"insecure: ")) {
		t.Errorf("the log does not warn: %v\n%s", err, log)
	}
}

// authority is the issuer of the certificates of a test.
type authority struct {
	t   *testing.T
	dir string
	*certs.Authority
}

func newAuthority(t *testing.T, dir string) *authority {
	t.Helper()
	a, err := certs.NewAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{t, dir, a}
}

// flags are those of a client with a certificate of the authority, for a node that this one, or another, issued for.
func (a *authority) flags(name string, node *authority) []string {
	a.t.Helper()
	f, err := a.Client(name, name)
	if err != nil {
		a.t.Fatal(err)
	}
	return []string{"--cacert", node.Cert(), "--cert", f.Cert, "--key", f.Key}
}

// expired is flags with a certificate whose time is over.
func (a *authority) expired(name string) []string {
	a.t.Helper()
	f := a.until(name, time.Now().Add(-time.Hour))
	return []string{"--cacert", a.Cert(), "--cert", f.Cert, "--key", f.Key}
}

// until is a certificate that ends at a time.
func (a *authority) until(name string, end time.Time) certs.Files {
	a.t.Helper()
	ca, err := tls.LoadX509KeyPair(a.Cert(), filepath.Join(a.dir, "ca.key"))
	if err != nil {
		a.t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature,
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: end, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, ca.Leaf, key.Public(), ca.PrivateKey)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, own := filepath.Join(a.dir, "old.crt"), filepath.Join(a.dir, "old.key")
	if err := errors.Join(os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(own, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600)); err != nil {
		a.t.Fatal(err)
	}
	return certs.Files{Cert: cert, Key: own}
}

// TestCertificatesGuardAPort: api-listen takes clients with certificates of its issuer, and no others; only those that
// api-admins names use the anchor's key.
func TestCertificatesGuardAPort(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	x := newLone(t)
	ours, other := newAuthority(t, filepath.Join(x.dir, "ours")), newAuthority(t, filepath.Join(x.dir, "other"))
	server, err := ours.Server("server")
	if err != nil {
		t.Fatal(err)
	}
	port := fmt.Sprintf("127.0.0.1:%d", freePorts(t, 1)[0])
	x.start("--api-listen", port, "--api-cert", server.Cert, "--api-key", server.Key, "--api-client-ca", ours.Cert(), "--api-admins", "alice")
	if out, _ := x.run("status"); strings.Contains(out, "insecure") {
		t.Errorf("the status says that it is insecure:\n%s", out)
	}
	ask := func(code int, text string, words []string, flags ...string) {
		t.Helper()
		x.want(code, text, append(append(words, "--api", port, "--timeout", "5s"), flags...)...)
	}
	write, govern := []string{"put", "/a", "b"}, []string{"auth", "grant", "guest", "--any", "--prefix", "/guests/"}
	ask(0, "OK", write, ours.flags("bob", ours)...)
	ask(6, "certificate required", write, "--cacert", ours.Cert())
	ask(6, "unknown certificate authority", write, other.flags("alice", ours)...)
	ask(6, "expired certificate", write, ours.expired("alice")...)
	ask(6, "the certificate of the node does not verify", write, ours.flags("bob", other)...)
	if out, code := x.run("get", "/a", "--api", "http://"+port); code == 0 {
		t.Errorf("the port answers without TLS:\n%s", out)
	}
	ask(4, `a common name that api-admins lists, not "bob"`, govern, ours.flags("bob", ours)...)
	ask(0, "", govern, ours.flags("alice", ours)...)
}

// TestConnectionsEndWithCertificates: at both ports a connection ends when the certificate of its client does.
func TestConnectionsEndWithCertificates(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	x := newLone(t)
	ours := newAuthority(t, filepath.Join(x.dir, "ours"))
	server, err := ours.Server("server")
	if err != nil {
		t.Fatal(err)
	}
	free := freePorts(t, 2)
	api, etcd := fmt.Sprintf("127.0.0.1:%d", free[0]), fmt.Sprintf("127.0.0.1:%d", free[1])
	x.start("--api-listen", api, "--api-cert", server.Cert, "--api-key", server.Key, "--api-client-ca", ours.Cert(),
		"--etcd-listen", etcd, "--etcd-cert-file", server.Cert, "--etcd-key-file", server.Key, "--etcd-trusted-ca-file", ours.Cert())
	issuer, err := os.ReadFile(ours.Cert())
	if err != nil {
		t.Fatal(err)
	}
	trust := x509.NewCertPool()
	trust.AppendCertsFromPEM(issuer)
	for _, address := range []string{api, etcd} {
		end := time.Now().Add(3 * time.Second).Truncate(time.Second)
		f := ours.until("short", end)
		own, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			t.Fatal(err)
		}
		c, err := tls.Dial("tcp", address, &tls.Config{RootCAs: trust, Certificates: []tls.Certificate{own}, NextProtos: []string{"h2"}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetReadDeadline(end.Add(4 * time.Second)); err != nil { // before the node gives up silent clients
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, c)
		if late, ok := err.(net.Error); ok && late.Timeout() || time.Now().Before(end) {
			t.Errorf("%s: the connection ended by %v, at %s; the certificate at %s", address, err, time.Now(), end)
		}
	}
}

// etcdAt is a client of etcd for an address, with TLS by an issuer's certificate if there is a file of one.
func etcdAt(t *testing.T, address, issuer string) *grpc.ClientConn {
	t.Helper()
	how := insecure.NewCredentials()
	if issuer != "" {
		var err error
		if how, err = credentials.NewClientTLSFromFile(issuer, ""); err != nil {
			t.Fatal(err)
		}
	}
	c, err := grpc.NewClient(address, grpc.WithTransportCredentials(how))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestUsersOpenEtcdsPort: once users are enabled, etcd's port needs neither certificates of clients nor insecure. When
// they are disabled again, it answers no call.
func TestUsersOpenEtcdsPort(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	x := newLone(t)
	port := fmt.Sprintf("127.0.0.1:%d", freePorts(t, 1)[0])
	x.start("--etcd-listen", port, "--insecure")
	x.want(0, "insecure  etcd-listen "+port+" takes clients without certificates", "status")
	ctx := within(t, time.Minute)
	users := etcdpb.NewAuthClient(etcdAt(t, port, ""))
	_, err := users.UserAdd(ctx, &etcdpb.AuthUserAddRequest{Name: "root", Password: "secret"}, grpc.WaitForReady(true))
	if err == nil {
		_, err = users.UserGrantRole(ctx, &etcdpb.AuthUserGrantRoleRequest{User: "root", Role: "root"})
	}
	if err == nil {
		_, err = users.AuthEnable(ctx, &etcdpb.AuthEnableRequest{})
	}
	if err != nil {
		t.Fatal(err)
	}
	x.stop()

	x.start("--etcd-listen", port, "--etcd-auto-tls")
	if out, _ := x.run("status"); strings.Contains(out, "insecure") {
		t.Errorf("the status says that it is insecure:\n%s", out)
	}
	conn := etcdAt(t, port, filepath.Join(x.dir, "node", "tls", "auto.crt"))
	keys, read := etcdpb.NewKVClient(conn), &etcdpb.RangeRequest{Key: []byte("/a")}
	if _, err := keys.Range(ctx, read, grpc.WaitForReady(true)); err == nil {
		t.Error("a client that is no user is served")
	}
	token, err := etcdpb.NewAuthClient(conn).Authenticate(ctx, &etcdpb.AuthenticateRequest{Name: "root", Password: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	as := metadata.AppendToOutgoingContext(ctx, "token", token.Token)
	if _, err := keys.Range(as, read); err != nil {
		t.Errorf("root: %v", err)
	}
	x.want(0, "", "users", "disable", "--yes")
	for name, ctx := range map[string]context.Context{"a client": ctx, "one that was root": as} {
		if _, err := keys.Range(ctx, read); status.Code(err) != codes.PermissionDenied {
			t.Errorf("users are disabled, and %s gets %v", name, err)
		}
		if _, err := etcdpb.NewAuthClient(conn).UserAdd(ctx, &etcdpb.AuthUserAddRequest{Name: "mallory", Password: "m"}); status.Code(err) != codes.PermissionDenied {
			t.Errorf("users are disabled, and %s that adds one gets %v", name, err)
		}
	}
	x.stop()
	x.want(2, "no users are enabled", "node", "--data-dir", "node", "--etcd-listen", port, "--etcd-auto-tls")
}
