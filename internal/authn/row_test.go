package authn

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"testing"
)

// request returns a request with headers, as pairs of name and value.
func request(pairs ...string) *Request {
	h := make(http.Header)
	for i := 0; i+1 < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return &Request{Header: h.Values}
}

// alice knows one token, and refuses all others.
func alice(_ context.Context, token string) (string, error) {
	switch token {
	case "good":
		return "alice", nil
	case "odd":
		return "a\nb", nil
	case "later":
		return "", &Refusal{User, Unavailable, "later"}
	}
	return "", errors.New("the token " + token + " is bad")
}

// TestTheFirstThatKnowsDecides: a bad credential is refused though others of the request are good, and though the port
// takes requests without one.
func TestTheFirstThatKnowsDecides(t *testing.T) {
	uid := uint32(1000)
	local := func(r *Request) *Request { r.UID = &uid; return r }
	for _, x := range []struct {
		what      string
		r         *Request
		anonymous bool
		want      string // the identity, or the kind and the reason
	}{
		{"a token", request("authorization", "Bearer good"), false, "user:alice"},
		{"the scheme in lower case", request("authorization", "bearer  good"), false, "user:alice"},
		{"a token as etcd's clients send it", request("token", "good"), false, "user:alice"},
		{"without a scheme", request("authorization", "good"), false, "user:alice"},
		{"the same token twice", request("token", "good", "authorization", "Bearer good"), false, "user:alice"},
		{"a token before the socket", local(request("token", "good")), false, "user:alice"},
		{"the socket", local(request()), false, "local:1000"},
		{"a bad token on a socket", local(request("token", "bad")), true, "user invalid"},
		{"a bad token", request("token", "bad"), true, "user invalid"},
		{"a token that cannot be checked now", request("token", "later"), true, "user unavailable"},
		{"a user whose name cannot be printed", request("token", "odd"), true, "user name"},
		{"two tokens", request("token", "good", "authorization", "Bearer other"), true, "none malformed"},
		{"an empty token", request("authorization", "Bearer "), true, "none malformed"},
		{"an empty header", request("authorization", ""), true, "none malformed"},
		{"another scheme", request("authorization", "Basic YTpi"), true, "none unknown"},
		{"a JSON Web Token, which none takes", request("authorization", "Bearer a.b.c"), true, "none unknown"},
		{"nothing", request(), true, "anonymous"},
		{"nothing, where that is not enough", request(), false, "none missing"},
	} {
		var counts Counts
		row := Row{Authenticators: []Authenticator{Users(alice), Certs{}, Sockets{}}, Anonymous: x.anonymous, Count: counts.Count}
		id, refused := row.Authenticate(context.Background(), x.r)
		got, want := id.String(), map[Outcome]uint64{{id.Kind, Accepted}: 1}
		if refused != nil {
			got, want = refused.Kind.String()+" "+refused.Reason.String(), map[Outcome]uint64{{refused.Kind, refused.Reason}: 1}
			if !id.IsZero() {
				t.Errorf("%s: refused, and the caller is %v", x.what, id)
			}
		}
		if got != x.want {
			t.Errorf("%s: %s, want %s (%v)", x.what, got, x.want, refused)
		}
		if counted := maps.Collect(counts.All()); !maps.Equal(counted, want) {
			t.Errorf("%s: counted %v, want %v", x.what, counted, want)
		}
	}
}

// TestRefusalsHoldNoCredential: neither errors nor logs quote what a request sent.
func TestRefusalsHoldNoCredential(t *testing.T) {
	const secret = "c2VjcmV0"
	var log bytes.Buffer
	row := Row{
		Authenticators: []Authenticator{Users(alice), Certs{}, Sockets{}},
		Log:            slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, r := range []*Request{
		request("authorization", "Bearer "+secret), request("token", secret), request("authorization", "Basic "+secret), request("token", secret, "token", "x"),
		request("authorization", "Bearer "+secret+".b.c"), request("authorization", secret+" x"),
	} {
		_, refused := row.Authenticate(context.Background(), r)
		if refused == nil || strings.Contains(refused.Error(), secret) {
			t.Errorf("refused by %v", refused)
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 6 || strings.Contains(log.String(), secret) {
		t.Errorf("the log has %d lines:\n%s", n, log.String())
	}
}

func TestNamesOfReasonsAreDistinct(t *testing.T) {
	seen := make(map[string]bool)
	for r := range Reasons {
		if s := r.String(); s == "" || seen[s] {
			t.Errorf("reason %d is %q", r, s)
		}
		seen[r.String()] = true
	}
}
