package oidc

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Bounds of an issuer's keys.
const (
	maxKeys    = 64
	leastRSA   = 2048 // bits (RFC 7518, section 3.3)
	mostRSA    = 8192 // bits: a check of a signature costs more than linear time
	maxWithout = 8    // keys that are tried for a token which names none
)

// keySet is what an issuer published at one time. It does not change.
type keySet struct {
	keys []key
	at   time.Time
}

type key struct {
	id     string
	alg    string // empty: any that fits
	public crypto.PublicKey
}

// parseKeys reads a JSON Web Key Set (RFC 7517, section 5). As it requires, keys are skipped that are not understood,
// or not for signatures.
func parseKeys(text []byte) (all []key, err error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, fmt.Errorf("not a set of keys: %w", err)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("%d keys, at most %d are taken", len(set.Keys), maxKeys)
	}
	for _, raw := range set.Keys {
		var k jose.JSONWebKey
		if k.UnmarshalJSON(raw) != nil || !k.IsPublic() || k.Use != "" && k.Use != "sig" {
			continue
		}
		if x := (key{k.KeyID, k.Algorithm, k.Key}); x.usable() {
			all = append(all, x)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("the issuer publishes no key that is understood")
	}
	return all, nil
}

// usable reports whether any algorithm fits the key.
func (k key) usable() bool {
	for _, alg := range algorithms {
		if k.fits(alg) {
			return true
		}
	}
	return false
}

// fits reports whether an algorithm goes with the key's type, size and curve, and is the key's own if that names one.
func (k key) fits(alg string) bool {
	if k.alg != "" && k.alg != alg {
		return false
	}
	switch p := k.public.(type) {
	case *rsa.PublicKey:
		bits := p.N.BitLen()
		return (strings.HasPrefix(alg, "RS") || strings.HasPrefix(alg, "PS")) && leastRSA <= bits && bits <= mostRSA
	case *ecdsa.PublicKey:
		return p.Curve == curves[alg]
	case ed25519.PublicKey:
		return alg == "EdDSA"
	}
	return false
}

// curves are those of the algorithms of ECDSA (RFC 7518, section 3.4).
var curves = map[string]elliptic.Curve{"ES256": elliptic.P256(), "ES384": elliptic.P384(), "ES512": elliptic.P521()}

// find returns the keys that may have signed a token: those of its key ID, or the first few if it has none.
func (s *keySet) find(id, alg string) (found []crypto.PublicKey) {
	if s == nil {
		return nil
	}
	for _, k := range s.keys {
		if (id == "" || k.id == id) && k.fits(alg) && len(found) < maxWithout {
			found = append(found, k.public)
		}
	}
	return found
}

// lacks reports whether a key of an older set is missing.
func (s *keySet) lacks(old *keySet) bool {
	if old == nil {
		return false
	}
	for _, k := range old.keys {
		p, ok := k.public.(interface{ Equal(crypto.PublicKey) bool })
		if !ok || !s.has(p) {
			return true
		}
	}
	return false
}

func (s *keySet) has(p interface{ Equal(crypto.PublicKey) bool }) bool {
	for _, k := range s.keys {
		if p.Equal(k.public) {
			return true
		}
	}
	return false
}
