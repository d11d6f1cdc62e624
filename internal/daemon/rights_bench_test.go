package daemon

import (
	"context"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/aweigh/aweigh/etcd/auth"
	"github.com/aweigh/aweigh/internal/authn"
	"github.com/aweigh/aweigh/scope"
)

// BenchmarkCaller is what a put of a user with a token costs beside the put itself: to find the caller, and to judge
// it.
func BenchmarkCaller(b *testing.B) {
	r := newRunning(b, 1)
	p := newPorts(b, r.on[0])
	p.enable()
	who, token := r.on[0].callers, p.token("both")
	row := who.row(true)
	ctx := metadata.NewIncomingContext(context.Background(), metadata.Pairs("token", token, "user-agent", "grpc-go", ":authority", "x"))
	t := &scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte("/a/1")}}}
	for b.Loop() {
		ctx, refused := row.Identify(ctx, authn.OfCall(ctx))
		if refused != nil {
			b.Fatal(refused)
		}
		g, err := who.guard.Permit(ctx, false, func(r *auth.Rights) error { return who.guard.MayTxn(ctx, r, t) })
		if err != nil || g.By == nil {
			b.Fatal(g, err)
		}
	}
}
