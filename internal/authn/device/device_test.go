package device

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/authn"
	"github.com/aweigh/aweigh/internal/authn/oidc"
	"github.com/aweigh/aweigh/internal/authn/testissuer"
	"github.com/aweigh/aweigh/internal/testparallel"
	"github.com/aweigh/aweigh/internal/testshort"
)

func TestMain(m *testing.M) {
	testparallel.Idle()
	goleak.VerifyTestMain(m)
}

// start starts an issuer, and returns it with the settings of a client.
func start(t *testing.T) (*testissuer.Issuer, Config) {
	t.Helper()
	i := testissuer.New(t)
	i.Key("device", "ES256")
	i.Publish("device")
	return i, Config{Network: aweigh.Sum([]byte("a network")), Issuer: i.URL, CA: i.CA, Dir: t.TempDir() + "/tokens"}
}

// soon are claims of a token that ends so soon that it is replaced.
func soon() map[string]any { return map[string]any{"exp": time.Now().Add(early / 2).Unix()} }

// TestLogin: a person logs in, the token stays in a file for its owner alone, nodes accept it, and a token that ends
// soon is replaced without the person.
func TestLogin(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	i, c := start(t)
	i.Grant(1, "", soon())
	var out bytes.Buffer
	token, err := Login(t.Context(), c, &out)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("Open %s/activate and enter the code WDJB-MJHT\nor open %s/activate?code=WDJB-MJHT\n", i.URL, i.URL); out.String() != want {
		t.Errorf("printed %q", out.String())
	}
	files, err := os.ReadDir(c.Dir)
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	dir, err := os.Stat(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := files[0].Info(); err != nil || info.Mode() != 0o600 || dir.Mode().Perm() != 0o700 {
		t.Errorf("the file has mode %v in a directory of mode %v, %v", info.Mode(), dir.Mode(), err)
	}

	i.Grant(0, "", nil)
	polls := i.Polls()
	fresh, err := Current(t.Context(), c)
	if err != nil || fresh.ID == token.ID || fresh.Refresh == token.Refresh || i.Polls() != polls+1 {
		t.Errorf("not replaced: %v, %d polls", err, i.Polls()-polls)
	}
	again, err := Current(t.Context(), c)
	if err != nil || again.ID != fresh.ID || i.Polls() != polls+1 {
		t.Errorf("not kept: %v, %d polls", err, i.Polls()-polls)
	}

	a, err := oidc.New(oidc.Config{Network: c.Network, Issuers: []oidc.Issuer{{URL: c.Issuer, CA: c.CA}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); a.Run(ctx) }()
	h := http.Header{"Authorization": {"Bearer " + again.ID}}
	if id, refused := a.Authenticate(ctx, &authn.Request{Header: h.Values}); refused != nil || id.String() != "oidc:"+i.URL+"#alice" {
		t.Errorf("a node sees %v, %v", id, refused)
	}
	cancel()
	<-done

	if err := errors.Join(Logout(c), Logout(c)); err != nil {
		t.Error(err)
	}
	if _, err := Current(t.Context(), c); !errors.Is(err, ErrNone) {
		t.Errorf("after a logout: %v", err)
	}
}

// TestLoginsThatFail: a login that fails keeps no token, and its error holds none.
func TestLoginsThatFail(t *testing.T) {
	for what, x := range map[string]struct {
		set  func(*testissuer.Issuer)
		want string
	}{
		"denied":             {func(i *testissuer.Issuer) { i.Grant(0, "access_denied", nil) }, ErrDenied.Error()},
		"too late":           {func(i *testissuer.Issuer) { i.Grant(0, "expired_token", nil) }, ErrExpired.Error()},
		"another error":      {func(i *testissuer.Issuer) { i.Grant(0, "odd\x1b[2J", nil) }, `the issuer answers "odd\x1b[2J": "as the test\x1b[2J wants"`},
		"no ID token":        {func(i *testissuer.Issuer) { i.OmitIDToken(true) }, "no ID token"},
		"another audience":   {func(i *testissuer.Issuer) { i.Grant(0, "", map[string]any{"aud": "another"}) }, "expected audience"},
		"an ended token":     {func(i *testissuer.Issuer) { i.Grant(0, "", map[string]any{"exp": 1}) }, "expired"},
		"an unknown key":     {func(i *testissuer.Issuer) { i.Key("other", "ES256"); i.Publish("other") }, "signature"},
		"an error page":      {answer("/device", http.StatusBadGateway, "<html>"), "502 Bad Gateway"},
		"no URL":             {answer("/device", http.StatusOK, `{"device_code":"x","user_code":"x"}`), "no URL"},
		"a URL without TLS":  {answer("/device", http.StatusOK, `{"device_code":"x","user_code":"x","verification_uri":"http://a"}`), "no URL"},
		"a code of controls": {answer("/device", http.StatusOK, `{"device_code":"x","user_code":"\u001b[2J","verification_uri":"https://a"}`), "no code"},
		"the other grant":    {answer("/openid-configuration", http.StatusOK, `{"issuer":"URL"}`), "does not offer"},
		"another issuer":     {answer("/openid-configuration", http.StatusOK, `{"issuer":"https://a"}`), "did not match"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			i, c := start(t)
			x.set(i)
			var out bytes.Buffer
			token, err := Login(t.Context(), c, &out)
			if err == nil || !strings.Contains(err.Error(), x.want) || token != (Token{}) {
				t.Errorf("%v, %v", token, err)
			}
			for _, secret := range []string{"eyJ", "access-1", "refresh-1", "device-code"} {
				if err != nil && strings.Contains(err.Error()+out.String(), secret) {
					t.Errorf("%s is in %q or %q", secret, err, out.String())
				}
			}
			if files, _ := os.ReadDir(c.Dir); len(files) > 0 {
				t.Errorf("%d files", len(files))
			}
		})
	}
}

// answer makes an issuer answer a path so; URL stands for the issuer's.
func answer(path string, code int, text string) func(*testissuer.Issuer) {
	return func(i *testissuer.Issuer) {
		i.Answer(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, path) {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = w.Write([]byte(strings.ReplaceAll(text, "URL", i.URL)))
			return true
		})
	}
}

// TestPollingOutlastsOutages: an issuer that is down for a moment while the person logs in does not end the login.
func TestPollingOutlastsOutages(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	i, c := start(t)
	failed := false
	i.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if fail := r.URL.Path == "/token" && !failed; fail {
			failed = true
			w.WriteHeader(http.StatusBadGateway)
			return true
		}
		return false
	})
	if _, err := Login(t.Context(), c, new(bytes.Buffer)); err != nil || !failed {
		t.Errorf("%v, failed once: %v", err, failed)
	}
}

// TestLoginsEnd: a login ends with its context, and with the issuer's code.
func TestLoginsEnd(t *testing.T) {
	t.Parallel()
	i, c := start(t)
	i.Grant(1000, "", nil)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := Login(ctx, c, new(bytes.Buffer)); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	answer("/device", http.StatusOK, `{"device_code":"x","user_code":"x","verification_uri":"https://a","interval":1,"expires_in":1}`)(i)
	if _, err := Login(t.Context(), c, new(bytes.Buffer)); !errors.Is(err, ErrExpired) {
		t.Error(err)
	}
}

// TestRefreshesThatFail: a token that is still good outlasts an issuer that does not refresh it; one that ended does
// not.
func TestRefreshesThatFail(t *testing.T) {
	t.Parallel()
	i, c := start(t)
	keep := func(until time.Duration, refresh string) {
		if err := c.save(Token{Issuer: c.Issuer, Network: c.Network, ID: "id", Refresh: refresh, Until: time.Now().Add(until)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		down    bool
		refresh string
		until   time.Duration
		ended   bool // the error is ErrNone
	}{
		{false, "revoked", early / 2, false}, {false, "revoked", -1, true}, {false, "", -1, true},
		{true, "revoked", early / 2, false}, {true, "revoked", -1, false},
	} {
		i.SetDown(x.down)
		keep(x.until, x.refresh)
		got, err := Current(t.Context(), c)
		if x.until > 0 && (err != nil || got.ID != "id") || x.until < 0 && (err == nil || errors.Is(err, ErrNone) != x.ended) {
			t.Errorf("%+v: %v, %v", x, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "revoked") {
			t.Errorf("the refresh token is in %q", err)
		}
	}
}

// TestFilesThatAreNotUsed: a token is never taken from a file that others can read, or of another network.
func TestFilesThatAreNotUsed(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	token := Token{Issuer: c.Issuer, Network: c.Network, ID: "id", Until: time.Now().Add(time.Hour)}
	if err := c.save(token); err != nil {
		t.Fatal(err)
	}
	other := c
	other.Network = aweigh.Sum([]byte("another"))
	if _, err := Current(t.Context(), other); !errors.Is(err, ErrNone) {
		t.Errorf("of another network: %v", err)
	}
	if err := os.Rename(c.path(), other.path()); err != nil {
		t.Fatal(err)
	}
	if _, err := Current(t.Context(), other); !errors.Is(err, ErrFile) {
		t.Errorf("from another network's file: %v", err)
	}
	for _, text := range []string{"", "{}", "null", "[", strings.Repeat(" ", maxFile) + "{}"} {
		if err := os.WriteFile(c.path(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Current(t.Context(), c); !errors.Is(err, ErrFile) {
			t.Errorf("of %.10q: %v", text, err)
		}
	}
	if err := errors.Join(c.save(token), os.Chmod(c.path(), 0o640)); err != nil {
		t.Fatal(err)
	}
	if _, err := Current(t.Context(), c); !errors.Is(err, ErrFile) {
		t.Errorf("that a group can read: %v", err)
	}
	if _, err := Login(t.Context(), Config{Issuer: "http://a"}, new(bytes.Buffer)); !errors.Is(err, oidc.ErrIssuer) {
		t.Errorf("at an issuer without TLS: %v", err)
	}
}

// TestTokensPrintWithoutSecrets: no verb and no log shows a secret; the file does.
func TestTokensPrintWithoutSecrets(t *testing.T) {
	token := Token{Issuer: "https://a", ID: "secret-id", Refresh: "secret-refresh"}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("token", "token", token)
	if text := fmt.Sprintf("%v %+v %#v %s %q %d", token, &token, token, token, token, []Token{token}) + log.String(); strings.Contains(text, "secret") {
		t.Error(text)
	}
	text, err := json.Marshal(token)
	if err != nil || !strings.Contains(string(text), "secret-id") {
		t.Errorf("%s, %v", text, err)
	}
}
