package authn

import (
	"context"
	"log/slog"
	"net/http"
)

// Authenticator knows one kind of credential.
type Authenticator interface {
	// Authenticate returns the identity of a request's caller if the request has a good credential of this kind, a
	// refusal if it has a bad one, and neither if it has none.
	Authenticate(ctx context.Context, r *Request) (Identity, *Refusal)
}

// Row asks authenticators in order; the first that knows the credential of a request decides. The order that all ports
// use is: tokens, then certificates, then Unix sockets. So a request can name another caller than its connection does,
// and a bad token is refused on any connection.
type Row struct {
	Authenticators []Authenticator
	// Anonymous accepts requests that have no credential. Otherwise they are refused.
	Anonymous bool
	// Count, if not nil, gets the kind of each request's credential, and Accepted or the reason of the refusal.
	Count func(Kind, Reason)
	// Refused, if not nil, gets the requests that Middleware refuses.
	Refused func(*http.Request, *Refusal)
	// Error, if not nil, is the error of a refusal for clients of Connect, gRPC and gRPC-Web.
	Error func(*Refusal) error
	// Log, if not nil, gets refusals, at level Debug.
	Log *slog.Logger
}

// Authenticate returns the identity of a request's caller, or a refusal.
func (row *Row) Authenticate(ctx context.Context, r *Request) (Identity, *Refusal) {
	id, refused := row.decide(ctx, r)
	kind, reason := id.Kind, Accepted
	if refused != nil {
		kind, reason = refused.Kind, refused.Reason
		if row.Log != nil {
			row.Log.LogAttrs(ctx, slog.LevelDebug, "a request's caller is not recognized", slog.Any("error", refused),
				slog.String("kind", kind.String()), slog.String("reason", reason.String()))
		}
	}
	if row.Count != nil {
		row.Count(kind, reason)
	}
	return id, refused
}

func (row *Row) decide(ctx context.Context, r *Request) (Identity, *Refusal) {
	for _, a := range row.Authenticators {
		if id, refused := a.Authenticate(ctx, r); refused != nil {
			return Identity{}, refused
		} else if !id.IsZero() {
			return id, nil
		}
	}
	switch {
	case r.hasCredential():
		return Identity{}, &Refusal{None, Unknown, "this port takes no credential of this kind: " +
			"use one that it is configured for"}
	case row.Anonymous:
		return Identity{Kind: Anonymous}, nil
	}
	return Identity{}, &Refusal{None, Missing, "this port requires a credential: " +
		"send a token or a client certificate, or use the node's Unix socket"}
}

// Fenced counts a request that a fence.Fence refuses, whatever its credential: one of a web page of another host, or
// one to a host that the port does not answer to.
func (row *Row) Fenced(page bool) {
	why := Host
	if page {
		why = Origin
	}
	if row.Count != nil {
		row.Count(None, why)
	}
}
