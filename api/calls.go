package api

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/protoadapt"

	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
)

// callTime bounds a call on an upgraded connection, its request's arrival and its
// answer's delivery included. Clients send what may take longer another way.
const callTime = time.Minute

// callWorkers are goroutines that are kept for calls on upgraded connections, so
// that each need not grow a stack of its own.
const callWorkers = 256

// upgradedCalls serves the methods of keys on upgraded connections.
type upgradedCalls struct {
	service *service
	limits  *limits
	callers *callers
}

// newCalls is a server for upgraded connections.
func newCalls(s *service, l *limits, who *callers) *grpc.Server {
	g := grpc.NewServer(
		grpc.MaxRecvMsgSize(maxUpgraded), grpc.MaxSendMsgSize(1<<31-1), grpc.MaxConcurrentStreams(1000),
		grpc.StaticStreamWindowSize(maxUpgraded), grpc.StaticConnWindowSize(16*maxUpgraded), grpc.MaxHeaderListSize(16<<10),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 15 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second}),
		grpc.Creds(shown{insecure.NewCredentials()}), grpc.InTapHandle(brief), grpc.NumStreamWorkers(callWorkers), grpc.WaitForHandlers(true),
	)
	g.RegisterService(&grpc.ServiceDesc{
		ServiceName: aweighv1connect.NodeName, HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{
			unary("Put", (*service).Put), unary("Delete", (*service).Delete),
			unary("Range", (*service).Range), unary("Txn", (*service).Txn),
		},
	}, &upgradedCalls{s, l, who})
	return g
}

// brief gives every call a deadline: it bounds how long a request may take to
// arrive, and an answer to be taken, as well.
func brief(ctx context.Context, _ *tap.Info) (context.Context, error) {
	if at, ok := ctx.Deadline(); ok && time.Until(at) <= callTime {
		return ctx, nil
	}
	bounded, cancel := context.WithTimeout(ctx, callTime)
	context.AfterFunc(ctx, cancel) // with the call
	return bounded, nil
}

// unary is a method of gRPC that does what one of Connect does. Its calls are
// counted before their requests are read.
func unary[Req, Resp any](name string, method func(*service, context.Context, *connect.Request[Req]) (*connect.Response[Resp], error)) grpc.MethodDesc {
	return grpc.MethodDesc{
		MethodName: name,
		Handler: func(srv any, ctx context.Context, read func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			c := srv.(*upgradedCalls)
			defer c.limits.leave()
			if err := c.limits.enter(); err != nil {
				return nil, status.Error(codes.ResourceExhausted, err.Error())
			}
			ctx, err := c.callers.call(ctx)
			if err != nil {
				return nil, err
			}
			req := new(Req)
			if err := read(req); err != nil {
				return nil, err
			}
			procedure := "/" + aweighv1connect.NodeName + "/" + name
			resp, err := permitted(ctx, c.service.gate, procedure, req, func(ctx context.Context) (*Resp, any, error) {
				resp, err := method(c.service, ctx, connect.NewRequest(req))
				if err != nil {
					return nil, nil, err
				}
				return resp.Msg, resp.Msg, nil
			})
			c.service.requests.Note(ctx, "api", procedure, req, sight(procedure), err)
			if err != nil {
				return nil, statusOf(err)
			}
			return resp, nil
		},
	}
}

// statusOf is an error of Connect as one of gRPC, with the same code, text and
// details.
func statusOf(err error) error {
	var e *connect.Error
	if !errors.As(err, &e) {
		return err
	}
	s := status.New(codes.Code(e.Code()), e.Message())
	for _, d := range e.Details() {
		if v, err := d.Value(); err == nil {
			if with, err := s.WithDetails(protoadapt.MessageV1Of(v)); err == nil {
				s = with
			}
		}
	}
	return s.Err()
}
