package etcd

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// TestPermissionsFollowAliases: a user who may write below a prefix changes no object that has an alias elsewhere, by
// any call; and what it may do with keys that have no such alias stays the same.
func TestPermissionsFollowAliases(t *testing.T) {
	t.Parallel()
	w := newUsers(t)
	root, writer := w.as(t, "root"), w.as(t, "writer")
	put := func(ctx context.Context, key string) error {
		return second(w.Put(ctx, &etcdpb.PutRequest{Key: []byte(key), Value: []byte("1")}))
	}
	for _, key := range []string{"/sec/a", "/a/own"} {
		if err := put(root, key); err != nil {
			t.Fatal(err)
		}
	}
	bind := func(key, to string) {
		t.Helper()
		r, err := w.node.Naming(w.ctx, scope.Naming{Kind: scope.Bind, Key: []byte(key), To: []byte(to)}, node.Once{})
		if err == nil {
			err = failure(r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	lease, err := w.LeaseGrant(root, &etcdpb.LeaseGrantRequest{TTL: 600})
	if err != nil {
		t.Fatal(err)
	}
	claimed := fmt.Sprintf("/a/lock/%x", lease.ID) // where a lock puts its key
	bind("/sec/a", "/a/x")
	bind("/sec/a", claimed)
	bind("/a/own", "/a/own too")
	putting := func(key string) *etcdpb.RequestOp {
		return &etcdpb.RequestOp{Request: &etcdpb.RequestOp_RequestPut{RequestPut: &etcdpb.PutRequest{Key: []byte(key), Value: []byte("2")}}}
	}
	for what, call := range map[string]func() error{
		"put":        func() error { return put(writer, "/a/x") },
		"put leased": func() error { return second(w.Put(writer, &etcdpb.PutRequest{Key: []byte("/a/x"), Lease: lease.ID})) },
		"transaction": func() error {
			return second(w.Txn(writer, &etcdpb.TxnRequest{Success: []*etcdpb.RequestOp{putting("/a/own"), putting("/a/x")}}))
		},
		"other branch": func() error {
			return second(w.Txn(writer, &etcdpb.TxnRequest{
				Compare: []*etcdpb.Compare{{Target: etcdpb.Compare_VERSION, Key: []byte("/a/own"), TargetUnion: &etcdpb.Compare_Version{Version: 7}}},
				Failure: []*etcdpb.RequestOp{putting("/a/x")},
			}))
		},
		"transaction within": func() error {
			return second(w.Txn(writer, &etcdpb.TxnRequest{Success: []*etcdpb.RequestOp{{Request: &etcdpb.RequestOp_RequestTxn{
				RequestTxn: &etcdpb.TxnRequest{Success: []*etcdpb.RequestOp{putting("/a/x")}},
			}}}}))
		},
		"proclamation": func() error {
			r, err := w.Range(root, &etcdpb.RangeRequest{Key: []byte(claimed)})
			if err != nil {
				return err
			}
			return second(w.Proclaim(writer, &etcdpb.ProclaimRequest{Value: []byte("2"), Leader: &etcdpb.LeaderKey{
				Name: []byte("/a/lock"), Key: []byte(claimed), Rev: r.Kvs[0].CreateRevision, Lease: lease.ID,
			}}))
		},
	} {
		says(t, what, call(), codes.PermissionDenied, "etcdserver: permission denied")
	}
	r, err := w.Range(root, &etcdpb.RangeRequest{Key: []byte("/"), RangeEnd: []byte{0}})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Kvs {
		if string(v.Value) != "1" || v.Lease != 0 {
			t.Errorf("%q is %q, with lease %d", v.Key, v.Value, v.Lease)
		}
	}
	// What it may write under every alias, it may write; and it may take an alias away that is its own.
	for _, err := range []error{
		put(writer, "/a/own"), put(writer, "/a/new"), put(root, "/a/x"),
		second(w.Txn(writer, &etcdpb.TxnRequest{Success: []*etcdpb.RequestOp{putting("/a/own too")}})),
		second(w.DeleteRange(writer, &etcdpb.DeleteRangeRequest{Key: []byte("/a/x")})), put(writer, "/a/x"),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if r, err := w.Range(root, &etcdpb.RangeRequest{Key: []byte("/sec/a")}); err != nil || len(r.Kvs) != 1 || string(r.Kvs[0].Value) != "1" {
		t.Errorf("%v, %v", r, err)
	}
}
