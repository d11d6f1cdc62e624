package authn

import (
	"context"
	"crypto/tls"
	"net/http"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// Request is the part of a request that holds credentials.
type Request struct {
	Header func(name string) []string // the values of a header, or of gRPC's metadata; names in lower case
	TLS    *tls.ConnectionState       // nil without TLS
	UID    *uint32                    // of the process at the other end of a Unix socket; nil elsewhere
}

// tlsKey is where a context keeps the connection of TLS.
type tlsKey struct{}

// WithTLS returns the context of a connection over TLS. It is for an http.Server's ConnContext. Without it the state of
// TLS is that of the request, and a request over HTTP/2 that names the scheme http has none.
func WithTLS(ctx context.Context, c *tls.Conn) context.Context {
	return context.WithValue(ctx, tlsKey{}, c)
}

// OfHTTP returns the credentials of a request over HTTP.
func OfHTTP(r *http.Request) *Request {
	out := &Request{Header: r.Header.Values, TLS: r.TLS, UID: uidOf(r.Context())}
	if c, ok := r.Context().Value(tlsKey{}).(*tls.Conn); ok && out.TLS == nil {
		state := c.ConnectionState()
		out.TLS = &state
	}
	return out
}

// OfCall returns the credentials of a call over gRPC, from its context. A connection of another type than
// credentials.TLSInfo and SocketInfo gives none. So a gateway within the process has no identity of its own.
func OfCall(ctx context.Context) *Request {
	r := &Request{Header: func(name string) []string { return metadata.ValueFromIncomingContext(ctx, name) }}
	if p, ok := peer.FromContext(ctx); ok {
		switch info := p.AuthInfo.(type) {
		case credentials.TLSInfo:
			r.TLS = &info.State
		case SocketInfo:
			r.UID = &info.UID
		}
	}
	return r
}

// Token returns the token of a request: the one in the header "authorization", with or without the scheme Bearer (RFC
// 6750, section 2.1), or in "token", where clients of etcd put it. It returns "" if there is none. A request with two
// different tokens, or with another scheme, is refused.
func (r *Request) Token() (string, *Refusal) {
	var token string
	for _, name := range [...]string{"authorization", "token"} {
		for _, v := range r.Header(name) {
			if name == "authorization" {
				scheme, rest, ok := strings.Cut(v, " ")
				if ok && !strings.EqualFold(scheme, "bearer") {
					return "", &Refusal{None, Unknown, "the header Authorization has another scheme than Bearer: " +
						"send \"Bearer\" and a token"}
				}
				if ok {
					v = rest
				}
			}
			if v = strings.Trim(v, " "); v == "" || token != "" && v != token {
				return "", &Refusal{None, Malformed, "the headers Authorization and Token hold several tokens, " +
					"or an empty one: send one token"}
			}
			token = v
		}
	}
	return token, nil
}

// IsJWT reports whether a token has the three parts of a signed JSON Web Token (RFC 7515, section 3.1). A token of a
// user of etcd's API has one.
func IsJWT(token string) bool { return strings.Count(token, ".") == 2 }

// hasCredential reports whether a request has any credential.
func (r *Request) hasCredential() bool {
	return len(r.Header("authorization"))+len(r.Header("token")) > 0 || r.UID != nil ||
		r.TLS != nil && len(r.TLS.PeerCertificates) > 0
}
