package etcd

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/authn"
	"github.com/aweigh/aweigh/internal/requestlog"
)

// admitted is a service whose calls are counted, bounded, and refused where they
// require a leader and no quorum is in reach, before their requests are read; and where
// they are not permitted.
func (s *service) admitted(d grpc.ServiceDesc) *grpc.ServiceDesc {
	d.Methods = slices.Clone(d.Methods)
	for i := range d.Methods {
		handle, counted := d.Methods[i].Handler, s.counted.method(d.ServiceName, d.Methods[i].MethodName, unary)
		name, reads := "/"+d.ServiceName+"/"+d.Methods[i].MethodName, reads(d.ServiceName, d.Methods[i].MethodName)
		d.Methods[i].Handler = func(srv any, ctx context.Context, read func(any) error, _ grpc.UnaryServerInterceptor) (answer any, err error) {
			counted.start()
			defer func() {
				s.calls.Add(-1)
				counted.end(err)
			}()
			if err := s.admit(ctx); err != nil {
				return nil, err
			}
			ctx, _ = s.row.Identify(ctx, authn.OfCall(ctx)) // a refusal counts where rights do
			if reads {
				in, a, own := s.answering(ctx)
				if ctx = in; own {
					defer func() { answer = s.sent(ctx, a, answer, err) }()
				}
			}
			var asked any
			answer, err = handle(srv, ctx, func(request any) error {
				if err := s.arrivals.read(ctx, read, request); err != nil {
					return err
				}
				asked = request
				return s.permit(ctx, request)
			}, nil)
			s.note(ctx, name, asked, err)
			return answer, err
		}
	}
	for _, x := range d.Streams {
		s.counted.method(d.ServiceName, x.StreamName, kindOf(x))
	}
	return &d
}

// arrivals bounds the requests that are being read, and so their memory. While there are few,
// each may take long; of more, each must arrive soon. Those above the bound wait as long for a
// place: a burst of many clients is read at once.
type arrivals struct {
	places chan struct{}
	most   time.Duration // that each may take then
}

func (a *arrivals) read(ctx context.Context, read func(any) error, request any) error {
	if err := a.enter(ctx); err != nil {
		return err
	}
	defer func() { <-a.places }()
	if len(a.places) <= maxArrivals/2 {
		return read(request)
	}
	done := make(chan error, 1)
	go func() { done <- read(request) }() // ends with its call
	timer := time.NewTimer(a.most)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return errSlowRequest
	}
}

func (a *arrivals) enter(ctx context.Context) error {
	select {
	case a.places <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(a.most)
	defer timer.Stop()
	select {
	case a.places <- struct{}{}:
		return nil
	case <-timer.C:
		return errTooManyRequests
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// stream does the same for calls that are streams. Those of methods that are not
// served come here as well; they are not counted, as in etcd, because clients can
// invent their names.
func (s *service) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, h grpc.StreamHandler) (err error) {
	counted := s.counted.streams[info.FullMethod]
	counted.start()
	defer func() {
		s.calls.Add(-1)
		counted.end(err)
	}()
	if err := s.admit(stream.Context()); err != nil {
		return err
	}
	ctx, _ := s.row.Identify(stream.Context(), authn.OfCall(stream.Context()))
	p := &permitted{ServerStream: stream, service: s, ctx: ctx, method: info.FullMethod}
	err = h(srv, p)
	p.mu.Lock()
	defer p.mu.Unlock()
	if requestlog.Refused(err) || !p.begun && info.FullMethod != watchMethod { // each watch is recorded by itself
		s.note(ctx, info.FullMethod, p.request, err)
	}
	return err
}

// watchMethod is that of watches.
const watchMethod = etcdpb.Watch_Watch_FullMethodName

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
		r := s.node.Root().Reach()
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
// at once, so that their clients notice.
func bounded(l net.Listener, most int) *boundedListener {
	return &boundedListener{Listener: l, slots: make(chan struct{}, most), open: make(map[string]*boundedConn)}
}

type boundedListener struct {
	net.Listener
	slots chan struct{}

	mu   sync.Mutex
	open map[string]*boundedConn // by the client's address
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
			return l.opened(c), nil
		default:
			_ = c.Close()
		}
	}
}

func (l *boundedListener) opened(c net.Conn) net.Conn {
	name := c.RemoteAddr().String()
	b := &boundedConn{Conn: c}
	b.release = sync.OnceFunc(func() {
		l.mu.Lock()
		if l.open[name] == b {
			delete(l.open, name)
		}
		closed := b.closed
		b.closed = nil
		l.mu.Unlock()
		for f := range closed { // order-free: each alone
			(*f)()
		}
		<-l.slots
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[name] = b
	return b
}

// cut closes the connection of a client's address, if it is open.
func (l *boundedListener) cut(address string) {
	l.mu.Lock()
	c := l.open[address]
	l.mu.Unlock()
	if c != nil {
		_ = c.Close()
	}
}

// whenClosed makes the end of the connection of a client's address call f, unless stop is called before.
func (l *boundedListener) whenClosed(address string, f func()) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.open[address]
	if c == nil { // it is closed
		defer f()
		return func() {}
	}
	if c.closed == nil {
		c.closed = make(map[*func()]struct{})
	}
	c.closed[&f] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(c.closed, &f)
	}
}

type boundedConn struct {
	net.Conn
	release func()
	closed  map[*func()]struct{} // called when it is closed; under the listener's lock
}

// Close implements net.Conn.
func (c *boundedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
