// Package testissuer is an OpenID Connect issuer for tests: over HTTPS on a loopback address, with keys that rotate,
// outages, and the device authorization grant.
package testissuer

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Issuer is an issuer that runs until its test ends.
type Issuer struct {
	URL string
	CA  string // a file with the certificate of its server

	t testing.TB

	mu      sync.Mutex
	keys    []jose.JSONWebKey // published
	signers map[string]signer
	down    bool
	answer  func(http.ResponseWriter, *http.Request) bool // answers instead, if it returns true
	fetches int
	device  device
}

type signer struct {
	alg jose.SignatureAlgorithm
	key crypto.Signer
}

// New starts an issuer that publishes no key.
func New(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{t: t, signers: make(map[string]signer)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]any{
			"issuer": i.URL, "jwks_uri": i.URL + "/keys",
			"token_endpoint": i.URL + "/token", "device_authorization_endpoint": i.URL + "/device",
			"id_token_signing_alg_values_supported": []string{"RS256", "ES256"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.fetches++
		reply(w, http.StatusOK, jose.JSONWebKeySet{Keys: i.keys})
	})
	mux.HandleFunc("POST /device", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		down, answer := i.down, i.answer
		i.mu.Unlock()
		if down {
			panic(http.ErrAbortHandler) // cuts the connection
		}
		if answer == nil || !answer(w, r) {
			mux.ServeHTTP(w, r)
		}
	}))
	s.StartTLS()
	t.Cleanup(s.Close)
	i.URL, i.CA = s.URL, filepath.Join(t.TempDir(), "ca.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(i.CA, cert, 0o600); err != nil {
		t.Fatal(err)
	}
	return i
}

func reply(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}

// Generate returns a private key for an algorithm.
func Generate(t testing.TB, alg string) crypto.Signer {
	t.Helper()
	var key crypto.Signer
	var err error
	switch alg {
	case "ES256":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ES384":
		key, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "EdDSA":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	default:
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Key makes a key with an ID for an algorithm, and does not publish it.
func (i *Issuer) Key(id, alg string) {
	i.t.Helper()
	key := Generate(i.t, alg)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.signers[id] = signer{jose.SignatureAlgorithm(alg), key}
}

// Publish makes keys with these IDs the published ones.
func (i *Issuer) Publish(ids ...string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = nil
	for _, id := range ids {
		i.keys = append(i.keys, jose.JSONWebKey{Key: i.signers[id].key.Public(), KeyID: id, Use: "sig"})
	}
}

// PublishWithoutIDs is Publish of keys whose IDs the issuer does not tell.
func (i *Issuer) PublishWithoutIDs(ids ...string) {
	i.Publish(ids...)
	i.mu.Lock()
	defer i.mu.Unlock()
	for n := range i.keys {
		i.keys[n].KeyID = ""
	}
}

// Public returns the public key with an ID.
func (i *Issuer) Public(id string) crypto.PublicKey {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.signers[id].key.Public()
}

// Private returns the private key with an ID.
func (i *Issuer) Private(id string) crypto.Signer {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.signers[id].key
}

// SetDown begins and ends an outage: connections are cut.
func (i *Issuer) SetDown(down bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = down
}

// Answer makes a function answer requests; those for which it returns false are answered as usual.
func (i *Issuer) Answer(with func(http.ResponseWriter, *http.Request) bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answer = with
}

// Fetches is how often the keys were fetched.
func (i *Issuer) Fetches() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fetches
}

// Claims returns claims of a token for an audience, good for an hour from a time on. Others replace them, or remove
// them if they are nil.
func (i *Issuer) Claims(audience string, at time.Time, others map[string]any) map[string]any {
	c := map[string]any{
		"iss": i.URL, "sub": "alice", "aud": audience, "iat": at.Unix(), "exp": at.Add(time.Hour).Unix(),
	}
	maps.Copy(c, others)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

// Sign returns a token with claims, signed by the key with an ID. Members of the header are pairs of name and value.
func (i *Issuer) Sign(id string, claims any, header ...string) string {
	i.t.Helper()
	i.mu.Lock()
	by := i.signers[id]
	i.mu.Unlock()
	return SignWith(i.t, by.alg, by.key, id, claims, header...)
}

// SignWith is Sign with any key.
func SignWith(t testing.TB, alg jose.SignatureAlgorithm, key any, id string, claims any, header ...string) string {
	t.Helper()
	text, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	options := (&jose.SignerOptions{}).WithType("JWT")
	for n := 0; n+1 < len(header); n += 2 {
		options = options.WithHeader(jose.HeaderKey(header[n]), header[n+1])
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: id}}, options)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := s.Sign(text)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}
