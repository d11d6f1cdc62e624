package etcd

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/etcd/auth"
	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/votes"
)

// as is a context of a user with a token.
func (w *world) as(t *testing.T, user string) context.Context {
	t.Helper()
	r, err := w.Authenticate(w.ctx, &etcdpb.AuthenticateRequest{Name: user, Password: "of " + user})
	if err != nil {
		t.Fatal(user, err)
	}
	return metadata.AppendToOutgoingContext(w.ctx, "token", r.Token)
}

// newUsers enables root, and reader and writer of /a/.
func newUsers(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, 1, Config{})
	do := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for role, permission := range map[string]etcdpb.Permission_Type{"reader": etcdpb.Permission_READ, "writer": etcdpb.Permission_WRITE} {
		do(w.RoleAdd(w.ctx, &etcdpb.AuthRoleAddRequest{Name: role}))
		do(w.RoleGrantPermission(w.ctx, &etcdpb.AuthRoleGrantPermissionRequest{Name: role, Perm: &etcdpb.Permission{PermType: permission, Key: []byte("/a/"), RangeEnd: []byte("/a0")}}))
		do(w.UserAdd(w.ctx, &etcdpb.AuthUserAddRequest{Name: role, Password: "of " + role}))
		do(w.UserGrantRole(w.ctx, &etcdpb.AuthUserGrantRoleRequest{User: role, Role: role}))
	}
	says(t, "without root", second(w.AuthEnable(w.ctx, &etcdpb.AuthEnableRequest{})), codes.FailedPrecondition, "etcdserver: root user does not exist")
	do(w.UserAdd(w.ctx, &etcdpb.AuthUserAddRequest{Name: "root", Password: "of root"}))
	says(t, "without its role", second(w.AuthEnable(w.ctx, &etcdpb.AuthEnableRequest{})), codes.FailedPrecondition, "etcdserver: root user does not have root role")
	do(w.UserGrantRole(w.ctx, &etcdpb.AuthUserGrantRoleRequest{User: "root", Role: "root"}))
	do(w.AuthEnable(w.ctx, &etcdpb.AuthEnableRequest{}))
	return w
}

// TestChangesOfUsersHoldAtAllNodes: a node that did not hear of a change of users yet refuses nothing that the change
// allows.
func TestChangesOfUsersHoldAtAllNodes(t *testing.T) {
	testshort.Skip(t)
	w := newUsers(t)
	other := w.light(t)
	for i := range 20 {
		testwait.Until(t, "the node knows that users are enabled", func() bool {
			return other.node.Root().LastHead().Access == w.node.Root().LastHead().Access
		})
		root := w.as(t, "root")
		if _, err := w.AuthDisable(root, &etcdpb.AuthDisableRequest{}); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			if _, err := other.Range(w.ctx, &etcdpb.RangeRequest{Key: []byte("/a/1")}); err != nil {
				t.Fatalf("round %d: a read without a user, after users were disabled at another node: %v", i, err)
			}
		} else if r := other.watching(t, w.ctx).create(&etcdpb.WatchCreateRequest{Key: []byte("/a/1")}); r.Canceled {
			t.Fatalf("round %d: a watch without a user, after users were disabled at another node: %v", i, r.CancelReason)
		}
		if _, err := w.AuthEnable(w.ctx, &etcdpb.AuthEnableRequest{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUsersAreHeldToTheirRoles: every call, by every user.
func TestUsersAreHeldToTheirRoles(t *testing.T) {
	testshort.Skip(t)
	w := newUsers(t)
	root, reader, writer := w.as(t, "root"), w.as(t, "reader"), w.as(t, "writer")
	in, out := []byte("/a/1"), []byte("/b/1")
	lease := func(key []byte) int64 {
		g, err := w.LeaseGrant(root, &etcdpb.LeaseGrantRequest{TTL: 600})
		if err == nil {
			_, err = w.Put(root, &etcdpb.PutRequest{Key: key, Value: []byte("leased"), Lease: g.ID})
		}
		if err != nil {
			t.Fatal(err)
		}
		return g.ID
	}
	theirs, others := lease([]byte("/a/leased")), lease([]byte("/b/leased"))
	reading := func(key []byte) *etcdpb.RequestOp {
		return &etcdpb.RequestOp{Request: &etcdpb.RequestOp_RequestRange{RequestRange: &etcdpb.RangeRequest{Key: key}}}
	}
	for _, c := range []struct {
		what    string
		call    func(ctx context.Context) error
		may     string // of r and w, and every named user: e
		private bool   // it succeeds once only, so root is not asked
	}{
		{"range", func(ctx context.Context) error { return second(w.Range(ctx, &etcdpb.RangeRequest{Key: in})) }, "r", false},
		{"range in parts", func(ctx context.Context) error {
			s, err := w.RangeStream(ctx, &etcdpb.RangeRequest{Key: in})
			if err == nil {
				_, err = s.Recv()
			}
			return err
		}, "r", false},
		{"range of all they have", func(ctx context.Context) error {
			return second(w.Range(ctx, &etcdpb.RangeRequest{Key: []byte("/a/"), RangeEnd: []byte("/a0")}))
		}, "r", false},
		{"range beyond", func(ctx context.Context) error {
			return second(w.Range(ctx, &etcdpb.RangeRequest{Key: []byte("/a/"), RangeEnd: []byte("/a1")}))
		}, "", false},
		{"range to the end", func(ctx context.Context) error {
			return second(w.Range(ctx, &etcdpb.RangeRequest{Key: []byte("/a/"), RangeEnd: []byte{0}}))
		}, "", false},
		{"put", func(ctx context.Context) error { return second(w.Put(ctx, &etcdpb.PutRequest{Key: in})) }, "w", false},
		{"put elsewhere", func(ctx context.Context) error { return second(w.Put(ctx, &etcdpb.PutRequest{Key: out})) }, "", false},
		{"put that reads", func(ctx context.Context) error {
			return second(w.Put(ctx, &etcdpb.PutRequest{Key: in, PrevKv: true}))
		}, "", false},
		{"put with a lease", func(ctx context.Context) error {
			return second(w.Put(ctx, &etcdpb.PutRequest{Key: in, Lease: theirs}))
		}, "w", false},
		{"put with others' lease", func(ctx context.Context) error {
			return second(w.Put(ctx, &etcdpb.PutRequest{Key: in, Lease: others}))
		}, "", false},
		{"delete", func(ctx context.Context) error {
			return second(w.DeleteRange(ctx, &etcdpb.DeleteRangeRequest{Key: []byte("/a/x"), RangeEnd: []byte("/a0")}))
		}, "w", false},
		{"delete all", func(ctx context.Context) error {
			return second(w.DeleteRange(ctx, &etcdpb.DeleteRangeRequest{Key: []byte("/c"), RangeEnd: []byte{0}}))
		}, "", false},
		{"txn that reads", func(ctx context.Context) error {
			return second(w.Txn(ctx, &etcdpb.TxnRequest{Success: []*etcdpb.RequestOp{reading(in)}}))
		}, "r", false},
		{"txn that compares", func(ctx context.Context) error {
			return second(w.Txn(ctx, &etcdpb.TxnRequest{Compare: []*etcdpb.Compare{createdAt(string(out), 0)}, Success: []*etcdpb.RequestOp{reading(in)}}))
		}, "", false},
		{"txn that writes", func(ctx context.Context) error {
			return second(w.Txn(ctx, &etcdpb.TxnRequest{Success: []*etcdpb.RequestOp{putOp(string(in))}}))
		}, "w", false},
		{"txn that writes elsewhere, if not", func(ctx context.Context) error {
			return second(w.Txn(ctx, &etcdpb.TxnRequest{Failure: []*etcdpb.RequestOp{putOp(string(out))}}))
		}, "", false},
		{"txn within", func(ctx context.Context) error {
			return second(w.Txn(ctx, &etcdpb.TxnRequest{Success: []*etcdpb.RequestOp{{Request: &etcdpb.RequestOp_RequestTxn{
				RequestTxn: &etcdpb.TxnRequest{Success: []*etcdpb.RequestOp{putOp(string(out))}},
			}}}}))
		}, "", false},
		{"watch", func(ctx context.Context) error { return w.mayWatch(ctx, in) }, "r", false},
		{"watch elsewhere", func(ctx context.Context) error { return w.mayWatch(ctx, out) }, "", false},
		{"grant", func(ctx context.Context) error {
			return second(w.LeaseGrant(ctx, &etcdpb.LeaseGrantRequest{TTL: 600}))
		}, "rw", false},
		{"keep alive", func(ctx context.Context) error { return w.mayKeep(ctx, theirs) }, "w", false},
		{"keep others' alive", func(ctx context.Context) error { return w.mayKeep(ctx, others) }, "", false},
		{"keys of a lease", func(ctx context.Context) error {
			return second(w.LeaseTimeToLive(ctx, &etcdpb.LeaseTimeToLiveRequest{ID: theirs, Keys: true}))
		}, "r", false},
		{"keys of others' lease", func(ctx context.Context) error {
			return second(w.LeaseTimeToLive(ctx, &etcdpb.LeaseTimeToLiveRequest{ID: others, Keys: true}))
		}, "", false},
		{"all leases", func(ctx context.Context) error {
			return second(w.LeaseLeases(ctx, &etcdpb.LeaseLeasesRequest{}))
		}, "", false},
		{"revoke others'", func(ctx context.Context) error {
			return second(w.LeaseRevoke(ctx, &etcdpb.LeaseRevokeRequest{ID: others}))
		}, "", true},
		{"lock", func(ctx context.Context) error {
			return second(w.Lock(ctx, &etcdpb.LockRequest{Name: []byte("/a/lock"), Lease: theirs}))
		}, "", false},
		{"lock with others' lease", func(ctx context.Context) error {
			return second(w.Lock(ctx, &etcdpb.LockRequest{Name: []byte("/a/lock2"), Lease: others}))
		}, "", false},
		{"proclaim what is another's", func(ctx context.Context) error {
			return second(w.Proclaim(ctx, &etcdpb.ProclaimRequest{Leader: &etcdpb.LeaderKey{Name: []byte("/a/x"), Key: []byte("/b/new"), Lease: theirs}, Value: []byte("mine")}))
		}, "", true},
		{"resign what is another's", func(ctx context.Context) error {
			return second(w.Resign(ctx, &etcdpb.ResignRequest{Leader: &etcdpb.LeaderKey{Name: []byte("/a/x"), Key: out}}))
		}, "", true},
		{"unlock what is another's", func(ctx context.Context) error {
			return second(w.Unlock(ctx, &etcdpb.UnlockRequest{Key: out}))
		}, "", true},
		{"campaign elsewhere", func(ctx context.Context) error {
			return second(w.Campaign(ctx, &etcdpb.CampaignRequest{Name: []byte("/b/vote"), Lease: theirs}))
		}, "", true},
		{"add a user", func(ctx context.Context) error {
			return second(w.UserAdd(ctx, &etcdpb.AuthUserAddRequest{Name: "x", Password: "x"}))
		}, "", true},
		{"take a role", func(ctx context.Context) error {
			return second(w.UserGrantRole(ctx, &etcdpb.AuthUserGrantRoleRequest{User: "reader", Role: "root"}))
		}, "", true},
		{"defragment", func(ctx context.Context) error {
			return second(w.Defragment(ctx, &etcdpb.DefragmentRequest{}))
		}, "", false},
		{"leader", func(ctx context.Context) error {
			return second(w.Leader(ctx, &etcdpb.LeaderRequest{Name: []byte("/b/vote")}))
		}, "", true},
		{"compact", func(ctx context.Context) error {
			return second(w.Compact(ctx, &etcdpb.CompactionRequest{Revision: 1}))
		}, "", true},
		{"status", func(ctx context.Context) error { return second(w.Status(ctx, &etcdpb.StatusRequest{})) }, "rw", false},
		{"members", func(ctx context.Context) error { return second(w.MemberList(ctx, &etcdpb.MemberListRequest{})) }, "rw", false},
		{"hash", func(ctx context.Context) error { return second(w.HashKV(ctx, &etcdpb.HashKVRequest{})) }, "", false},
		{"snapshot", func(ctx context.Context) error {
			s, err := w.Snapshot(ctx, &etcdpb.SnapshotRequest{})
			if err == nil {
				_, err = s.Recv()
			}
			return err
		}, "", false},
		{"users", func(ctx context.Context) error { return second(w.UserList(ctx, &etcdpb.AuthUserListRequest{})) }, "", false},
		{"a user", func(ctx context.Context) error {
			return second(w.UserGet(ctx, &etcdpb.AuthUserGetRequest{Name: "reader"}))
		}, "r", false},
		{"a role", func(ctx context.Context) error {
			return second(w.RoleGet(ctx, &etcdpb.AuthRoleGetRequest{Role: "writer"}))
		}, "w", false},
		{"another's password", func(ctx context.Context) error {
			return second(w.UserChangePassword(ctx, &etcdpb.AuthUserChangePasswordRequest{Name: "writer", Password: "other"}))
		}, "", true},
		{"disable", func(ctx context.Context) error { return second(w.AuthDisable(ctx, &etcdpb.AuthDisableRequest{})) }, "", true},
	} {
		says(t, c.what+" by nobody", c.call(w.ctx), codes.InvalidArgument, "etcdserver: user name is empty")
		for who, ctx := range map[string]context.Context{"r": reader, "w": writer} {
			if err := c.call(ctx); bytes.Contains([]byte(c.may), []byte(who)) {
				if err != nil {
					t.Errorf("%s by %s: %v", c.what, who, err)
				}
			} else {
				says(t, c.what+" by "+who, err, codes.PermissionDenied, "etcdserver: permission denied")
			}
		}
		if !c.private {
			if err := c.call(root); err != nil {
				t.Errorf("%s by root: %v", c.what, err)
			}
		}
	}
}

// mayWatch creates a watch, and ends it.
func (w *world) mayWatch(ctx context.Context, key []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := w.Watch(ctx)
	if err == nil {
		err = s.Send(&etcdpb.WatchRequest{RequestUnion: &etcdpb.WatchRequest_CreateRequest{CreateRequest: &etcdpb.WatchCreateRequest{Key: key}}})
	}
	if err != nil {
		return err
	}
	r, err := s.Recv()
	if err == nil && r.Canceled {
		for _, known := range []error{errDenied, auth.ErrUserEmpty} {
			if r.CancelReason == known.Error() {
				return known
			}
		}
		return fmt.Errorf("%s", r.CancelReason)
	}
	return err
}

func (w *world) mayKeep(ctx context.Context, id int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := w.LeaseKeepAlive(ctx)
	if err == nil {
		err = s.Send(&etcdpb.LeaseKeepAliveRequest{ID: id})
	}
	if err == nil {
		_, err = s.Recv()
	}
	return err
}

// token has the form of those that package auth makes.
type token struct {
	_         struct{} `cbor:",toarray"`
	Network   aweigh.NetworkID
	User      string
	Revision  int64
	Until     aweigh.Instant
	Node      votes.PublicKey
	Signature []byte
	Proof     []byte
}

// resigned is a token that a key signs after a change.
func resigned(t *testing.T, text string, key votes.PrivateKey, change func(*token)) string {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	var x token
	if err := canon.Decode(raw, &x); err != nil {
		t.Fatal(err)
	}
	change(&x)
	proof := x.Proof
	x.Signature, x.Proof = nil, nil
	x.Signature = key.Sign(votes.ContextToken, canon.Encode(x))
	x.Proof = proof
	return base64.RawURLEncoding.EncodeToString(canon.Encode(x))
}

// TestTokensOfOtherNodesTakeThePassword: the key of an anchor's node makes no token that other nodes accept, unless the
// node had the password of the user.
func TestTokensOfOtherNodesTakeThePassword(t *testing.T) {
	testshort.Skip(t)
	w := newUsers(t)
	root := w.as(t, "root")
	hash, err := bcrypt.GenerateFromPassword([]byte("of hashed"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.UserAdd(root, &etcdpb.AuthUserAddRequest{
		Name: "hashed", HashedPassword: base64.StdEncoding.EncodeToString(hash),
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.UserGrantRole(root, &etcdpb.AuthUserGrantRoleRequest{User: "hashed", Role: "reader"}); err != nil {
		t.Fatal(err)
	}
	other := w.light(t)
	testwait.Until(t, "the node knows the users", func() bool {
		return other.node.Root().LastHead().Access == w.node.Root().LastHead().Access
	})
	tokenOf := func(user string) string {
		r, err := w.Authenticate(w.ctx, &etcdpb.AuthenticateRequest{Name: user, Password: "of " + user})
		if err != nil {
			t.Fatal(err)
		}
		return r.Token
	}
	read := func(at *world, text string) error {
		ctx := metadata.AppendToOutgoingContext(w.ctx, "token", text)
		return second(at.Range(ctx, &etcdpb.RangeRequest{Key: []byte("/a/1")}))
	}
	for _, user := range []string{"root", "reader"} {
		for _, at := range []*world{w, other} {
			if err := read(at, tokenOf(user)); err != nil {
				t.Errorf("a token of %s: %v", user, err)
			}
		}
	}
	if err := read(w, tokenOf("hashed")); err != nil {
		t.Errorf("a user of whom the network has the hash alone, at the node that knows the password: %v", err)
	}
	reader := tokenOf("reader")
	for name, text := range map[string]string{
		"no proof":                     resigned(t, reader, w.identity, func(x *token) { x.Proof = nil }),
		"root with the reader's proof": resigned(t, reader, w.identity, func(x *token) { x.User = "root" }),
		"root with the node's own proof": resigned(t, reader, w.identity, func(x *token) {
			x.User, x.Signature, x.Proof = "root", nil, nil
			x.Proof = w.identity.Sign(votes.ContextToken, canon.Encode(*x))
		}),
		"a later end":           resigned(t, reader, w.identity, func(x *token) { x.Until = x.Until.Add(time.Second) }),
		"a user with no key":    tokenOf("hashed"),
		"a user that is none":   resigned(t, reader, w.identity, func(x *token) { x.User = "nobody" }),
		"a later revision":      resigned(t, reader, w.identity, func(x *token) { x.Revision++ }),
		"a proof of other size": resigned(t, reader, w.identity, func(x *token) { x.Proof = x.Proof[1:] }),
	} {
		says(t, name, read(other, text), codes.Unauthenticated, "etcdserver: invalid auth token")
	}
}

// TestTokensThatAreNone: a token that no node of the network signed, or for another user,
// network or time, is refused; and a token is invalid once users or roles have changed.
func TestTokensThatAreNone(t *testing.T) {
	testshort.Skip(t)
	w := newUsers(t)
	read := func(text string) error {
		return second(w.Range(metadata.AppendToOutgoingContext(w.ctx, "token", text), &etcdpb.RangeRequest{Key: []byte("/a/1")}))
	}
	good, err := w.Authenticate(w.ctx, &etcdpb.AuthenticateRequest{Name: "reader", Password: "of reader"})
	if err != nil {
		t.Fatal(err)
	}
	if err := read(good.Token); err != nil {
		t.Fatal(err)
	}
	other, err := votes.KeyFromSeed("ed25519", bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	resigned := func(key votes.PrivateKey, change func(*token)) string { return resigned(t, good.Token, key, change) }
	own := w.identity
	for name, text := range map[string]string{
		"nothing":           "",
		"noise":             "noise",
		"another user":      resigned(other, func(x *token) { x.User = "root" }),
		"another node's":    resigned(other, func(x *token) { x.Node = other.Public() }),
		"another network's": resigned(own, func(x *token) { x.Network[0] ^= 1 }),
		"one for ever":      resigned(own, func(x *token) { x.Until = aweigh.InstantOf(time.Now().Add(time.Hour)) }),
		"an old one":        resigned(own, func(x *token) { x.Until = aweigh.InstantOf(time.Now().Add(-time.Second)) }),
	} {
		says(t, name, read(text), codes.Unauthenticated, "etcdserver: invalid auth token")
	}
	says(t, "a deleted user's", read(resigned(own, func(x *token) { x.User = "nobody" })), codes.Unauthenticated, "etcdserver: invalid auth token")
	for _, who := range [][2]string{{"reader", "of writer"}, {"reader", ""}, {"nobody", ""}, {"", ""}} {
		says(t, fmt.Sprint("a password of ", who), second(w.Authenticate(w.ctx, &etcdpb.AuthenticateRequest{Name: who[0], Password: who[1]})),
			codes.InvalidArgument, "etcdserver: authentication failed, invalid user ID or password")
	}
	root := w.as(t, "root")
	if _, err := w.RoleAdd(root, &etcdpb.AuthRoleAddRequest{Name: "another"}); err != nil {
		t.Fatal(err)
	}
	if err := read(good.Token); err != nil {
		t.Errorf("after a change that is not about the user: %v", err)
	}
	if _, err := w.UserChangePassword(root, &etcdpb.AuthUserChangePasswordRequest{Name: "reader", Password: "another"}); err != nil {
		t.Fatal(err)
	}
	says(t, "from before the password", read(good.Token), codes.Unauthenticated, "etcdserver: invalid auth token")
}

// TestDeletedUsersClientsAreRefused: a client that is connected, and watches, when its user is deleted has its token
// refused and its watch ended, as etcd does; its password is refused; and one that is created anew under the name gets
// no token's rights back.
func TestDeletedUsersClientsAreRefused(t *testing.T) {
	t.Parallel()
	w := newUsers(t)
	live, root := w.as(t, "reader"), w.as(t, "root")
	read := func() error { return second(w.Range(live, &etcdpb.RangeRequest{Key: []byte("/a/1")})) }
	if err := read(); err != nil {
		t.Fatal(err)
	}
	s, err := w.Watch(live)
	if err == nil {
		err = s.Send(&etcdpb.WatchRequest{RequestUnion: &etcdpb.WatchRequest_CreateRequest{CreateRequest: &etcdpb.WatchCreateRequest{Key: []byte("/a/1")}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Recv(); err != nil || !got.Created {
		t.Fatalf("a watch: %v, %v", got, err)
	}
	if _, err := w.UserDelete(root, &etcdpb.AuthUserDeleteRequest{Name: "reader"}); err != nil {
		t.Fatal(err)
	}
	says(t, "its token", read(), codes.Unauthenticated, "etcdserver: invalid auth token")
	if got, err := s.Recv(); err == nil && !got.Canceled {
		t.Errorf("its watch gets %v", got)
	}
	says(t, "its password", second(w.Authenticate(w.ctx, &etcdpb.AuthenticateRequest{Name: "reader", Password: "of reader"})),
		codes.InvalidArgument, "etcdserver: authentication failed, invalid user ID or password")
	if _, err := w.UserAdd(root, &etcdpb.AuthUserAddRequest{Name: "reader", Password: "of reader"}); err != nil {
		t.Fatal(err)
	}
	says(t, "its token, under another user of the name", read(), codes.Unauthenticated, "etcdserver: invalid auth token")
}

// TestWatchesEndWithThePassword: a watch outlasts the token that it began with, but not the password.
func TestWatchesEndWithThePassword(t *testing.T) {
	testshort.Skip(t)
	w := newUsers(t)
	s := w.watching(t, w.as(t, "reader"))
	if got := s.create(&etcdpb.WatchCreateRequest{Key: []byte("/a/1")}); got.Canceled {
		t.Fatal(got.CancelReason)
	}
	if _, err := w.UserChangePassword(w.as(t, "root"), &etcdpb.AuthUserChangePasswordRequest{Name: "reader", Password: "another"}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Recv(); err == nil && !got.Canceled {
		t.Errorf("its watch gets %v", got)
	}
}

// TestMalformedWatchesOfUsers: an invalid watch is refused as such, for every user.
func TestMalformedWatchesOfUsers(t *testing.T) {
	t.Parallel()
	w := newUsers(t)
	for _, ctx := range []context.Context{w.ctx, w.as(t, "reader"), w.as(t, "root")} {
		for _, r := range []*etcdpb.WatchCreateRequest{{Key: []byte("b"), RangeEnd: []byte("a")}, {Key: []byte("/a/1"), StartRevision: -1}, {}} {
			s, err := w.Watch(ctx)
			if err == nil {
				err = s.Send(&etcdpb.WatchRequest{RequestUnion: &etcdpb.WatchRequest_CreateRequest{CreateRequest: r}})
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, err := s.Recv(); err != nil || r.Key != nil && !got.Canceled {
				t.Errorf("%v: %v, %v", r, got, err)
			}
		}
	}
}
