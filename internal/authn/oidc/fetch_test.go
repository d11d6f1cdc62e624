package oidc

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/aweigh/aweigh/internal/authn/testissuer"
)

// TestHostileIssuers: whatever an issuer answers, a node goes on, and reports a short error.
func TestHostileIssuers(t *testing.T) {
	i := testissuer.New(t)
	i.Key("a", "ES256")
	i.Publish("a")
	page := func(code int, text string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(code)
			_, _ = w.Write([]byte(text))
			return true
		}
	}
	only := func(path string, f func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			return strings.HasSuffix(r.URL.Path, path) && f(w, r)
		}
	}
	k := newKeys(Issuer{URL: i.URL, CA: i.CA}, quick, func(_, _ *keySet) {}, nil)
	if _, err := k.fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	reply, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: i.Public("a"), KeyID: "a"}}})
	if err != nil {
		t.Fatal(err)
	}
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(reply) }))
	defer plain.Close()
	var hops atomic.Int64
	many := `{"keys":[` + strings.TrimSuffix(strings.Repeat("{},", maxKeys+1), ",") + `]}`
	for what, answer := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"endless":            page(http.StatusOK, strings.Repeat("x", 2*maxAnswer)),
		"endless keys":       only("/keys", page(http.StatusOK, strings.Repeat(" ", maxAnswer)+string(reply))),
		"an error page":      page(http.StatusInternalServerError, strings.Repeat("\x1b[2J<html>", 1000)),
		"keys with an error": only("/keys", page(http.StatusNotFound, "{}")),
		"no JSON":            page(http.StatusOK, "<html>"),
		"keys without JSON":  only("/keys", page(http.StatusOK, "<html>")),
		"no keys":            only("/keys", page(http.StatusOK, "{}")),
		"null":               only("/keys", page(http.StatusOK, "null")),
		"many keys":          only("/keys", page(http.StatusOK, many)),
		"symmetric keys":     only("/keys", page(http.StatusOK, `{"keys":[{"kty":"oct","k":"c2VjcmV0","kid":"a"}]}`)),
		"another issuer":     page(http.StatusOK, `{"issuer":"https://elsewhere.example","jwks_uri":"`+i.URL+`/keys"}`),
		"no address of keys": page(http.StatusOK, `{"issuer":"`+i.URL+`"}`),
		"keys without TLS":   only("/openid-configuration", page(http.StatusOK, `{"issuer":"`+i.URL+`","jwks_uri":"`+plain.URL+`"}`)),
		"keys in a file":     only("/openid-configuration", page(http.StatusOK, `{"issuer":"`+i.URL+`","jwks_uri":"file:///etc/passwd"}`)),
		"a circle": func(w http.ResponseWriter, r *http.Request) bool {
			hops.Add(1)
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
			return true
		},
		"a redirect to HTTP": only("/keys", func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, plain.URL, http.StatusFound)
			return true
		}),
	} {
		i.Answer(answer)
		set, err := k.fetch(t.Context())
		if err == nil {
			t.Errorf("%s: %d keys", what, len(set.keys))
			continue
		}
		if len(err.Error()) > 2*maxReport || strings.ContainsRune(err.Error(), '\x1b') {
			t.Errorf("%s: the error has %d bytes: %q", what, len(err.Error()), err)
		}
	}
	i.Answer(nil)
	if n := hops.Load(); n != maxRedirect+1 {
		t.Errorf("%d requests in a circle", n)
	}
	untrusting := newKeys(Issuer{URL: i.URL}, quick, func(_, _ *keySet) {}, nil)
	if _, err := untrusting.fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("by the system's certificates: %v", err)
	}
}
