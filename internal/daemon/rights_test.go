package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// bearer adds a token to requests of HTTP.
type bearer struct {
	token string
	http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.RoundTripper.RoundTrip(r)
}

// methods are those of the API.
type methods = aweighv1connect.NodeClient

// ports are clients of both ports of a daemon, with users.
type ports struct {
	t    testing.TB
	d    *Daemon
	ctx  context.Context
	etcd *grpc.ClientConn
}

func newPorts(t testing.TB, d *Daemon) *ports {
	t.Helper()
	conn, err := grpc.NewClient(d.etcdAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute) // with -race, the many passwords take most of one
	t.Cleanup(func() {
		cancel()
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return &ports{t, d, ctx, conn}
}

// api is a client of the API with a token; "" for none.
func (p *ports) api(token string) aweighv1connect.NodeClient {
	h2 := new(http.Protocols)
	h2.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: h2}
	p.t.Cleanup(transport.CloseIdleConnections)
	return aweighv1connect.NewNodeClient(&http.Client{Transport: bearer{token, transport}}, "http://"+p.d.API())
}

// owner is a client of the API at the node's socket.
func (p *ports) owner() *client.Client {
	p.t.Helper()
	c, err := client.Dial(p.d.Socket())
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	return c
}

// name makes a change of names in the node's name.
func (p *ports) name(n scope.Naming) {
	p.t.Helper()
	if r, err := p.d.Node.Naming(p.ctx, n, node.Once{}); err != nil || r.Code != scope.Applied {
		p.t.Fatal(r, err)
	}
}

// as is the context of a call of etcd's with a token; "" for none.
func (p *ports) as(token string) context.Context {
	if token == "" {
		return p.ctx
	}
	return metadata.AppendToOutgoingContext(p.ctx, "token", token)
}

// token is that of a user.
func (p *ports) token(user string) string {
	p.t.Helper()
	r, err := etcdpb.NewAuthClient(p.etcd).Authenticate(p.ctx, &etcdpb.AuthenticateRequest{Name: user, Password: "of " + user})
	if err != nil {
		p.t.Fatal(err)
	}
	return r.Token
}

func must[R any](t testing.TB) func(R, error) R {
	return func(r R, err error) R {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

// enable adds root, and users who may read and write /a/, and enables users.
func (p *ports) enable() {
	p.t.Helper()
	users := etcdpb.NewAuthClient(p.etcd)
	for role, permission := range map[string]etcdpb.Permission_Type{
		"reader": etcdpb.Permission_READ, "writer": etcdpb.Permission_WRITE, "both": etcdpb.Permission_READWRITE,
	} {
		must[*etcdpb.AuthRoleAddResponse](p.t)(users.RoleAdd(p.ctx, &etcdpb.AuthRoleAddRequest{Name: role}))
		must[*etcdpb.AuthRoleGrantPermissionResponse](p.t)(users.RoleGrantPermission(p.ctx, &etcdpb.AuthRoleGrantPermissionRequest{
			Name: role, Perm: &etcdpb.Permission{PermType: permission, Key: []byte("/a/"), RangeEnd: []byte("/a0")}}))
		p.add(role, role)
	}
	p.add("root", "root")
	must[*etcdpb.AuthEnableResponse](p.t)(users.AuthEnable(p.ctx, &etcdpb.AuthEnableRequest{}))
}

// add adds a user with a role.
func (p *ports) add(user, role string) {
	p.t.Helper()
	users := etcdpb.NewAuthClient(p.etcd)
	must[*etcdpb.AuthUserAddResponse](p.t)(users.UserAdd(p.ctx, &etcdpb.AuthUserAddRequest{Name: user, Password: "of " + user}))
	must[*etcdpb.AuthUserGrantRoleResponse](p.t)(users.UserGrantRole(p.ctx, &etcdpb.AuthUserGrantRoleRequest{User: user, Role: role}))
}

// asks makes a request, and returns the error of its answer.
func asks[Req, Resp any](
	call func(context.Context, *connect.Request[Req]) (*connect.Response[Resp], error), ctx context.Context, m *Req,
) error {
	_, err := call(ctx, connect.NewRequest(m))
	return err
}

// streamed is asks for streams, of which it awaits one answer.
func streamed[Req, Resp any](
	call func(context.Context, *connect.Request[Req]) (*connect.ServerStreamForClient[Resp], error),
	ctx context.Context, m *Req,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := call(ctx, connect.NewRequest(m))
	if err != nil {
		return err
	}
	if s.Receive() {
		return nil
	}
	return s.Err()
}

// TestUsersBindTheAPI: once users are enabled, every method of the API is for the users that may, and the owner.
func TestUsersBindTheAPI(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	r := newRunning(t, 1)
	p := newPorts(t, r.on[0])
	ctx := p.ctx
	in, out := []byte("/a/1"), []byte("/b/1")
	anonymous := p.api("")
	for _, key := range [][]byte{in, out} {
		if err := asks(anonymous.Put, ctx, &aweighv1.PutRequest{Key: key, Value: []byte("v")}); err != nil {
			t.Fatal(err) // users are not enabled
		}
	}
	p.enable()
	tokens := map[string]string{"": ""}
	for _, user := range []string{"reader", "writer", "both", "root"} {
		tokens[user] = p.token(user)
	}
	op := func(o *aweighv1.Op) *aweighv1.TxnRequest { return &aweighv1.TxnRequest{Success: []*aweighv1.Op{o}} }
	getting := func(key []byte) *aweighv1.Op {
		return &aweighv1.Op{Op: &aweighv1.Op_Range{Range: &aweighv1.RangeRequest{Key: key}}}
	}
	putting := func(key []byte) *aweighv1.Op {
		return &aweighv1.Op{Op: &aweighv1.Op_Put{Put: &aweighv1.PutRequest{Key: key}}}
	}
	id := make([]byte, 32)
	for what, x := range map[string]struct {
		ask func(c methods) error
		may string // users, by their first letters; k: all; o: the owner alone
	}{
		"put": {func(c methods) error { return asks(c.Put, ctx, &aweighv1.PutRequest{Key: in}) }, "wb"},
		"put, and see": {func(c methods) error {
			return asks(c.Put, ctx, &aweighv1.PutRequest{Key: in, PrevKv: true})
		}, "b"},
		"put elsewhere": {func(c methods) error { return asks(c.Put, ctx, &aweighv1.PutRequest{Key: out}) }, ""},
		"delete": {func(c methods) error {
			return asks(c.Delete, ctx, &aweighv1.DeleteRequest{Key: []byte("/a/x")})
		}, "wb"},
		"delete beyond": {func(c methods) error {
			return asks(c.Delete, ctx, &aweighv1.DeleteRequest{Key: []byte("/a/x"), RangeEnd: []byte("/c")})
		}, ""},
		"range": {func(c methods) error { return asks(c.Range, ctx, &aweighv1.RangeRequest{Key: in}) }, "rb"},
		"range here": {func(c methods) error {
			return asks(c.Range, ctx, &aweighv1.RangeRequest{Key: in, Serializable: true})
		}, "rb"},
		"range of all": {func(c methods) error {
			return asks(c.Range, ctx, &aweighv1.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}})
		}, ""},
		"txn that reads":  {func(c methods) error { return asks(c.Txn, ctx, op(getting(in))) }, "rb"},
		"txn that writes": {func(c methods) error { return asks(c.Txn, ctx, op(putting(in))) }, "wb"},
		"txn within": {func(c methods) error {
			return asks(c.Txn, ctx, op(&aweighv1.Op{Op: &aweighv1.Op_Txn{Txn: op(getting(out))}}))
		}, ""},
		"compact": {func(c methods) error {
			return asks(c.Compact, ctx, &aweighv1.CompactRequest{Revision: 1})
		}, ""},
		"submit": {func(c methods) error {
			return asks(c.Submit, ctx, &aweighv1.SubmitRequest{Bundle: []byte("x")})
		}, "rwb"},
		"watch": {func(c methods) error {
			return streamed(c.Watch, ctx, &aweighv1.WatchRequest{Key: in})
		}, "rb"},
		"watch elsewhere": {func(c methods) error {
			return streamed(c.Watch, ctx, &aweighv1.WatchRequest{Key: in, RangeEnd: out})
		}, ""},
		"name": {func(c methods) error {
			return asks(c.Name, ctx, &aweighv1.NameRequest{Key: in, To: []byte("/a/2")})
		}, ""},
		"resolve": {func(c methods) error {
			return asks(c.Resolve, ctx, &aweighv1.ResolveRequest{Key: in})
		}, "rb"},
		"object": {func(c methods) error {
			return asks(c.Object, ctx, &aweighv1.ObjectRequest{Uid: "x"})
		}, ""},
		"redirects": {func(c methods) error {
			return asks(c.Redirects, ctx, &aweighv1.RedirectsRequest{Key: in})
		}, "rb"},
		"act": {func(c methods) error {
			return asks(c.Act, ctx, &aweighv1.ActRequest{Verb: "get", Key: in})
		}, "rb"},
		"judge": {func(c methods) error {
			return asks(c.Judge, ctx, &aweighv1.JudgeRequest{Verb: "get", Key: in})
		}, "rb"},
		"signals": {func(c methods) error {
			return streamed(c.Signals, ctx, &aweighv1.SignalsRequest{Key: in})
		}, "rb"},
		"history": {func(c methods) error {
			return asks(c.History, ctx, &aweighv1.HistoryRequest{Key: in})
		}, "rb"},
		"prove": {func(c methods) error { return asks(c.Prove, ctx, &aweighv1.ProveRequest{Key: in}) }, ""},
		"prove range": {func(c methods) error {
			return asks(c.ProveRange, ctx, &aweighv1.ProveRangeRequest{Key: in, RangeEnd: append(in, 0)})
		}, "rb"},
		"prove range elsewhere": {func(c methods) error {
			return asks(c.ProveRange, ctx, &aweighv1.ProveRangeRequest{Key: in, RangeEnd: out})
		}, ""},
		"backup": {func(c methods) error { return streamed(c.Backup, ctx, &aweighv1.BackupRequest{}) }, ""},
		"checkpoint": {func(c methods) error {
			return asks(c.Checkpoint, ctx, &aweighv1.CheckpointRequest{})
		}, "k"},
		"status":  {func(c methods) error { return asks(c.Status, ctx, &aweighv1.StatusRequest{}) }, "k"},
		"invite":  {func(c methods) error { return asks(c.Invite, ctx, &aweighv1.InviteRequest{}) }, ""},
		"genesis": {func(c methods) error { return asks(c.Genesis, ctx, &aweighv1.GenesisRequest{}) }, "k"},
		"trust":   {func(c methods) error { return asks(c.Trust, ctx, &aweighv1.TrustRequest{}) }, "k"},
		"explain": {func(c methods) error {
			return asks(c.Explain, ctx, &aweighv1.ExplainRequest{Anchor: id})
		}, "k"},
		"handovers": {func(c methods) error { return asks(c.Handovers, ctx, &aweighv1.HandoversRequest{}) }, "k"},
		"scopes":    {func(c methods) error { return asks(c.Scopes, ctx, &aweighv1.ScopesRequest{}) }, "k"},
		"topology":  {func(c methods) error { return asks(c.Topology, ctx, &aweighv1.TopologyRequest{}) }, ""},
		"motions":   {func(c methods) error { return asks(c.Motions, ctx, &aweighv1.MotionsRequest{}) }, ""},
		"motion":    {func(c methods) error { return asks(c.Motion, ctx, &aweighv1.MotionRequest{Id: id}) }, "k"}, // none
		"watch of a motion": {func(c methods) error {
			return streamed(c.WatchMotion, ctx, &aweighv1.MotionRequest{Id: id})
		}, "k"},
		"export of a motion": {func(c methods) error {
			return asks(c.ExportMotion, ctx, &aweighv1.MotionRequest{Id: id})
		}, ""},
		"withdraw": {func(c methods) error {
			return asks(c.Withdraw, ctx, &aweighv1.WithdrawRequest{Motion: id})
		}, ""},
		"ballots": {func(c methods) error { return streamed(c.Ballots, ctx, &aweighv1.BallotsRequest{}) }, ""},
		"hand in": {func(c methods) error { return asks(c.HandIn, ctx, &aweighv1.HandInRequest{}) }, "k"},
		"users":   {func(c methods) error { return asks(c.Users, ctx, &aweighv1.UsersRequest{}) }, ""},
		"govern":  {func(c methods) error { return asks(c.Govern, ctx, &aweighv1.GovernRequest{}) }, "o"},
		"apply":   {func(c methods) error { return asks(c.Apply, ctx, &aweighv1.ApplyRequest{}) }, "o"},
		"vote":    {func(c methods) error { return asks(c.Vote, ctx, &aweighv1.VoteRequest{}) }, "o"},
		"disable users": {func(c methods) error {
			return asks(c.DisableUsers, ctx, &aweighv1.DisableUsersRequest{})
		}, "o"},
	} {
		for user, token := range tokens {
			may := user != "" && (user == "root" && x.may != "o" || x.may == "k" || strings.Contains(x.may, user[:1]) && user != "root")
			err := x.ask(p.api(token))
			refused := err != nil && (strings.Contains(err.Error(), "the roles of the caller's user do not permit this request") ||
				x.may == "o" && strings.Contains(err.Error(), "decisions are signed with the anchor's own key"))
			if nameless := connect.CodeOf(err) == connect.CodeUnauthenticated; (refused || nameless) == may || nameless != (user == "") {
				t.Errorf("%s by %q: %v, want permitted: %v", what, user, err, may)
			}
		}
	}
	if err := asks(p.api(tokens["root"]).Put, ctx, &aweighv1.PutRequest{Key: out}); err != nil {
		t.Fatal(err)
	}
	p.name(scope.Naming{Kind: scope.Bind, Key: out, To: []byte("/a/alias")})
	if err := asks(p.api(tokens["writer"]).Put, ctx, &aweighv1.PutRequest{Key: []byte("/a/alias")}); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("a put of an alias of a key that the user may not write: %v", err)
	}
	if code := connect.CodeOf(asks(p.api("bad").Range, ctx, &aweighv1.RangeRequest{Key: in})); code != connect.CodeUnauthenticated {
		t.Errorf("a bad token: %v", code)
	}
	owner := p.owner()
	if _, err := owner.Put(ctx, &aweighv1.PutRequest{Key: out}); err != nil {
		t.Errorf("the owner: %v", err)
	}
	upgraded, err := client.Dial(p.d.API()) // whose calls go by gRPC
	if err != nil {
		t.Fatal(err)
	}
	defer upgraded.Close()
	if _, err := upgraded.Put(ctx, &aweighv1.PutRequest{Key: in}); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("on an upgraded connection, without a user: %v", err)
	}
}

// TestWatchesEndWithTheirRight: at both ports a watch sends nothing of blocks after the one that took the right from
// its client, and ends.
func TestWatchesEndWithTheirRight(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	r := newRunning(t, 1)
	p := newPorts(t, r.on[0])
	early, err := p.api("").Watch(p.ctx, connect.NewRequest(&aweighv1.WatchRequest{Key: []byte("/a/1")}))
	if err != nil || !early.Receive() {
		t.Fatal(err, early.Err())
	}
	p.enable()
	root, reader := p.as(p.token("root")), p.token("reader")
	if early.Receive() || connect.CodeOf(early.Err()) != connect.CodeUnauthenticated {
		t.Errorf("a watch without a user, after users were enabled: %v, %v", early.Msg(), early.Err())
	}
	keys := etcdpb.NewKVClient(p.etcd)
	over, err := p.api(reader).Watch(p.ctx, connect.NewRequest(&aweighv1.WatchRequest{Key: []byte("/a/1")}))
	if err != nil || !over.Receive() {
		t.Fatal(err, over.Err())
	}
	ofEtcd, err := etcdpb.NewWatchClient(p.etcd).Watch(p.as(reader))
	if err != nil {
		t.Fatal(err)
	}
	create := &etcdpb.WatchRequest_CreateRequest{CreateRequest: &etcdpb.WatchCreateRequest{Key: []byte("/a/1")}}
	if err := ofEtcd.Send(&etcdpb.WatchRequest{RequestUnion: create}); err != nil {
		t.Fatal(err)
	}
	if r := must[*etcdpb.WatchResponse](t)(ofEtcd.Recv()); !r.Created || r.Canceled {
		t.Fatal(r)
	}
	must[*etcdpb.PutResponse](t)(keys.Put(root, put("/a/1")))
	if r := must[*etcdpb.WatchResponse](t)(ofEtcd.Recv()); len(r.Events) != 1 {
		t.Errorf("before: %v", r)
	}
	if !over.Receive() || len(over.Msg().Events) != 1 {
		t.Errorf("before: %v, %v", over.Msg(), over.Err())
	}
	users := etcdpb.NewAuthClient(p.etcd)
	must[*etcdpb.AuthRoleRevokePermissionResponse](t)(users.RoleRevokePermission(root, &etcdpb.AuthRoleRevokePermissionRequest{Role: "reader", Key: []byte("/a/"), RangeEnd: []byte("/a0")}))
	must[*etcdpb.PutResponse](t)(keys.Put(root, put("/a/1")))
	if r := must[*etcdpb.WatchResponse](t)(ofEtcd.Recv()); !r.Canceled || len(r.Events) > 0 || !strings.Contains(r.CancelReason, "permission denied") {
		t.Errorf("at etcd's port, after the right was revoked: %v", r)
	}
	if over.Receive() || connect.CodeOf(over.Err()) != connect.CodePermissionDenied {
		t.Errorf("at the API, after the right was revoked: %v, %v", over.Msg(), over.Err())
	}
}

// TestUsersFollowWhatTheyPropose: a user sees a motion, and hears how it ends, if it may read and write all of its
// keys.
func TestUsersFollowWhatTheyPropose(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	second, err := votes.GenerateKey(votes.Ed25519, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r := newRunning(t, 1, func(p *scope.Policy) {
		p.Approvals = []scope.Approval{{
			Matter: scope.Changes, Prefix: []byte("/"), Den: 1, Window: 5 * time.Minute, StepUp: true,
			Approvers: []scope.Approver{{Name: "second", Key: second.Public()}},
		}}
	})
	p := newPorts(t, r.on[0])
	p.enable()
	owner := p.owner()
	motion := func(put func() error) []byte {
		t.Helper()
		var waits *client.Pending
		if err := put(); !errors.As(err, &waits) {
			t.Fatalf("a put that has to wait: %v", err)
		}
		return waits.Motion
	}
	beyond := motion(func() error {
		_, err := owner.Put(p.ctx, &aweighv1.PutRequest{Key: []byte("/b/1"), Value: []byte("v")})
		return err
	})
	within := motion(func() error {
		_, err := owner.Put(p.ctx, &aweighv1.PutRequest{Key: []byte("/a/1"), Value: []byte("v")})
		return err
	})
	for user, may := range map[string]bool{"reader": false, "writer": false, "both": true, "root": true} {
		c := p.api(p.token(user))
		for what, err := range map[string]error{
			"sees":  asks(c.Motion, p.ctx, &aweighv1.MotionRequest{Id: within}),
			"hears": streamed(c.WatchMotion, p.ctx, &aweighv1.MotionRequest{Id: within}),
		} {
			if code := connect.CodeOf(err); may && err != nil || !may && code != connect.CodePermissionDenied {
				t.Errorf("%s %s a motion: %v", user, what, err)
			}
		}
		for what, err := range map[string]error{
			"sees":  asks(c.Motion, p.ctx, &aweighv1.MotionRequest{Id: beyond}),
			"hears": streamed(c.WatchMotion, p.ctx, &aweighv1.MotionRequest{Id: beyond}),
		} {
			if code := connect.CodeOf(err); user != "root" && code != connect.CodePermissionDenied {
				t.Errorf("%s %s a motion about keys that it may not read: %v", user, what, err)
			}
		}
	}
}

// TestTokensNeedUsers: while users are disabled, the node's API refuses callers with a token of etcd's users, and a
// token has no effect at etcd's port.
func TestTokensNeedUsers(t *testing.T) {
	t.Parallel()
	testshort.Skip(t)
	r := newRunning(t, 1)
	p := newPorts(t, r.on[0])
	p.enable()
	token, root := p.token("both"), p.token("root")
	must[*etcdpb.AuthDisableResponse](t)(etcdpb.NewAuthClient(p.etcd).AuthDisable(p.as(root), &etcdpb.AuthDisableRequest{}))
	key := []byte("/b/1") // of none of the user's roles
	for _, token := range []string{token, root} {
		err := asks(p.api(token).Put, p.ctx, &aweighv1.PutRequest{Key: key})
		if connect.CodeOf(err) != connect.CodePermissionDenied || !strings.Contains(err.Error(), "users are not enabled") {
			t.Errorf("a put with a token: %v", err)
		}
		if err := asks(p.api(token).WhoAmI, p.ctx, &aweighv1.WhoAmIRequest{}); err != nil {
			t.Errorf("a question about the caller itself: %v", err)
		}
	}
	must[*etcdpb.PutResponse](t)(etcdpb.NewKVClient(p.etcd).Put(p.as(token), put(string(key))))
	if err := asks(p.api("").Put, p.ctx, &aweighv1.PutRequest{Key: key}); err != nil {
		t.Errorf("a put without a token: %v", err)
	}
}

// TestTheLineageNamesTheCaller: a change through either port is on record with the caller that the port has found.
func TestTheLineageNamesTheCaller(t *testing.T) {
	t.Parallel()
	testshort.Skip(t)
	r := newRunning(t, 1)
	p := newPorts(t, r.on[0])
	p.enable()
	token := p.token("both")
	if err := asks(p.api(token).Put, p.ctx, &aweighv1.PutRequest{Key: []byte("/a/api")}); err != nil {
		t.Fatal(err)
	}
	must[*etcdpb.PutResponse](t)(etcdpb.NewKVClient(p.etcd).Put(p.as(token), put("/a/etcd")))
	owner := p.owner()
	must[*aweighv1.PutResponse](t)(owner.Put(p.ctx, &aweighv1.PutRequest{Key: []byte("/a/socket")}))
	for key, want := range map[string]string{"/a/api": "user:both", "/a/etcd": "user:both", "/a/socket": "local:"} {
		l, _, err := p.d.Node.Lineage(p.ctx, []byte(key), 10)
		if err != nil || len(l.Entries) != 1 || l.Entries[0].Class != lineage.Insert || !strings.HasPrefix(l.Entries[0].Caller, want) {
			t.Errorf("%s: %v, %v", key, l, err)
		}
	}
	var refused *connect.Error
	if err := asks(p.api(token+"x").Put, p.ctx, &aweighv1.PutRequest{Key: []byte("/a/api")}); !errors.As(err, &refused) || strings.Contains(err.Error(), token) {
		t.Errorf("a bad token: %v", err)
	}
}
