package requestlog

import (
	"context"

	"connectrpc.com/connect"
	"google.golang.org/grpc/codes"
)

// connectCode is the code of an error of Connect.
func connectCode(err error) codes.Code { return codes.Code(connect.CodeOf(err)) }

// Interceptor records the requests to a port that Connect's handlers serve. sees returns what a procedure shows. It
// comes before others that refuse.
func (l *Log) Interceptor(port string, sees func(procedure string) Sight) connect.Interceptor {
	return interceptor{l, port, sees}
}

type interceptor struct {
	log  *Log
	port string
	sees func(procedure string) Sight
}

// note records a request.
func (i interceptor) note(ctx context.Context, procedure string, request any, err error) {
	i.log.Note(ctx, i.port, procedure, request, i.sees(procedure), err)
}

// WrapUnary implements connect.Interceptor.
func (i interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		resp, err := next(ctx, req)
		i.note(ctx, req.Spec().Procedure, req.Any(), err)
		return resp, err
	}
}

// WrapStreamingClient implements connect.Interceptor.
func (i interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler implements connect.Interceptor. A stream that is not refused at its beginning is recorded then:
// it may last for days.
func (i interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		s := &stream{StreamingHandlerConn: conn}
		s.sent = func() { i.note(ctx, conn.Spec().Procedure, s.request, ErrBegun) }
		err := next(ctx, s)
		if Refused(err) || !s.begun {
			i.note(ctx, conn.Spec().Procedure, s.request, err)
		}
		return err
	}
}

// stream keeps the request of a stream of answers.
type stream struct {
	connect.StreamingHandlerConn
	request any
	begun   bool
	sent    func()
}

// Receive implements connect.StreamingHandlerConn.
func (s *stream) Receive(m any) error {
	err := s.StreamingHandlerConn.Receive(m)
	if err == nil {
		s.request = m
	}
	return err
}

// Send implements connect.StreamingHandlerConn.
func (s *stream) Send(m any) error {
	if !s.begun {
		s.begun = true
		s.sent()
	}
	return s.StreamingHandlerConn.Send(m)
}
