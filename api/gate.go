package api

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/etcd/auth"
	"github.com/aweigh/aweigh/internal/authn"
)

// gate judges requests by the users and roles that etcd's port has. It is a connect.Interceptor.
type gate struct{ guard *auth.Guard }

var _ connect.Interceptor = (*gate)(nil)

// grantKey is where a request's context keeps what it was permitted by.
type grantKey struct{}

// rightsIn are the rights of the user that makes a request; nil: it has all rights.
func rightsIn(ctx context.Context) *auth.Rights {
	g, _ := ctx.Value(grantKey{}).(auth.Grant)
	return g.By
}

// permit reports why a caller may not make a request, and returns its context with what it may.
func (g *gate) permit(ctx context.Context, procedure string, request any) (context.Context, auth.Grant, error) {
	if g.guard == nil || owner(ctx) {
		return ctx, auth.Grant{Revision: -1}, nil
	}
	need, ok := rights[procedure]
	if !ok {
		return ctx, auth.Grant{}, errNoRight(procedure)
	}
	if need.open {
		return ctx, auth.Grant{Revision: -1}, nil
	}
	local := need.local == nil || need.local(request)
	soon, cancel := patient(ctx) // without a quorum, the client gets the reason
	defer cancel()
	x, err := g.guard.Permit(soon, local, func(r *auth.Rights) error {
		if r == nil {
			return withoutUsers(ctx)
		}
		return need.may(ctx, g.guard, r, request)
	})
	if err != nil {
		return ctx, x, refused(err)
	}
	return context.WithValue(ctx, grantKey{}, x), x, nil
}

// owner reports whether a caller has all rights: the owner by the node's socket, and administrators.
func owner(ctx context.Context) bool {
	id, known := authn.FromContext(ctx)
	return known && id.Kind != authn.Anonymous && near(ctx) == nil
}

// withoutUsers reports why a caller may not make a request while users are not enabled.
func withoutUsers(ctx context.Context) error {
	if id, _ := authn.FromContext(ctx); id.Kind == authn.OIDC || id.Kind == authn.User {
		return auth.ErrTokensOfUsers
	}
	return nil
}

// changed reports whether users and roles changed since a request was permitted.
func (g *gate) changed(x auth.Grant) bool { return x.Revision >= 0 && g.guard.Revision() != x.Revision }

// WrapUnary implements connect.Interceptor.
func (g *gate) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		return permitted(ctx, g, req.Spec().Procedure, req.Any(), func(ctx context.Context) (connect.AnyResponse, any, error) {
			resp, err := next(ctx, req)
			if err != nil {
				return nil, nil, err
			}
			return resp, resp.Any(), nil
		})
	}
}

// permitted makes a request that its caller may make, and returns an answer that it may see.
func permitted[R any](
	ctx context.Context, g *gate, procedure string, request any, do func(context.Context) (R, any, error),
) (none R, err error) {
	with, x, err := g.permit(ctx, procedure, request)
	if err != nil {
		return none, err
	}
	resp, answer, err := do(with)
	if err != nil || x.Revision < 0 {
		return resp, err
	}
	need := rights[procedure]
	if need.reads && g.changed(x) {
		if _, x, err = g.permit(ctx, procedure, request); err != nil {
			return none, err
		}
	}
	if x.By != nil && need.shows != nil {
		if err := need.shows(x.By, answer); err != nil {
			return none, refused(err)
		}
	}
	return resp, nil
}

// WrapStreamingClient implements connect.Interceptor.
func (g *gate) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler implements connect.Interceptor. A stream ends when its caller loses the right to it: before the
// next answer if users and roles changed, and within lookAgain otherwise.
func (g *gate) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		s := &judged{StreamingHandlerConn: conn, gate: g, ctx: ctx}
		go func() {
			t := time.NewTicker(lookAgain)
			defer t.Stop()
			for {
				select {
				case <-t.C:
					if err := s.look(true); err != nil {
						cancel(err)
						return
					}
				case <-ctx.Done():
					return
				}
			}
		}()
		err := next(ctx, s)
		var e *connect.Error
		if cause := context.Cause(ctx); errors.As(cause, &e) {
			return e
		}
		return err
	}
}

// lookAgain is how often the caller of a stream is looked at again: its token may have ended.
const lookAgain = time.Second

// judged is a stream whose caller is judged again while it lasts.
type judged struct {
	connect.StreamingHandlerConn
	gate *gate
	ctx  context.Context

	mu      sync.Mutex
	request any // nil before it was read
	grant   auth.Grant
}

// Receive implements connect.StreamingHandlerConn.
func (s *judged) Receive(m any) error {
	if err := s.StreamingHandlerConn.Receive(m); err != nil {
		return err
	}
	_, x, err := s.gate.permit(s.ctx, s.Spec().Procedure, m)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.request, s.grant = m, x
	return nil
}

// Send implements connect.StreamingHandlerConn.
func (s *judged) Send(m any) error {
	if err := s.look(false); err != nil {
		return err
	}
	if err := s.shows(m); err != nil {
		return err
	}
	return s.StreamingHandlerConn.Send(m)
}

// shows reports why the caller may not see an answer.
func (s *judged) shows(answer any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	shows := rights[s.Spec().Procedure].shows
	if s.grant.By == nil || shows == nil {
		return nil
	}
	if err := shows(s.grant.By, answer); err != nil {
		return refused(err)
	}
	return nil
}

// look reports whether the caller has lost the right to the stream: by a change of users and roles, or as its token has
// ended, which it looks at if again is set.
func (s *judged) look(again bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.request == nil {
		return nil
	}
	if again {
		if r := authn.Again(s.ctx); r != nil {
			return unidentified(r)
		}
	}
	if !s.gate.changed(s.grant) {
		return nil
	}
	_, x, err := s.gate.permit(s.ctx, s.Spec().Procedure, s.request)
	if err == nil {
		s.grant = x
	}
	return err
}

var (
	errRoles = errors.New("api: the roles of the caller's user do not permit this request: " +
		"\"aweigh whoami\" prints the caller and its permissions")
	errNameless = errors.New("api: users are enabled, and the request names none: " +
		"send a token or a client certificate, or use the node's socket")
)

// refused is a refusal in the words of this API.
func refused(err error) error {
	var e *connect.Error
	if errors.As(err, &e) {
		return err
	}
	s, ok := status.FromError(err)
	if !ok {
		return problem(err)
	}
	switch {
	case errors.Is(err, auth.ErrDenied):
		err = errRoles
	case errors.Is(err, auth.ErrUserEmpty):
		return detailed(connect.CodeUnauthenticated, errNameless, &aweighv1.Problem{Reason: Denied})
	default:
		err = fmt.Errorf("api: %s", s.Message())
	}
	if s.Code() == codes.Unavailable {
		return detailed(connect.CodeUnavailable, err, &aweighv1.Problem{Reason: Unread})
	}
	return detailed(connect.Code(s.Code()), err, &aweighv1.Problem{Reason: Denied})
}
