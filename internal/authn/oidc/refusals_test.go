package oidc

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/authn/testissuer"
)

// TestTokensAndRefusals: a table of tokens, each with the identity or the reason of the refusal.
func TestTokensAndRefusals(t *testing.T) {
	i := testissuer.New(t)
	i.Key("rsa", "RS256")
	i.Key("ec", "ES256")
	i.Key("p384", "ES384")
	i.Key("withdrawn", "ES256")
	i.Key("ed", "EdDSA")
	i.Publish("rsa", "ec", "p384", "ed")
	other := testissuer.New(t)
	other.Key("rsa", "RS256")
	n := start(t, quick, Issuer{URL: i.URL, CA: i.CA, RequiredClaims: map[string][]string{"env": {"prod", "test"}}},
		Issuer{URL: other.URL, CA: other.CA, NameClaim: "email", Algorithms: []string{"RS256", "PS256", "EdDSA"}, Audience: "aweigh"})
	other.Publish("rsa")
	now := n.clock.now()
	audience := network.String()
	good := func(others map[string]any) map[string]any {
		c := i.Claims(audience, now, map[string]any{"env": "prod"})
		for k, v := range others {
			if c[k] = v; v == nil {
				delete(c, k)
			}
		}
		return c
	}
	raw := func(header, claims string) string {
		e := base64.RawURLEncoding.EncodeToString
		return e([]byte(header)) + "." + e([]byte(claims)) + "." + e([]byte("signature"))
	}
	alice := "oidc:" + i.URL + "#alice"
	mail := func(others map[string]any) map[string]any { return other.Claims("aweigh", now, others) }
	token := i.Sign("ec", good(nil))
	parts := strings.Split(token, ".")
	seconds := func(d time.Duration) int64 { return now.Add(d).Unix() }
	type entries map[string]any
	pub, err := x509.MarshalPKIXPublicKey(i.Public("rsa"))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ what, token, want string }{
		{"RS256", i.Sign("rsa", good(nil)), alice},
		{"ES256", token, alice},
		{"again, from the verdicts", token, alice},
		{"an access token", i.Sign("ec", good(nil), "typ", "at+jwt"), alice},
		{"among several audiences", i.Sign("ec", good(entries{"aud": []string{"x", audience}})), alice},
		{"a required claim that is a list", i.Sign("ec", good(entries{"env": []any{"x", "test"}})), alice},
		{"a moment after the end", i.Sign("ec", good(entries{"exp": seconds(-skew + 2*time.Second)})), alice},
		{"a moment before the start", i.Sign("ec", good(entries{"nbf": seconds(skew - 2*time.Second)})), alice},
		{"a name with a hash", i.Sign("ec", good(entries{"sub": "repo:corp/x#1"})), "oidc:" + i.URL + "#repo:corp/x#1"},
		{"an email address", other.Sign("rsa", mail(entries{"email": "a@b.example", "email_verified": true})), "oidc:" + other.URL + "#a@b.example"},

		{"not verified", other.Sign("rsa", mail(entries{"email": "a@b.example", "email_verified": false})), "claims"},
		{"perhaps verified", other.Sign("rsa", mail(entries{"email": "a@b.example"})), "claims"},
		{"without an email address", other.Sign("rsa", mail(entries{"email_verified": true})), "name"},
		{"for another network", i.Sign("ec", good(entries{"aud": aweigh.Sum(nil).String()})), "audience"},
		{"for no audience", i.Sign("ec", good(entries{"aud": nil})), "audience"},
		{"an audience in other case", i.Sign("ec", good(entries{"aud": "x", "AUD": audience})), "audience"},
		{"the audience of another issuer", other.Sign("rsa", other.Claims(audience, now, nil)), "audience"},
		{"expired", i.Sign("ec", good(entries{"exp": seconds(-skew)})), "expired"},
		{"without an end", i.Sign("ec", good(entries{"exp": nil})), "malformed"},
		{"an end that is a text", i.Sign("ec", good(entries{"exp": "2099"})), "malformed"},
		{"an end beyond all times", i.Sign("ec", good(entries{"exp": 1e300})), "malformed"},
		{"an end before all times", i.Sign("ec", good(entries{"exp": -1e18})), "malformed"},
		{"not yet valid", i.Sign("ec", good(entries{"nbf": seconds(skew + 2*time.Second)})), "early"},
		{"issued in the future", i.Sign("ec", good(entries{"iat": seconds(skew + 2*time.Second)})), "early"},
		{"without a required claim", i.Sign("ec", good(entries{"env": nil})), "claims"},
		{"another value of a required claim", i.Sign("ec", good(entries{"env": "dev"})), "claims"},
		{"without a name", i.Sign("ec", good(entries{"sub": nil})), "name"},
		{"a name in other case", i.Sign("ec", good(entries{"sub": nil, "SUB": "alice"})), "name"},
		{"an empty name", i.Sign("ec", good(entries{"sub": ""})), "name"},
		{"a number as name", i.Sign("ec", good(entries{"sub": 7})), "malformed"},
		{"a control character", i.Sign("ec", good(entries{"sub": "a\nb"})), "name"},
		{"a long name", i.Sign("ec", good(entries{"sub": strings.Repeat("a", 256)})), "name"},
		{"another issuer", i.Sign("ec", good(entries{"iss": "https://elsewhere.example"})), "issuer"},
		{"no issuer", i.Sign("ec", good(entries{"iss": nil})), "issuer"},
		{"signed by one issuer in another's name", other.Sign("rsa", good(nil)), "signature"},
		{"a key that is not published", i.Sign("withdrawn", good(nil)), "key"},
		{"another key under a published ID", testissuer.SignWith(t, "ES256", newKey(t), "ec", good(nil)), "signature"},
		{"ES384 is not permitted", i.Sign("p384", good(nil)), "algorithm"},
		{"EdDSA is not permitted", i.Sign("ed", good(nil)), "algorithm"},
		{"HS256 with the public key as secret", testissuer.SignWith(t, "HS256", pub, "rsa", good(nil)), "algorithm"},
		{"none", strings.TrimSuffix(raw(`{"alg":"none"}`, mustJSON(good(nil))), "."+base64.RawURLEncoding.EncodeToString([]byte("signature"))) + ".", "malformed"},
		{"none with a signature", raw(`{"alg":"none","kid":"ec"}`, mustJSON(good(nil))), "algorithm"},
		{"None", raw(`{"alg":"None","kid":"ec"}`, mustJSON(good(nil))), "algorithm"},
		{"no algorithm", raw(`{"kid":"ec"}`, mustJSON(good(nil))), "algorithm"},
		{"another algorithm than the key's", raw(`{"alg":"ES256","kid":"rsa"}`, mustJSON(good(nil))), "key"},
		{"other claims under the signature", parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(mustJSON(good(entries{"sub": "root"})))) + "." + parts[2], "signature"},
		{"cut off", token[:len(token)-8], "signature"},
		{"one byte more", token + "A", "signature"},
		{"a logout token", i.Sign("ec", good(nil), "typ", "logout+jwt"), "malformed"},
		{"an extension", raw(`{"alg":"ES256","kid":"ec","crit":["b64"],"b64":false}`, mustJSON(good(nil))), "malformed"},
		{"four parts", token + ".x", "unknown"},
		{"no parts", "..", "malformed"},
		{"not base64", "{}.{}.{}", "malformed"},
		{"not JSON", raw("x", "y"), "malformed"},
		{"JSON null", raw("null", "null"), "malformed"},
		{"a list", raw(`[]`, `[]`), "malformed"},
		{"an algorithm that is a number", raw(`{"alg":1}`, `{}`), "malformed"},
		{"huge", i.Sign("ec", good(entries{"groups": strings.Repeat("x", maxToken)})), "oversized"},
		{"claims in claims", i.Sign("ec", good(entries{"_claim_names": entries{"x": "y"}})), "malformed"},
	} {
		if got := n.ask(t, x.token); got != x.want {
			t.Errorf("%s: got %s, want %s", x.what, got, x.want)
		}
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	return testissuer.Generate(t, "ES256").(*ecdsa.PrivateKey)
}

func mustJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// TestTokensEndByTheBlocksTime: a node whose clock is behind takes no token that ended before the newest final block.
func TestTokensEndByTheBlocksTime(t *testing.T) {
	i := testissuer.New(t)
	i.Key("a", "ES256")
	i.Publish("a")
	n := start(t, quick, Issuer{URL: i.URL, CA: i.CA})
	real := n.clock.now()
	claims := i.Claims(network.String(), real.Add(-time.Hour-5*time.Minute), nil)
	n.clock.add(-time.Hour)
	token, alice := i.Sign("a", claims), "oidc:"+i.URL+"#alice"
	if got := n.ask(t, token); got != alice {
		t.Fatalf("a token that is good by all clocks: %s", got)
	}
	cfg := Config{Passed: func() time.Time { return real }}
	n.now = cfg.later(n.clock.now)
	if got := n.ask(t, token); got != "expired" {
		t.Errorf("a token that ended before the newest block: %s", got)
	}
	if got := n.ask(t, i.Sign("a", i.Claims(network.String(), real, nil))); got != alice {
		t.Errorf("one that did not: %s", got)
	}
	n.clock.add(2 * time.Hour)
	if got := n.ask(t, i.Sign("a", i.Claims(network.String(), n.clock.now(), nil))); got != alice {
		t.Errorf("one by a clock that is ahead of the block: %s", got)
	}
}
