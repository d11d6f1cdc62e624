package oidc

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/aweigh/aweigh/internal/authn/testissuer"
)

// TestKeysThatFit: a key checks the algorithms of its type, size and curve, and if it names one, that one alone; a key
// that fits none is skipped, and so is one that is not for signatures.
func TestKeysThatFit(t *testing.T) {
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	var large crypto.Signer = testissuer.Generate(t, "RS256")
	ec := testissuer.Generate(t, "ES384")
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
		{KeyID: "small", Key: small.Public()},
		{KeyID: "encrypts", Key: large.Public(), Use: "enc"},
		{KeyID: "secret", Key: []byte("secret")},
		{KeyID: "private", Key: large},
		{KeyID: "wrong", Key: ec.Public(), Algorithm: "ES256"},
		{KeyID: "rsa", Key: large.Public()},
		{KeyID: "rs256", Key: large.Public(), Algorithm: "RS256", Use: "sig"},
		{KeyID: "ec", Key: ec.Public()},
	}})
	if err != nil {
		t.Fatal(err)
	}
	all, err := parseKeys(set)
	if err != nil {
		t.Fatal(err)
	}
	s := &keySet{keys: all}
	for id, want := range map[string][]string{
		"small": nil, "encrypts": nil, "secret": nil, "private": nil, "wrong": nil,
		"rsa": {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}, "rs256": {"RS256"}, "ec": {"ES384"},
	} {
		var fits []string
		for _, alg := range algorithms {
			if len(s.find(id, alg)) > 0 {
				fits = append(fits, alg)
			}
		}
		if len(fits) != len(want) || len(fits) > 0 && fits[0] != want[0] {
			t.Errorf("%s fits %v, want %v", id, fits, want)
		}
	}
	if len(all) != 3 {
		t.Errorf("%d keys are kept", len(all))
	}
}
