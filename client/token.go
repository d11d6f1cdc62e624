package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"

	"google.golang.org/grpc/credentials"
)

// ErrToken means that there is no token to send. Nothing was sent.
var ErrToken = errors.New("client: no token")

// noToken is why there is none.
type noToken struct{ cause error }

// Error implements error.
func (e *noToken) Error() string { return ErrToken.Error() + ": " + e.cause.Error() }

// Unwrap gives ErrToken and the cause.
func (e *noToken) Unwrap() []error { return []error{ErrToken, e.cause} }

// readable reports whether other machines can read what is sent to a place.
func (p *place) readable() bool {
	if p.tls != nil || p.network != "tcp" {
		return false
	}
	name, _, _ := net.SplitHostPort(p.host)
	a, err := netip.ParseAddr(name)
	return name != "localhost" && (err != nil || !a.Unmap().IsLoopback())
}

// bearing adds the place's token to requests.
func (p *place) bearing(t http.RoundTripper) http.RoundTripper {
	if p.token == nil {
		return t
	}
	return bearer{p, t}
}

type bearer struct {
	place *place
	http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := b.place.token(r.Context())
	if err != nil {
		return nil, &noToken{err}
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return b.RoundTripper.RoundTrip(r)
}

// perCall adds the place's token to calls on upgraded connections.
type perCall struct{ place *place }

var _ credentials.PerRPCCredentials = perCall{}

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (c perCall) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	token, err := c.place.token(ctx)
	if err != nil {
		return nil, &noToken{err}
	}
	return map[string]string{"authorization": "Bearer " + token}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials. TLS, if any, is below the upgrade; see DialAs.
func (perCall) RequireTransportSecurity() bool { return false }
