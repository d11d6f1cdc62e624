package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"

	"connectrpc.com/connect"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/socket"
)

// caller is what a connection shows of the client that makes a request.
type caller struct {
	socket   bool  // it came by the node's socket
	stranger error // that is another user's
	distant  error // why the caller may not use the anchor's key; nil: it may
}

// callerKey is where a request's context keeps its caller.
type callerKey struct{}

var (
	// errStranger refuses connections of other users to the node's socket.
	errStranger = errors.New("api: the node's socket is for the user that runs the node, and for root: run the command as that user, or use an address that the node's api-listen names, with a client certificate")
	// errAfar refuses requests from other machines that need an anchor's key.
	errAfar = errors.New("api: decisions are signed with the anchor's own key, so they are taken from its own machine only: by the node's socket, or on a node with \"insecure\" by a loopback address")
	// errNoAdmin refuses the same to holders of certificates.
	errNoAdmin = errors.New("api: decisions are signed with the anchor's own key, so they are taken by the node's socket, or from a client whose certificate has a common name that api-admins lists")
)

// ofSocket notes in a connection's context which user a socket's connection is of.
func ofSocket(ctx context.Context, c net.Conn) context.Context {
	if c.LocalAddr().Network() != "unix" {
		return ctx
	}
	who := caller{socket: true}
	if err := socket.Owned(c); err != nil {
		who.stranger = fmt.Errorf("%w (%w)", errStranger, err)
	}
	return context.WithValue(ctx, callerKey{}, who)
}

// identified notes the caller of each request, and refuses strangers. admins are the common names of certificates whose
// holders may use the anchor's key.
func identified(admins []string, h http.Handler) http.Handler {
	wrong := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, _ := r.Context().Value(callerKey{}).(caller)
		switch {
		case who.stranger != nil:
			w.Header().Set("Connection", "close") // the owner may need the room
			if !wrong.IsSupported(r) {
				http.Error(w, who.stranger.Error(), http.StatusForbidden)
				return
			}
			_ = wrong.Write(w, r, detailed(connect.CodePermissionDenied, who.stranger, &aweighv1.Problem{Reason: Denied}))
			return
		case who.socket:
		case r.TLS != nil:
			who.distant = errNoAdmin
			if chains := r.TLS.VerifiedChains; len(chains) > 0 {
				if name := chains[0][0].Subject.CommonName; name != "" && slices.Contains(admins, name) {
					who.distant = nil
				} else {
					who.distant = fmt.Errorf("%w, not %q", errNoAdmin, name)
				}
			}
		case !Loopback(r.RemoteAddr):
			who.distant = errAfar
		}
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
	})
}

// near makes sure that a request may use the anchor's key.
func near(ctx context.Context) error {
	who, known := ctx.Value(callerKey{}).(caller)
	switch {
	case !known:
		who.distant = errAfar
	case who.distant == nil:
		return nil
	}
	return detailed(connect.CodePermissionDenied, who.distant, &aweighv1.Problem{Reason: Denied})
}
