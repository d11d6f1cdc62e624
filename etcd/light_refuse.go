package etcd

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// status returns the status of an error for a client.
func (s *light) status(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case s.ctx.Err() != nil:
		return errStopped
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	}
	if code := s.lasting(err); code != codes.OK {
		return status.Error(code, "aweigh: "+err.Error())
	}
	if told := toStatus(ctx, err); status.Code(told) != codes.Unknown {
		return told
	}
	return status.Error(codes.Unavailable, "aweigh: no node gives an answer that holds: "+err.Error())
}

// lasting returns the code of an error that the same request would meet again, OK for any other.
func (s *light) lasting(err error) codes.Code {
	if s.final == nil {
		return codes.OK
	}
	return s.final(err)
}

// lightRefuses answers calls of services that a Light does not have.
func lightRefuses(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	return refusedByLight(method)
}

// lightRefusesCalls gives calls that a service of a Light leaves out the same answer.
func lightRefusesCalls(ctx context.Context, r any, call *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	out, err := handle(ctx, r)
	if status.Code(err) == codes.Unimplemented {
		err = refusedByLight(call.FullMethod)
	}
	return out, err
}

// lightRefusesStreams is lightRefusesCalls for streams.
func lightRefusesStreams(x any, s grpc.ServerStream, call *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	err := handle(x, s)
	if status.Code(err) == codes.Unimplemented {
		err = refusedByLight(call.FullMethod)
	}
	return err
}

func refusedByLight(method string) error {
	name := method[strings.LastIndex(method, "/")+1:]
	if name == "Authenticate" {
		return status.Error(codes.Unimplemented,
			"aweigh: a light reader reads with its own credentials, and has no users: leave the user out")
	}
	return status.Errorf(codes.Unimplemented,
		"aweigh: %s is not served: a light reader only reads; send it to a node", name)
}
