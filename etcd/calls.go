package etcd

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// admitted is a service whose calls are bounded, and refused where they require a
// leader and no quorum is in reach, before their requests are read: so a request
// that does not arrive whole holds no more than a call's place.
func (s *service) admitted(d grpc.ServiceDesc) *grpc.ServiceDesc {
	d.Methods = slices.Clone(d.Methods)
	for i := range d.Methods {
		handle := d.Methods[i].Handler
		d.Methods[i].Handler = func(srv any, ctx context.Context, read func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			defer s.calls.Add(-1)
			if err := s.admit(ctx); err != nil {
				return nil, err
			}
			return handle(srv, ctx, read, nil)
		}
	}
	return &d
}

// stream does the same for calls that are streams.
func (s *service) stream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
	defer s.calls.Add(-1)
	if err := s.admit(stream.Context()); err != nil {
		return err
	}
	return h(srv, stream)
}

func (s *service) admit(ctx context.Context) error {
	if s.calls.Add(1) > maxCalls {
		return errTooManyRequests
	}
	if requiresLeader(ctx) && !s.hasLeader() {
		return errNoLeader
	}
	return nil
}

// requiresLeader reports whether a client of etcd asked for answers by members
// that know a leader only.
func requiresLeader(ctx context.Context) bool {
	v := metadata.ValueFromIncomingContext(ctx, "hasleader")
	return len(v) > 0 && v[0] == "true"
}

// hasLeader is what stands for "there is a leader" here: anchors enough to decide
// are in reach of this node.
func (s *service) hasLeader() bool {
	l := &s.leader
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.at) > leaderFresh {
		r := s.node.Reach()
		l.ok, l.at = r.Weight >= r.Needed, time.Now()
	}
	return l.ok
}

// leaderSense is the last look for a quorum.
type leaderSense struct {
	mu sync.Mutex
	at time.Time
	ok bool
}

// bounded is a listener with at most so many connections; those above are closed
// at once, so that their clients hear of it.
func bounded(l net.Listener, most int) net.Listener {
	return &boundedListener{Listener: l, slots: make(chan struct{}, most)}
}

type boundedListener struct {
	net.Listener
	slots chan struct{}
}

// Accept implements net.Listener.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.slots <- struct{}{}:
			return &boundedConn{Conn: c, release: sync.OnceFunc(func() { <-l.slots })}, nil
		default:
			_ = c.Close()
		}
	}
}

type boundedConn struct {
	net.Conn
	release func()
}

// Close implements net.Conn.
func (c *boundedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
