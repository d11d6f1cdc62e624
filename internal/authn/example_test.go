package authn_test

import (
	"context"
	"net"
	"net/http"

	"google.golang.org/grpc"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/authn"
	"github.com/aweigh/aweigh/internal/authn/oidc"
)

// One row serves all ports of a node: each is wrapped in a line.
func Example() {
	var (
		network aweigh.NetworkID
		api     http.Handler
		ctx     context.Context
		users   = func(ctx context.Context, token string) (user string, err error) { return "", nil }
		peer    = func(net.Conn) (uid uint32) { return 0 }
		counts  authn.Counts
	)
	tokens, err := oidc.New(oidc.Config{Network: network, Issuers: []oidc.Issuer{{URL: "https://issuer.example"}}})
	if err != nil {
		return
	}
	row := &authn.Row{
		Authenticators: []authn.Authenticator{tokens, authn.Users(users), authn.Certs{}, authn.Sockets{}},
		Count:          counts.Count,
	}
	_ = http.Server{
		Handler:     row.Middleware(api),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return authn.WithUID(ctx, peer(c)) },
	}
	_ = grpc.NewServer(grpc.UnaryInterceptor(row.Unary), grpc.StreamInterceptor(row.Stream))
	tokens.Run(ctx) // until ctx ends
}
