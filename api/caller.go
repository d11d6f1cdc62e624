package api

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/etcd/auth"
	"github.com/aweigh/aweigh/internal/authn"
	"github.com/aweigh/aweigh/internal/requestlog"
	"github.com/aweigh/aweigh/internal/socket"
)

// Who calls is what an authn.Row finds. Here is which of the callers may use the anchor's key, and with it all rights.

type (
	otherUserKey struct{}            // where a connection's context keeps an error if it is another user's
	nearKey      struct{}            // where a request's context keeps its nearness
	nearness     struct{ err error } // why the caller may not use the anchor's key; nil: it may
)

var (
	// errOtherUser refuses connections of other users to the node's socket.
	errOtherUser = errors.New("api: the node's socket is for the user that runs the node, and for root: run the " +
		"command as that user, or use an address that the node's api-listen names, with a client certificate or a token")
	// errAfar refuses requests from other machines that need an anchor's key.
	errAfar = errors.New("api: decisions are signed with the anchor's own key, so they are taken from its own machine only: by the node's socket, or on a node with \"insecure\" by a loopback address")
	// errNoAdmin refuses the same to callers with a name.
	errNoAdmin = errors.New("api: decisions are signed with the anchor's own key, so they are taken by the node's socket, or from a client whose certificate has a common name that api-admins lists")
)

// connected notes in a connection's context what it shows of the client: its connection of TLS, or the user at the
// other end of a socket.
func connected(ctx context.Context, c net.Conn) context.Context {
	if c, ok := c.(*tls.Conn); ok {
		return authn.WithTLS(ctx, c)
	}
	if c.LocalAddr().Network() != "unix" {
		return ctx
	}
	uid, err := socket.Owner(c)
	if err != nil {
		return context.WithValue(ctx, otherUserKey{}, fmt.Errorf("%w (%w)", errOtherUser, err))
	}
	return authn.WithUID(ctx, uid)
}

// callers finds the caller of each request.
type callers struct {
	row      *authn.Row
	requests *requestlog.Log
	admins   []string // may use the anchor's key: common names of certificates, and texts of identities
}

// newCallers finds callers by a row, whose refusals are errors of this API.
func newCallers(row authn.Row, admins []string, requests *requestlog.Log) *callers {
	row.Error = unidentified
	row.Refused = func(r *http.Request, refused *authn.Refusal) {
		requests.Note(r.Context(), "api", r.URL.Path, nil, nil, unidentified(refused))
	}
	return &callers{&row, requests, admins}
}

// unidentified is the error of a request whose caller is refused. It had no effect.
func unidentified(r *authn.Refusal) error {
	reason := Denied
	if r.Reason == authn.Unavailable {
		reason = Unread
	}
	return detailed(connect.Code(r.Code()), r, &aweighv1.Problem{Reason: reason})
}

// call returns the context of a call on an upgraded connection, with its caller.
func (c *callers) call(ctx context.Context) (context.Context, error) {
	ctx, refused := c.row.Identify(ctx, authn.OfCall(ctx))
	if refused != nil {
		err := statusOf(unidentified(refused))
		method, _ := grpc.Method(ctx)
		c.requests.Note(ctx, "api", method, nil, nil, err)
		return ctx, err
	}
	if p, ok := peer.FromContext(ctx); ok {
		ctx = c.noted(ctx, p.Addr.String())
	}
	return ctx, nil
}

// noted returns the context of a request from an address, with whether its caller may use the anchor's key.
func (c *callers) noted(ctx context.Context, address string) context.Context {
	return context.WithValue(ctx, nearKey{}, nearness{distant(ctx, address, c.admins)})
}

// before refuses requests of other users, and hands on the others with their callers.
func (c *callers) before(h http.Handler) http.Handler {
	wrong := connect.NewErrorWriter()
	known := c.row.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(c.noted(r.Context(), r.RemoteAddr)))
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		otherUser, ok := r.Context().Value(otherUserKey{}).(error)
		if !ok {
			known.ServeHTTP(w, r)
			return
		}
		denied := detailed(connect.CodePermissionDenied, otherUser, &aweighv1.Problem{Reason: Denied})
		c.requests.Note(r.Context(), "api", r.URL.Path, nil, nil, denied)
		w.Header().Set("Connection", "close") // the owner may need the room
		if !wrong.IsSupported(r) {
			http.Error(w, otherUser.Error(), http.StatusForbidden)
			return
		}
		_ = wrong.Write(w, r, denied)
	})
}

// distant returns why the caller of a request from an address may not use the anchor's key. The socket is the owner's.
// A user's name alone makes no administrator: users of etcd's API choose their names.
func distant(ctx context.Context, address string, admins []string) error {
	id, _ := authn.FromContext(ctx)
	name := auth.CommonName(ctx)
	switch {
	case id.Kind == authn.Local, id.Kind == authn.Anonymous && Loopback(address):
		return nil
	case id.Kind == authn.Anonymous || id.IsZero():
		return errAfar
	case slices.Contains(admins, id.String()), name != "" && slices.Contains(admins, name):
		return nil
	}
	return fmt.Errorf("%w, not %q", errNoAdmin, cmp.Or(name, id.String()))
}

// near makes sure that a request may use the anchor's key.
func near(ctx context.Context) error {
	x, known := ctx.Value(nearKey{}).(nearness)
	switch {
	case !known:
		x.err = errAfar
	case x.err == nil:
		return nil
	}
	return detailed(connect.CodePermissionDenied, x.err, &aweighv1.Problem{Reason: Denied})
}
