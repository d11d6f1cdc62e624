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
