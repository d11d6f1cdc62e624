package oidc

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestSettings(t *testing.T) {
	all, err := DecodeIssuers([]byte(`
- issuer: https://issuer.example/realm
- issuer: https://ci.example
  audience: aweigh
  name-claim: repository
  required-claims: {environment: [prod], ref: [refs/heads/main, refs/heads/next]}
  algorithms: [ES384, EdDSA]
  ca: /etc/ci.pem
`))
	if err != nil || len(all) != 2 || len(all[1].RequiredClaims["ref"]) != 2 || all[1].NameClaim != "repository" || all[1].CA != "/etc/ci.pem" {
		t.Fatalf("%+v, %v", all, err)
	}
	d := all[0].withDefaults("net")
	if got := fmt.Sprint(d.Audience, d.NameClaim, d.Algorithms); got != "netsub[RS256 ES256]" {
		t.Errorf("defaults: %s", got)
	}
	if all, err := DecodeIssuers(nil); err != nil || len(all) != 0 {
		t.Errorf("of nothing: %v, %v", all, err)
	}
	for _, text := range []string{
		"issuer: https://a.example", "- issuer: http://a.example", "- issuer: https://", "- issuer: https://a.example?x", "- issuer: https://a.example#x",
		"- issuer: https://u@a.example", "- issuer: a.example", "- {}", "- issuer: https://a.example\n- issuer: https://a.example",
		"- {issuer: https://a.example, algorithms: [HS256]}", "- {issuer: https://a.example, algorithms: [none]}", "- {issuer: https://a.example, audiences: x}",
		"- {issuer: https://a.example, required-claims: {a: []}}", "- issuer: https://a.example/" + strings.Repeat("a", maxIssuer),
		strings.Repeat("- issuer: https://a.example\n", maxIssuers+1), strings.Repeat("#", maxSettings+1),
	} {
		if _, err := DecodeIssuers([]byte(text)); !errors.Is(err, ErrIssuer) {
			t.Errorf("%.60q: %v", text, err)
		}
	}
	if _, err := New(Config{Issuers: []Issuer{{URL: "https://a.example", CA: t.TempDir() + "/none"}}}); !errors.Is(err, ErrIssuer) {
		t.Errorf("without the file of certificates: %v", err)
	}
}
