package auth

import (
	"context"

	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/internal/authn"
	"github.com/aweigh/aweigh/scope"
)

// Caller returns the rights of the user that makes a call, nil if users are not enabled. Errors are etcd's, or the
// node's.
func (g *Guard) Caller(ctx context.Context) (*Rights, error) {
	a, err := g.known(ctx)
	if a == nil || err != nil {
		return nil, err
	}
	name, t, err := g.user(ctx)
	if err != nil {
		return nil, err
	}
	if t != nil {
		if t.Revision > a.Revision { // another node knew of it first
			if a, err = g.awaitAccess(ctx, t.Revision); a == nil || err != nil {
				return nil, err
			}
		}
		// As in etcd, the tokens of a user end when it is deleted, or gets another password.
		if u := a.User(name); u == nil || t.Revision < u.Since {
			return nil, errInvalidToken
		}
	}
	return g.rightsOf(a, name)
}

// rightsOf returns the rights of a user, by users and roles that were known at some time.
func (g *Guard) rightsOf(a *scope.Access, name string) (*Rights, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.access == a {
		if r := g.rights[name]; r != nil {
			return r, nil
		}
	}
	r := rightsOf(a, name)
	if r == nil {
		return nil, ErrDenied
	}
	if g.access == a {
		g.rights[name] = r
	}
	return r, nil
}

// user returns the user that makes a call, and its token if it is one that Issue made.
func (g *Guard) user(ctx context.Context) (name string, t *token, err error) {
	id, known := authn.FromContext(ctx)
	refused := authn.Refused(ctx)
	switch {
	case known && id.Kind == authn.User, refused != nil && refused.Kind == authn.User && refused.Reason == authn.Name:
		if t, err = g.content(ctx, authn.Token(ctx)); err != nil {
			return "", nil, errInvalidToken
		}
		return t.User, t, nil
	case refused != nil && refused.Kind == authn.OIDC:
		return "", nil, status.Error(refused.Code(), refused.Error())
	case refused != nil && refused.Kind != authn.Cert:
		return "", nil, errInvalidToken
	}
	if name = nameOf(ctx); name == "" {
		err = ErrUserEmpty
	}
	return name, nil, err
}

// CommonName returns the common name of a caller's certificate, "" if the certificate identifies the caller by a URI or
// a DNS name, or the caller has none. An authority that is restricted to some URIs or DNS names can still sign any
// common name. A common name that reads as an identity does not count: it would name another caller.
func CommonName(ctx context.Context) string {
	id, _ := authn.FromContext(ctx)
	name := id.CommonName()
	if _, err := authn.Parse(name); err == nil {
		return ""
	}
	return name
}

// nameOf returns the name of the user that a caller without a token of Issue's is, "" if it is none. Where CommonName
// has none, it is the text of the caller's identity.
func nameOf(ctx context.Context) string {
	if name := CommonName(ctx); name != "" {
		return name
	}
	if id, ok := authn.FromContext(ctx); ok && id.Kind != authn.Anonymous {
		return id.String()
	}
	return ""
}

// UserOf is an authn.Users: it returns the user that a token of Issue's names.
func (g *Guard) UserOf(ctx context.Context, text string) (string, error) {
	t, err := g.bearer(ctx, text)
	if err != nil {
		return "", err
	}
	return t.User, nil
}

// Grant is what a caller was permitted a request by.
type Grant struct {
	Revision int64   // of users and roles
	By       *Rights // nil: users are not enabled
}

// Permit reports why a caller may not make a request, and by what it may. may gets its rights, nil if users are not
// enabled. A refusal is by the newest users and roles: a node that did not hear of a change yet refuses nothing that
// the change allows. A local request is answered by what this node knows, however old.
func (g *Guard) Permit(ctx context.Context, local bool, may func(*Rights) error) (x Grant, err error) {
	if local {
		return g.permit(ctx, may)
	}
	if err := g.awaitCurrent(ctx); err != nil {
		return x, err
	}
	if x, err = g.permit(ctx, may); err != nil && g.awaitNewer(ctx, x.Revision) {
		return g.permit(ctx, may)
	}
	return x, err
}

func (g *Guard) permit(ctx context.Context, may func(*Rights) error) (x Grant, err error) {
	x.Revision = g.Revision()
	if x.By, err = g.Caller(ctx); err == nil {
		err = may(x.By)
	}
	return x, err
}
