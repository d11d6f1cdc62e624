package oidc

import (
	"crypto/ecdsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/aweigh/aweigh/internal/authn"
	"github.com/aweigh/aweigh/internal/authn/testissuer"
)

// FuzzToken: any text is a token or errMalformed, and go-jose takes no token that parse refuses for its form: so both
// see the same algorithm and key.
func FuzzToken(f *testing.F) {
	e := base64.RawURLEncoding.EncodeToString
	for _, x := range [][2]string{
		{`{"alg":"ES256","kid":"a"}`, `{"iss":"https://i"}`}, {`{"alg":"none"}`, `{}`}, {`{"alg":1}`, `[]`}, {`{"alg":"ES256","kid":1}`, `{}`}, {`{"ALG":"ES256"}`, `null`},
		{`{"alg":"ES256","alg":"HS256"}`, `{}`}, {`{"alg":"ES256","crit":["b64"],"b64":false}`, `{}`},
	} {
		f.Add(e([]byte(x[0])) + "." + e([]byte(x[1])) + "." + e([]byte("signature")))
	}
	f.Add("..")
	f.Add("a.b.c")
	f.Fuzz(func(t *testing.T, token string) {
		u, err := parse(token)
		if err != nil {
			if !errors.Is(err, errMalformed) || u != (unverified{}) {
				t.Fatalf("%q: %+v, %v", token, u, err)
			}
			return
		}
		jws, err := jose.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256, jose.RS256, jose.HS256, jose.EdDSA})
		if err == nil && (jws.Signatures[0].Header.Algorithm != u.alg || jws.Signatures[0].Header.KeyID != u.key) {
			t.Fatalf("%q: read as %+v, by go-jose as %+v", token, u, jws.Signatures[0].Header)
		}
	})
}

// FuzzKeySet: any text is a set of usable keys, or an error.
func FuzzKeySet(f *testing.F) {
	key := testissuer.Generate(f, "ES256").(*ecdsa.PrivateKey)
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "a", Use: "sig"}, {Key: key, KeyID: "private"}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(set)
	f.Add([]byte(`{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"},{"kty":"oct","k":"AA"},{"kty":"OKP","crv":"Ed25519","x":"AA"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := parseKeys(text)
		if err == nil && (len(all) == 0 || len(all) > maxKeys) {
			t.Fatalf("%d keys of %q", len(all), text)
		}
		s := &keySet{keys: all}
		for _, k := range all {
			if !k.usable() {
				t.Fatalf("%+v is of no use", k)
			}
		}
		if s.lacks(s) {
			t.Fatal("a set lacks its own keys")
		}
	})
}

// FuzzClaims: any claims that are accepted name an identity of the issuer, for the audience, in time.
func FuzzClaims(f *testing.F) {
	i := Issuer{URL: "https://i.example", RequiredClaims: map[string][]string{"env": {"prod", "1"}}}.withDefaults("net")
	now := time.Unix(1_800_000_000, 0)
	f.Add(`{"iss":"https://i.example","sub":"alice","aud":"net","exp":1800000100,"nbf":1.8e9,"env":["prod"]}`)
	f.Add(`{"iss":"https://i.example","sub":"\u0000","aud":["net",1],"exp":1e99,"env":1}`)
	f.Add(`{"aud":{},"exp":null,"env":[[]]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var c parsed
		if json.Unmarshal([]byte(text), &c) != nil {
			return
		}
		id, end, refused := i.caller(c, now)
		if refused != nil {
			if !id.IsZero() || refused.Kind != authn.OIDC || refused.Reason == authn.Accepted {
				t.Fatalf("%q: %v, %+v", text, id, refused)
			}
			return
		}
		if back, err := authn.Parse(id.String()); err != nil || back != id || !strings.HasPrefix(id.Name, i.URL+"#") {
			t.Fatalf("%q: %v, %v", text, id, err)
		}
		if !end.After(now) || !strings.Contains(text, "net") && !strings.Contains(text, `\u`) {
			t.Fatalf("%q is accepted until %v", text, end)
		}
	})
}
