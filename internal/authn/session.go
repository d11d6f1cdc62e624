package authn

import "context"

// session is what the context of a request keeps: its credentials, and what a row found.
type session struct {
	row     *Row
	request *Request
	id      Identity
	refused *Refusal
}

// sessionKey is where a context keeps a session.
type sessionKey struct{}

// Identify returns the context of a request with the identity of its caller, or with the refusal, which it returns as
// well: a port may refuse later, as etcd's does, which looks at tokens only while users are enabled.
func (row *Row) Identify(ctx context.Context, r *Request) (context.Context, *Refusal) {
	s := &session{row: row, request: r}
	s.id, s.refused = row.Authenticate(ctx, r)
	return context.WithValue(ctx, sessionKey{}, s), s.refused
}

// WithIdentity returns a context with the identity of a caller.
func WithIdentity(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, sessionKey{}, &session{id: id})
}

func sessionOf(ctx context.Context) *session {
	if s, ok := ctx.Value(sessionKey{}).(*session); ok {
		return s
	}
	return new(session)
}

// FromContext returns the identity of the caller, and false if no Row has looked at the request, or one has refused it.
func FromContext(ctx context.Context) (Identity, bool) {
	id := sessionOf(ctx).id
	return id, !id.IsZero()
}

// Caller returns the text of the identity of the caller, and "" if it is anonymous or no Row has looked at the request.
func Caller(ctx context.Context) string {
	if id, ok := FromContext(ctx); ok && id.Kind != Anonymous {
		return id.String()
	}
	return ""
}

// Refused returns why a Row has refused the request, and nil if none has.
func Refused(ctx context.Context) *Refusal { return sessionOf(ctx).refused }

// Again looks at the caller of a request that lasts, such as a watch, and returns a refusal if its credential is not
// good any more. Tokens of issuers end. Tokens of users last as long as the request: clients of etcd get a new token
// for new requests alone. Connections end with their certificates.
func Again(ctx context.Context) *Refusal {
	s := sessionOf(ctx)
	if s.row == nil || s.id.Kind != OIDC {
		return nil
	}
	id, refused := s.row.Authenticate(ctx, s.request)
	if refused == nil && id != s.id {
		refused = &Refusal{OIDC, Invalid, "the token names another caller than before: send the request again"}
	}
	return refused
}

// Token returns the token of the request, and "" if it has none.
func Token(ctx context.Context) string {
	if r := sessionOf(ctx).request; r != nil {
		token, _ := r.Token()
		return token
	}
	return ""
}
