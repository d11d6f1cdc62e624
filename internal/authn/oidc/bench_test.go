package oidc

import (
	"testing"

	"github.com/aweigh/aweigh/internal/authn"
	"github.com/aweigh/aweigh/internal/authn/testissuer"
)

// BenchmarkToken is the cost of a request whose token has a verdict, and of one whose token has none yet.
func BenchmarkToken(b *testing.B) {
	i := testissuer.New(b)
	i.Key("RS256", "RS256")
	i.Key("ES256", "ES256")
	i.Publish("RS256", "ES256")
	for _, alg := range []string{"RS256", "ES256"} {
		n := start(b, quick, Issuer{URL: i.URL, CA: i.CA})
		token := i.Sign(alg, i.Claims(network.String(), n.clock.now(), map[string]any{"groups": []string{"registry-writers", "registry-readers"}}))
		r := bearer(token)
		check := func(b *testing.B) {
			if _, refused := n.Authenticate(b.Context(), r); refused != nil {
				b.Fatal(refused)
			}
		}
		check(b)
		b.Run(alg+"/verdict", func(b *testing.B) {
			b.ReportAllocs()
			b.ReportMetric(float64(len(token)), "token-bytes")
			for b.Loop() {
				check(b)
			}
		})
		b.Run(alg+"/new", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				n.verdicts.all.Purge()
				check(b)
			}
		})
	}
	b.Run("refused", func(b *testing.B) {
		n := start(b, quick, Issuer{URL: i.URL, CA: i.CA})
		row := authn.Row{Authenticators: []authn.Authenticator{n}}
		r := bearer(i.Sign("ES256", i.Claims("another", n.clock.now(), nil)))
		b.ReportAllocs()
		for b.Loop() {
			if _, refused := row.Authenticate(b.Context(), r); refused == nil {
				b.Fatal("accepted")
			}
		}
	})
}
