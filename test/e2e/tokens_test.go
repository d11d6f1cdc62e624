package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/authn/testissuer"
	"github.com/aweigh/aweigh/internal/testshort"
)

// guarded is a node whose ports take the tokens of an issuer. alice is a user that may read and write /app/, and
// mallory has a token and is no user.
type guarded struct {
	*lone
	issuer    *testissuer.Issuer
	own       *authority
	network   string
	api, etcd string
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	x := &guarded{lone: newLone(t), issuer: testissuer.New(t)}
	x.issuer.Key("one", "ES256")
	x.issuer.Key("device", "ES256")
	x.issuer.Publish("one", "device")
	ports := freePorts(t, 2)
	x.api, x.etcd = fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])
	x.start("--etcd-listen", x.etcd, "--insecure")
	out, _ := x.run("whoami", "-o", "json")
	var who struct {
		Header   struct{ Network string }
		Identity string
	}
	if err := json.Unmarshal([]byte(out), &who); err != nil || who.Identity != fmt.Sprintf("local:%d", os.Geteuid()) {
		t.Fatalf("%v\n%s", err, out)
	}
	x.network = who.Header.Network
	ctx := within(t, time.Minute)
	users := etcdpb.NewAuthClient(etcdAt(t, x.etcd, ""))
	add := func(name, role string) {
		t.Helper()
		_, err := users.UserAdd(ctx, &etcdpb.AuthUserAddRequest{Name: name, Options: &etcdpb.UserAddOptions{NoPassword: true}}, grpc.WaitForReady(true))
		if err == nil {
			_, err = users.UserGrantRole(ctx, &etcdpb.AuthUserGrantRoleRequest{User: name, Role: role})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := users.RoleAdd(ctx, &etcdpb.AuthRoleAddRequest{Name: "app"}, grpc.WaitForReady(true))
	if err == nil {
		_, err = users.RoleGrantPermission(ctx, &etcdpb.AuthRoleGrantPermissionRequest{Name: "app", Perm: &etcdpb.Permission{
			PermType: etcdpb.Permission_READWRITE, Key: []byte("/app/"), RangeEnd: []byte("/app0")}})
	}
	if err != nil {
		t.Fatal(err)
	}
	add("oidc:"+x.issuer.URL+"#alice", "app")
	add("root", "root")
	if _, err := users.AuthEnable(ctx, &etcdpb.AuthEnableRequest{}); err != nil {
		t.Fatal(err)
	}
	x.stop()
	x.own = newAuthority(t, filepath.Join(x.dir, "ours"))
	server, err := x.own.Server("server")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(x.dir, "issuers.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "- issuer: %s\n  ca: %s\n", x.issuer.URL, x.issuer.CA), 0o600); err != nil {
		t.Fatal(err)
	}
	x.start("--api-listen", x.api, "--api-cert", server.Cert, "--api-key", server.Key, "--api-client-ca", x.own.Cert(), "--oidc-issuers", file,
		"--etcd-listen", x.etcd, "--etcd-cert-file", server.Cert, "--etcd-key-file", server.Key, "--metrics-listen", "127.0.0.1:0",
		"--log-level", "debug", "--audit-file", "requests.log", "--audit-level", "/=request", "--api-admins", "oidc:"+x.issuer.URL+"#admin")
	return x
}

// token is one that the issuer signs with a key, with other claims than the usual.
func (x *guarded) token(key string, others map[string]any) string {
	return x.issuer.Sign(key, x.issuer.Claims(x.network, time.Now(), others))
}

// file writes a token into a file, as Kubernetes does.
func (x *guarded) file(token string) string {
	x.t.Helper()
	name := filepath.Join(x.dir, "token")
	if err := os.WriteFile(name, []byte(token+"\n"), 0o600); err != nil {
		x.t.Fatal(err)
	}
	return name
}

// flags are those of a client of the API.
func (x *guarded) flags() []string {
	return []string{"--api", "https://" + x.api, "--cacert", x.own.Cert(), "--timeout", "5s"}
}

// metric is the count of requests with a kind of credential, by reason.
func (x *guarded) metric(kind, reason string) (n int) {
	x.t.Helper()
	socket := filepath.Join(x.dir, "node", "run", "api.sock")
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://localhost/metrics")
	if err != nil {
		x.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	found := regexp.MustCompile(fmt.Sprintf(`aweigh_callers_total\{kind="%s",reason="%s"\} (\d+)`, kind, reason)).FindSubmatch(text)
	if found != nil {
		_, _ = fmt.Sscan(string(found[1]), &n)
	}
	return n
}

// TestTokensOpenThePorts: the holder of an issuer's token is the user that is called like its identity, at both ports.
// The program logs in, and reads tokens from files that change.
func TestTokensOpenThePorts(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	x := newGuarded(t)
	alice := x.token("one", nil)
	file := x.file(alice)
	as := append(x.flags(), "--token-file", file)
	x.want(0, "oidc:"+x.issuer.URL+"#alice", append([]string{"whoami"}, as...)...)
	x.want(0, "read and write /app/", append([]string{"whoami"}, as...)...)
	x.want(0, "OK", append([]string{"put", "/app/1", "v"}, as...)...)
	x.want(0, "v", append([]string{"get", "/app/1", "-o", "value"}, as...)...)
	x.want(4, "do not permit this request", append([]string{"put", "/other", "v"}, as...)...)
	x.want(4, "api-admins lists", append([]string{"auth", "grant", "guest", "--any", "--prefix", "/guests/"}, as...)...)
	x.want(0, "oidc:"+x.issuer.URL+"#alice", "history", "/app/1")
	x.file(x.token("one", map[string]any{"sub": "admin"}))
	x.want(0, "", append([]string{"auth", "grant", "guest", "--any", "--prefix", "/guests/"}, as...)...)
	x.file(x.token("one", map[string]any{"sub": "mallory"}))
	x.want(4, "do not permit this request", append([]string{"get", "/app/1"}, as...)...)
	x.want(0, "it is none of them", append([]string{"whoami"}, as...)...)

	ctx := within(t, time.Minute)
	keys := etcdpb.NewKVClient(etcdAt(t, x.etcd, x.own.Cert()))
	for _, header := range []string{"token", "authorization"} {
		with := metadata.AppendToOutgoingContext(ctx, header, alice)
		if _, err := keys.Put(with, &etcdpb.PutRequest{Key: []byte("/app/2"), Value: []byte("v")}, grpc.WaitForReady(true)); err != nil {
			t.Errorf("%s: %v", header, err)
		}
		if _, err := keys.Range(with, &etcdpb.RangeRequest{Key: []byte("/other")}); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s: %v", header, err)
		}
	}

	x.issuer.Grant(1, "", nil)
	x.want(4, "requires a credential", append([]string{"get", "/app/1"}, x.flags()...)...)
	x.want(0, "logged in", "login", "--issuer", x.issuer.URL, "--issuer-ca", x.issuer.CA, "--network", x.network)
	x.want(0, "v", append([]string{"get", "/app/1", "-o", "value"}, x.flags()...)...)
	x.want(0, "v", "get", "/app/1", "-o", "value") // by the socket, as the owner
	x.want(0, "logged out", "logout")
	x.want(4, "requires a credential", append([]string{"get", "/app/1"}, x.flags()...)...)
	x.secret(alice)
}

// secret makes sure that no part of a token is in the node's log, nor in its record of requests, which has some.
func (x *guarded) secret(token string) {
	x.t.Helper()
	for _, file := range []string{x.log, filepath.Join(x.dir, "node", "requests.log")} {
		log, err := os.ReadFile(file)
		if err != nil || len(log) == 0 {
			x.t.Fatalf("%s has %d bytes, %v", file, len(log), err)
		}
		for _, part := range strings.Split(token, ".")[1:] { // many have the same header
			if strings.Contains(string(log), part) {
				x.t.Errorf("a token is in %s", file)
			}
		}
	}
}

// TestBadTokensAreRefused: at both ports, with a reason that says what to do, and each is counted.
func TestBadTokensAreRefused(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	x := newGuarded(t)
	x.issuer.Key("unpublished", "ES256")
	ctx := within(t, 2*time.Minute)
	keys := etcdpb.NewKVClient(etcdAt(t, x.etcd, x.own.Cert()))
	hour := func(n int) int64 { return time.Now().Add(time.Duration(n) * time.Hour).Unix() }
	good := x.token("one", nil)
	for what, c := range map[string]struct{ token, reason, text string }{
		"expired, or the node's clock is ahead": {x.token("one", map[string]any{"iat": hour(-2), "exp": hour(-1)}), "expired", "get a new one, or check this node's clock"},
		"early, or the node's clock is behind":  {x.token("one", map[string]any{"iat": hour(1), "exp": hour(2)}), "early", "clock"},
		"of another network":                    {x.token("one", map[string]any{"aud": strings.Repeat("0", 64)}), "audience", "get one for " + x.network},
		"by a key that the issuer withdrew":     {x.token("unpublished", nil), "key", "get"},
		"of another issuer":                     {x.token("one", map[string]any{"iss": "https://other.example"}), "issuer", x.issuer.URL},
		"changed":                               {good[:len(good)-8] + "AAAAAAAA", "signature", "get a new token"},
	} {
		before := x.metric("oidc", c.reason)
		x.want(4, c.text, append(append([]string{"get", "/app/1"}, x.flags()...), "--token-file", x.file(c.token))...)
		_, err := keys.Range(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.token), &etcdpb.RangeRequest{Key: []byte("/app/1")}, grpc.WaitForReady(true))
		if status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), c.text) {
			t.Errorf("a token that is %s, at etcd's port: %v", what, err)
		}
		if n := x.metric("oidc", c.reason); n < before+2 {
			t.Errorf("a token that is %s is counted %d times, %d before", what, n, before)
		}
		x.secret(c.token)
	}
	if _, err := keys.Range(ctx, &etcdpb.RangeRequest{Key: []byte("/app/1")}); err == nil {
		t.Error("etcd's port answers without a token")
	}
	x.cross(good)

	// A watch ends with its token, and so does what follows the next fetch of keys after the issuer withdrew one.
	short := x.token("one", map[string]any{"exp": time.Now().Add(3*time.Second - time.Minute).Unix()}) // clocks may differ by a minute
	begin := time.Now()
	proclaim := x.observed(metadata.AppendToOutgoingContext(ctx, "token", short), metadata.AppendToOutgoingContext(ctx, "token", good))
	stream, err := etcdpb.NewWatchClient(etcdAt(t, x.etcd, x.own.Cert())).Watch(metadata.AppendToOutgoingContext(ctx, "token", short))
	if err == nil {
		err = stream.Send(&etcdpb.WatchRequest{RequestUnion: &etcdpb.WatchRequest_CreateRequest{CreateRequest: &etcdpb.WatchCreateRequest{Key: []byte("/app/1")}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	if r, err := stream.Recv(); err != nil || r.Canceled {
		t.Fatal(r, err)
	}
	if r, err := stream.Recv(); status.Code(err) != codes.Unauthenticated {
		t.Errorf("after its token ended, a watch gets %v, %v", r, err)
	}
	if d := time.Since(begin); d > 3*time.Second+5*time.Second {
		t.Errorf("a watch outlived its token by %v", d)
	}
	if err := proclaim(); status.Code(err) != codes.Unauthenticated {
		t.Errorf("after its token ended, an observer of an election gets %v", err)
	}
	x.issuer.Key("two", "ES256")
	x.issuer.Publish("two")
	file := x.file(x.token("two", nil))
	until(t, 30*time.Second, "a token by the new key is taken", func(context.Context) error {
		if out, code := x.run(append(append([]string{"get", "/app/1"}, x.flags()...), "--token-file", file)...); code != 0 && !strings.Contains(out, "not found") {
			return fmt.Errorf("%d %s", code, out)
		}
		return nil
	})
	x.want(4, "key", append(append([]string{"get", "/app/1"}, x.flags()...), "--token-file", x.file(good))...)
}

// observed has one caller observe the election that another has won. The function that it returns has the leader
// proclaim another value, and returns with what error the observer hears of it.
func (x *guarded) observed(observer, leader context.Context) func() error {
	x.t.Helper()
	conn := etcdAt(x.t, x.etcd, x.own.Cert())
	elections := etcdpb.NewElectionClient(conn)
	lease, err := etcdpb.NewLeaseClient(conn).LeaseGrant(leader, &etcdpb.LeaseGrantRequest{TTL: 600}, grpc.WaitForReady(true))
	if err != nil {
		x.t.Fatal(err)
	}
	won, err := elections.Campaign(leader, &etcdpb.CampaignRequest{Name: []byte("/app/election"), Lease: lease.ID, Value: []byte("1")})
	if err != nil {
		x.t.Fatal(err)
	}
	stream, err := elections.Observe(observer, &etcdpb.LeaderRequest{Name: []byte("/app/election")})
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil {
		x.t.Fatal(err)
	}
	return func() error {
		if _, err := elections.Proclaim(leader, &etcdpb.ProclaimRequest{Leader: won.Leader, Value: []byte("2")}); err != nil {
			x.t.Fatal(err)
		}
		_, err := stream.Recv()
		return err
	}
}

// cross sends what a web page of another site can make a browser send, with a good token.
func (x *guarded) cross(token string) {
	x.t.Helper()
	pem, err := os.ReadFile(x.own.Cert())
	if err != nil {
		x.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	defer client.CloseIdleConnections()
	for _, port := range []string{x.api + "/aweigh.v1.Node/Status", x.etcd + "/v3/kv/range"} {
		r, err := http.NewRequest(http.MethodPost, "https://"+port, strings.NewReader("{}"))
		if err != nil {
			x.t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Origin", "https://evil.example")
		resp, err := client.Do(r)
		if err != nil {
			x.t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			x.t.Errorf("%s answers a page of another site: %s", port, resp.Status)
		}
	}
	if n := x.metric("none", "origin"); n != 2 {
		x.t.Errorf("%d of 2 requests of the page are counted", n)
	}
}
