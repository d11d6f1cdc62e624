package etcd

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/scope"
)

// TestRulesDenyEtcdsClients: what the policy's rule about write forbids, is to them what
// etcd's own permissions are.
func TestRulesDenyEtcdsClients(t *testing.T) {
	w := newWorld(t, 1, Config{}, func(p *scope.Policy) {
		p.Actions = action.Table{{Verb: "write", Class: action.Write, When: "object.key != 'safe'"}}
	})
	if _, err := w.Put(w.ctx, &etcdpb.PutRequest{Key: []byte("free"), Value: []byte("1")}); err != nil {
		t.Error(err)
	}
	_, err := w.Put(w.ctx, &etcdpb.PutRequest{Key: []byte("safe"), Value: []byte("1")})
	if s, _ := status.FromError(err); s.Code() != codes.PermissionDenied || s.Message() != "etcdserver: permission denied" {
		t.Errorf("%v", err)
	}
}

// TestQuotasAreInEtcdsWords: bytes beyond the quota of the node's entry are no space, and all else that is beyond are
// too many requests.
func TestQuotasAreInEtcdsWords(t *testing.T) {
	w := newWorld(t, 1, Config{}, func(p *scope.Policy) { p.Authors[0].Quota = scope.Quota{Bytes: 100, Leases: 1, Rate: 1} })
	says := func(err error, text string) {
		t.Helper()
		if s, _ := status.FromError(err); s.Code() != codes.ResourceExhausted || s.Message() != text {
			t.Errorf("%v, want %s", err, text)
		}
	}
	_, err := w.Put(w.ctx, &etcdpb.PutRequest{Key: []byte("k"), Value: make([]byte, 100)})
	says(err, "etcdserver: mvcc: database space exceeded")
	if _, err := w.LeaseGrant(w.ctx, &etcdpb.LeaseGrantRequest{ID: 1, TTL: 100}); err != nil {
		t.Fatal(err)
	}
	_, err = w.LeaseGrant(w.ctx, &etcdpb.LeaseGrantRequest{ID: 2, TTL: 100})
	says(err, "etcdserver: too many requests")
	for range 50 {
		if _, err = w.Put(w.ctx, &etcdpb.PutRequest{Key: []byte("k"), Value: []byte("v")}); err != nil {
			break
		}
	}
	says(err, "etcdserver: too many requests")
}
