package hostile

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/authn/testissuer"
	"github.com/aweigh/aweigh/internal/daemon"
	"github.com/aweigh/aweigh/internal/devnet"
	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// clocked is a network whose last node has a clock of its own. Its ports take tokens of an issuer and of users.
type clocked struct {
	*net4
	by     time.Duration // that the clock of the last node is ahead
	issuer *testissuer.Issuer
	etcd   []string // addresses
	health []string
}

// wrong is the node with the wrong clock.
const wrong = 3

func newClocked(t *testing.T, by time.Duration) *clocked {
	t.Helper()
	x := &clocked{by: by, issuer: testissuer.New(t)}
	x.issuer.Key("one", "ES256")
	x.issuer.Publish("one")
	file := filepath.Join(t.TempDir(), "issuers.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "- issuer: %s\n  ca: %s\n", x.issuer.URL, x.issuer.CA), 0o600); err != nil {
		t.Fatal(err)
	}
	x.net4 = newNetworkOpened(t, 4, devnet.Make, func(i int, a devnet.Node, log *slog.Logger) (*daemon.Daemon, error) {
		x.etcd, x.health = append(x.etcd, freePort(t)), append(x.health, freePort(t))
		a.Etcd, a.Metrics, a.OIDC = x.etcd[i], x.health[i], file
		clock := time.Now
		if i == wrong {
			clock = func() time.Time { return time.Now().Add(by) }
		}
		return daemon.OpenByClock(a.Home, a.Settings, "test", log, clock)
	})
	x.commitsAt(t, wrong)
	return x
}

func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (x *clocked) dial(t testing.TB, i int) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient(x.etcd[i], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// users enables users: alice has a password, and so has root.
func (x *clocked) users(t testing.TB) {
	t.Helper()
	users := etcdpb.NewAuthClient(x.dial(t, 0))
	for _, name := range []string{"root", "alice"} {
		_, err := users.UserAdd(t.Context(), &etcdpb.AuthUserAddRequest{Name: name, Password: "secret"}, grpc.WaitForReady(true))
		if err == nil {
			_, err = users.UserGrantRole(t.Context(), &etcdpb.AuthUserGrantRoleRequest{User: name, Role: "root"})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := users.AuthEnable(t.Context(), &etcdpb.AuthEnableRequest{}); err != nil {
		t.Fatal(err)
	}
}

// login is a token of a user that a node makes.
func (x *clocked) login(t testing.TB, i int) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := etcdpb.NewAuthClient(x.dial(t, i)).Authenticate(ctx, &etcdpb.AuthenticateRequest{Name: "alice", Password: "secret"}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatalf("node %d makes no token: %v", i, err)
	}
	return r.Token
}

// callers is how many requests a node has counted with a kind of credential, by what became of it.
func (x *clocked) callers(t testing.TB, i int, kind, reason string) (n int) {
	t.Helper()
	r, err := http.Get("http://" + x.health[i] + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(fmt.Sprintf(`aweigh_callers_total\{kind="%s",reason="%s"\} (\d+)`, kind, reason)).FindSubmatch(text); found != nil {
		_, _ = fmt.Sscan(string(found[1]), &n)
	}
	return n
}

// shows holds a node to its answer to a request with a token: none that says no, or a refusal with words, which it
// counts.
func (x *clocked) shows(t testing.TB, what string, i int, token, kind, reason string, words ...string) {
	t.Helper()
	before := x.callers(t, i, kind, reason)
	body := fmt.Sprintf(`{"key": %q, "serializable": true}`, base64.StdEncoding.EncodeToString([]byte("/any")))
	status, answer, err := x.api(i).Call("Range", jsonType, []byte(body), "Authorization", "Bearer "+token)
	if err != nil {
		t.Fatal(err)
	}
	if refused := status == http.StatusUnauthorized; refused != (len(words) > 0) || !refused && status != http.StatusOK && status != http.StatusForbidden {
		t.Errorf("%s: node %d answers %d: %s", what, i, status, answer)
	}
	for _, w := range words {
		if !strings.Contains(string(answer), w) {
			t.Errorf("%s: node %d does not say %q: %s", what, i, w, answer)
		}
	}
	if after := x.callers(t, i, kind, reason); after <= before {
		t.Errorf("%s: node %d counts %d requests of %s with %s, and counted %d before", what, i, after, kind, reason, before)
	}
}

// signed is a bundle of an author whose clock is ahead, with its frame.
func (x *clocked) signed(t testing.TB, who *unlisted, by time.Duration) (raw, frame []byte) {
	m := who.mutation(put("/late", "v"))
	m.ValidUntil = aweigh.InstantOf(time.Now().Add(by + 30*time.Second))
	b, err := scope.Sign(who.key, x.Genesis.Policy.Limits, m)
	if err != nil {
		t.Fatal(err)
	}
	return b.Raw(), who.sign(t, m)
}

// TestNodesWithWrongClocksAreRefusedWithReasons: the clock of a node is an hour ahead or behind. What it proposes, what
// an author with such a clock signs, the tokens that one side makes and the other checks, and tokens of issuers are
// refused with a reason that says what to do, and counted. The other nodes go on.
func TestNodesWithWrongClocksAreRefusedWithReasons(t *testing.T) {
	testshort.SkipUnlessLong(t)
	for name, by := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			x := newClocked(t, by)
			off := x.node(wrong)
			early := func(nodes ...int) (sum uint64) {
				for _, i := range nodes {
					sum += x.node(i).Root().Counts().Refused[refusal.Early]
				}
				return sum
			}
			testwait.Until(t, "blocks from the future are refused and counted", func() bool {
				x.commitsAt(t, wrong)
				if by > 0 {
					return early(0, 1, 2) > 0
				}
				return early(wrong) > 0
			})
			testwait.Until(t, "the node says that its clock is wrong", func() bool {
				x.commitsAt(t, wrong)
				for _, c := range off.Root().Ready(t.Context()) {
					if c.Name == "clock" && c.Err != nil && strings.Contains(c.Err.Error(), "synchronize it (NTP) and restart this node") {
						return true
					}
				}
				return false
			})
			t.Run("authors", func(t *testing.T) { x.authors(t) })
			t.Run("grants", func(t *testing.T) { x.granted(t) })
			x.users(t)
			t.Run("users", func(t *testing.T) { x.tokens(t) })
			t.Run("issuers", func(t *testing.T) { x.issued(t) })
			x.commitsAt(t, wrong)
		})
	}
}

// authors hands in what an author signs whose clock is as wrong as that of the node, at an honest node, and what an
// author with a right clock signs at the node with the wrong one.
func (x *clocked) authors(t *testing.T) {
	who := &unlisted{genesis: x.Genesis, key: x.identity(t, wrong), serial: x.unlisted(t).serial}
	raw, frame := x.signed(t, who, x.by)
	_, err := x.node(0).Submit(t.Context(), raw)
	want := "the clock of its author is ahead"
	if x.by < 0 {
		want = "the clock of its author or of this node is wrong"
	}
	if !errors.Is(err, machine.ErrNotTaken) || !strings.Contains(err.Error(), want) {
		t.Errorf("an honest node answers: %v", err)
	}
	stale := func() uint64 { return x.node(1).Root().Counts().Refused[refusal.Stale] }
	before := stale()
	p, to := x.attacker(t, 1)
	s, err := p.Open(t.Context(), to, "frames")
	if err == nil {
		err = Write(s, frame, 5*time.Second)
	}
	if err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the frame is refused and counted", func() bool { return stale() > before })

	raw, _ = x.signed(t, who, 0)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	switch r, err := x.node(wrong).Submit(ctx, raw); {
	case x.by > 0 && (!errors.Is(err, machine.ErrNotTaken) || !strings.Contains(err.Error(), "of this node is wrong")):
		t.Errorf("the node that is ahead answers: %v, %v", r, err)
	case x.by < 0 && (err != nil || r[0].Code != scope.Applied): // it goes by the scope's time
		t.Errorf("the node that is behind answers: %v, %v", r, err)
	}
	if r, err := x.node(0).Txn(ctx, put("/on", "v"), node.Once{}); err != nil || r.Code != scope.Applied {
		t.Errorf("an honest node does not go on: %v, %v", r, err)
	}
}

// granted hands in changes under grants of an honest node's key, at the node with the wrong clock: one of a grant that
// is good, and one of a grant that has ended.
func (x *clocked) granted(t *testing.T) {
	under := func(i int, by time.Duration) ([]machine.Receipt, error) {
		who := x.unlisted(t)
		end := aweigh.InstantOf(time.Now().Add(by))
		g, err := scope.SignGrant(x.identity(t, 0).Signer(), scope.Grant{Scope: x.Genesis.Hash(), To: who.key.Public(), Name: "holder", NotAfter: end})
		if err != nil {
			t.Fatal(err)
		}
		m := who.mutation(put("/granted", "v"))
		m.ValidUntil, m.Grants = min(m.ValidUntil, end), [][]byte{g.Encode()}
		b, err := scope.Sign(who.key, x.Genesis.Policy.Limits, m)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return x.node(i).Submit(ctx, b.Raw())
	}
	if r, err := under(0, 5*time.Minute); err != nil || r[0].Code != scope.Applied {
		t.Errorf("under a grant, an honest node answers %v, %v", r, err)
	}
	for what, by := range map[string]time.Duration{"good": 5 * time.Minute, "over": -10 * time.Minute} {
		r, err := under(wrong, by)
		switch {
		case x.by < 0 && by > 0:
			if err != nil || r[0].Code != scope.Applied {
				t.Errorf("under a grant that is good, the node that is behind answers %v, %v", r, err)
			}
		case !errors.Is(err, machine.ErrNotTaken) || !strings.Contains(err.Error(), "of this node is wrong"):
			t.Errorf("under a grant that is %s, the node with the wrong clock answers %v, %v", what, r, err)
		}
	}
}

// identity is the key with which a node signs what its clients ask for.
func (x *clocked) identity(t testing.TB, i int) votes.PrivateKey {
	t.Helper()
	key, _, err := x.Nodes[i].Home.Keys()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// tokens are those that nodes make for users.
func (x *clocked) tokens(t *testing.T) {
	x.commitsAt(t, wrong) // so that a node that is behind knows what time has passed
	theirs, ours := x.login(t, wrong), x.login(t, 0)
	x.shows(t, "a token of an honest node", 1, ours, "user", "accepted")
	if x.by < 0 {
		x.shows(t, "a token of a node that is behind", 0, theirs, "user", "accepted")
		x.shows(t, "a token, at a node that is behind", wrong, ours, "user", "accepted")
		return
	}
	x.shows(t, "a token of a node that is ahead", 0, theirs, "user", "early", "the clock of the node that made it is ahead", "synchronize the clocks (NTP)")
	x.shows(t, "a token, at a node that is ahead", wrong, ours, "user", "expired", "the token ended at", "check the clocks of this node")
}

// issued are tokens of an issuer.
func (x *clocked) issued(t *testing.T) {
	token := func(at time.Time) string {
		return x.issuer.Sign("one", x.issuer.Claims(x.Genesis.Hash().String(), at, map[string]any{"exp": at.Add(10 * time.Minute).Unix()}))
	}
	now, old := token(time.Now()), token(time.Now().Add(-20*time.Minute))
	x.shows(t, "an issuer's token", 0, now, "oidc", "accepted")
	x.shows(t, "one that has ended", 0, old, "oidc", "expired", "get a new one, or check this node")
	x.shows(t, "one that has ended, at the wrong node", wrong, old, "oidc", "expired", "get a new one, or check this node")
	if x.by < 0 { // no token is good after its end
		x.shows(t, "a token, at a node that is behind", wrong, now, "oidc", "accepted")
		return
	}
	x.shows(t, "a token, at a node that is ahead", wrong, now, "oidc", "expired", "get a new one, or check this node")
}
