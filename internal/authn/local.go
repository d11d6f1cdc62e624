package authn

import (
	"context"
	"strconv"

	"google.golang.org/grpc/credentials"
)

// SocketInfo is the credentials.AuthInfo of a gRPC connection over a Unix socket.
type SocketInfo struct {
	credentials.CommonAuthInfo
	UID uint32 // of the process at the other end, as the kernel reports it
}

// AuthType implements credentials.AuthInfo.
func (SocketInfo) AuthType() string { return "unix" }

// uidKey is where a context keeps the uid of a connection.
type uidKey struct{}

// WithUID returns the context of a connection over a Unix socket, with the uid of the process at its other end. It is
// for an http.Server's ConnContext.
func WithUID(ctx context.Context, uid uint32) context.Context {
	return context.WithValue(ctx, uidKey{}, uid)
}

func uidOf(ctx context.Context) *uint32 {
	if uid, ok := ctx.Value(uidKey{}).(uint32); ok {
		return &uid
	}
	return nil
}

// Sockets recognizes the callers of Unix sockets by their uid.
type Sockets struct{}

// Authenticate implements Authenticator.
func (Sockets) Authenticate(_ context.Context, r *Request) (Identity, *Refusal) {
	if r.UID == nil {
		return Identity{}, nil
	}
	return Identity{Local, strconv.FormatUint(uint64(*r.UID), 10)}, nil
}
