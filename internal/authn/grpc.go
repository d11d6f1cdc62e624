package authn

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// Call returns the context of a call over gRPC with the identity of its caller. Errors are gRPC's. It is for servers
// that wrap their handlers themselves; Unary and Stream are for the others.
func (row *Row) Call(ctx context.Context) (context.Context, error) {
	ctx, refused := row.Identify(ctx, OfCall(ctx))
	if refused != nil {
		return ctx, status.Error(refused.Code(), refused.Error())
	}
	return ctx, nil
}

// Unary is a grpc.UnaryServerInterceptor.
func (row *Row) Unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	ctx, err := row.Call(ctx)
	if err != nil {
		return nil, err
	}
	return handle(ctx, req)
}

// Stream is a grpc.StreamServerInterceptor. The identity is the one at the start of the stream.
func (row *Row) Stream(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	ctx, err := row.Call(s.Context())
	if err != nil {
		return err
	}
	return handle(srv, identified{s, ctx})
}

// identified is a stream with the identity of its caller.
type identified struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s identified) Context() context.Context { return s.ctx }
