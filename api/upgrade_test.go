package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// told is a node with given answers.
type told struct {
	Node
	Part
	read func(context.Context) error
	txn  func(context.Context, scope.Txn) (machine.Receipt, error)
}

// Answers implements Node.
func (told) Answers() *node.AnswerBudget {
	return node.NewAnswerBudget(1<<20, time.Second, time.Second)
}

func (told) Genesis() scope.Genesis { return scope.Genesis{} }

func (n told) Read(ctx context.Context, _ bool) (*node.View, error) { return nil, n.read(ctx) }

func (n told) Range(ctx context.Context, _, _ []byte, _ scope.Range, _ bool) (scope.RangeResult, scope.Head, error) {
	return scope.RangeResult{}, scope.Head{}, n.read(ctx)
}

func (n told) Txn(ctx context.Context, t scope.Txn, _ node.Once) (machine.Receipt, error) {
	return n.txn(ctx, t)
}

// serve serves the API of n until the test ends, or stop is called.
func serve(t *testing.T, n interface {
	Node
	Part
}) (s *Server, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s = serverOf(l, "127.0.0.1", newService(n, n, n), Config{})
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	ended := false
	stop = func() {
		if cancel(); ended {
			return
		}
		ended = true
		if err := <-ran; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return s, stop
}

func dial(t *testing.T, s *Server) *client.Client {
	t.Helper()
	c, err := client.Dial(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (s *Server) upgraded() int {
	s.upgrades.mu.Lock()
	defer s.upgrades.mu.Unlock()
	return len(s.upgrades.all)
}

func done(context.Context, scope.Txn) (machine.Receipt, error) {
	return machine.Receipt{Outcome: scope.Outcome{Code: scope.Applied, Succeeded: true, Responses: []scope.Response{{}}}, Height: 7}, nil
}

func TestClientsUpgradeTheirConnections(t *testing.T) {
	s, _ := serve(t, told{txn: done})
	c := dial(t, s)
	put := func(size int) {
		t.Helper()
		r, err := c.Put(t.Context(), &aweighv1.PutRequest{Key: []byte("k"), Value: make([]byte, size)})
		if err != nil || r.Header.Height != 7 {
			t.Errorf("%d bytes: %v, %v", size, r, err)
		}
	}
	put(maxUpgraded + 1) // too large for one
	if n := s.upgraded(); n != 0 {
		t.Errorf("%d connections are upgraded, for what cannot use them", n)
	}
	put(1)
	put(1)
	if n := s.upgraded(); n != 1 {
		t.Errorf("%d connections are upgraded, not 1", n)
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	testwait.Until(t, "a connection that ended counts no more", func() bool { return s.upgraded() == 0 })
}

// Errors are the same whichever way a request took: clients tell by them whether
// to repeat it.
func TestUpgradedCallsFailAsOthersDo(t *testing.T) {
	var err error
	s, _ := serve(t, told{read: func(context.Context) error { return err }})
	c := dial(t, s)
	h2 := new(http.Protocols)
	h2.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: h2}
	defer transport.CloseIdleConnections()
	plain := aweighv1connect.NewNodeClient(&http.Client{Transport: transport}, "http://"+s.Addr())
	for _, err = range []error{
		&node.UndecidedError{Reachable: 1, Needed: 3, Cause: context.DeadlineExceeded, ValidUntil: 5},
		fmt.Errorf("%w: %w", node.ErrUnread, context.DeadlineExceeded), errors.Join(node.ErrStopped, errors.New("disk")),
		machine.ErrBusy, scope.ErrCompacted, scope.ErrCorrupt, context.Canceled,
	} {
		req := &aweighv1.RangeRequest{Key: []byte("k")}
		_, want := plain.Range(t.Context(), connect.NewRequest(req))
		_, got := c.Range(t.Context(), req)
		var a, b *connect.Error
		if !errors.As(want, &a) || !errors.As(got, &b) {
			t.Fatalf("%v and %v are no errors of the API", want, got)
		}
		same := a.Code() == b.Code() && a.Message() == b.Message() && len(a.Details()) == len(b.Details())
		for i := 0; same && i < len(a.Details()); i++ {
			x, xErr := a.Details()[i].Value()
			y, yErr := b.Details()[i].Value()
			same = xErr == nil && yErr == nil && proto.Equal(x, y)
		}
		if !same {
			t.Errorf("%v is told as %v, %v instead of %v, %v", err, b, b.Details(), a, a.Details())
		}
	}
	if s.upgraded() != 1 {
		t.Error("no connection was upgraded")
	}
}

// grpcTo is gRPC over an upgraded connection, without what package client adds.
func grpcTo(t *testing.T, s *Server) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+s.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return upgradeOne(s.Addr()) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func upgradeOne(address string) (net.Conn, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	const answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: aweigh-grpc\r\n\r\n"
	got := make([]byte, len(answer))
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", upgradePath, address, upgradeProtocol)
	for n, read := 0, 0; err == nil && read < len(got); read += n {
		n, err = conn.Read(got[read:])
	}
	if err == nil && string(got) != answer {
		err = fmt.Errorf("the answer is %q", got)
	}
	return conn, err
}

func TestUpgradedCallsAreBounded(t *testing.T) {
	var at time.Duration
	s, _ := serve(t, told{txn: done, read: func(ctx context.Context) error {
		deadline, _ := ctx.Deadline()
		at = time.Until(deadline)
		return scope.ErrEmptyKey
	}})
	conn := grpcTo(t, s)
	in, out := &aweighv1.PutRequest{Key: []byte("k")}, new(aweighv1.PutResponse)
	put := func() error { return conn.Invoke(t.Context(), aweighv1connect.NodePutProcedure, in, out) }
	limits := s.limits
	unread := func(ctx context.Context) error { // a call whose request does not come
		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, aweighv1connect.NodePutProcedure)
		if err != nil {
			return err
		}
		return stream.RecvMsg(out)
	}
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()

	if err := put(); err != nil {
		t.Fatal(err)
	}
	limits.calls.Add(maxCalls)
	for _, err := range []error{put(), unread(soon)} {
		if s := status.Convert(err); s.Code() != codes.ResourceExhausted || s.Message() != errCrowded.Error() {
			t.Errorf("a call too many: %v", err)
		}
	}
	limits.calls.Add(-maxCalls)
	limits.bodies.Add(maxBodies)
	if s := status.Convert(put()); s.Code() != codes.ResourceExhausted || s.Message() != errBodies.Error() {
		t.Errorf("a body too many: %v", s)
	}
	limits.bodies.Add(-maxBodies)
	in.Value = make([]byte, maxUpgraded)
	if err := put(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a request that is too large: %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := unread(short); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a request that does not come: %v", err)
	}
	for name, ctx := range map[string]context.Context{"none": t.Context(), "one that is far": soonIn(t, time.Hour)} {
		if err := conn.Invoke(ctx, aweighv1connect.NodeRangeProcedure, &aweighv1.RangeRequest{Key: []byte("k")}, new(aweighv1.RangeResponse)); status.Code(err) != codes.InvalidArgument {
			t.Error(err)
		}
		if at <= 0 || at > callTime {
			t.Errorf("with %s as its deadline, a call has %s", name, at)
		}
	}
	testwait.Until(t, "calls that ended count no more", func() bool { return limits.calls.Load() == 0 && limits.bodies.Load() == 0 })
}

func soonIn(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestUpgradedConnectionsKeepNobodyOut(t *testing.T) {
	s, _ := serve(t, told{txn: done})
	s.upgrades.mu.Lock()
	s.upgrades.most = 3
	s.upgrades.mu.Unlock()
	var silent []net.Conn
	for range 5 {
		conn, err := upgradeOne(s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		silent = append(silent, conn)
	}
	if _, err := dial(t, s).Put(t.Context(), &aweighv1.PutRequest{Key: []byte("k")}); err != nil {
		t.Error(err)
	}
	if n := s.upgraded(); n > 3 {
		t.Errorf("%d connections are upgraded", n)
	}
	for i, conn := range silent[:2] {
		if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		var err error
		for buf := make([]byte, 256); err == nil; { // gRPC's first words, then the end
			_, err = conn.Read(buf)
		}
		if e, ok := err.(net.Error); ok && e.Timeout() {
			t.Errorf("silent connection %d is still open", i)
		}
	}
}

// timed is a connection that notes until when a write may take.
type timed struct {
	net.Conn
	until time.Time
}

func (c *timed) SetWriteDeadline(t time.Time) error { c.until = t; return nil }

func (c *timed) Write(p []byte) (int, error) { return len(p), nil }

func TestWritesToUpgradedConnectionsTakeNotForEver(t *testing.T) {
	conn := new(timed)
	c := &upgraded{Conn: conn, of: newUpgrades(1)}
	for range 2 {
		conn.until = time.Time{}
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if left := time.Until(conn.until); left <= 0 || left > writeTime {
			t.Errorf("a write may take %s", left)
		}
	}
}

func TestForeignRequestsUpgradeNothing(t *testing.T) {
	s, _ := serve(t, told{})
	for name, c := range map[string]struct {
		header [2]string
		status int
	}{
		"a foreign Host":    {[2]string{"Host", "evil.example"}, http.StatusForbidden},
		"a foreign Origin":  {[2]string{"Origin", "http://evil.example"}, http.StatusForbidden},
		"another protocol":  {[2]string{"Upgrade", "websocket"}, http.StatusUpgradeRequired},
		"no upgrade at all": {[2]string{"Upgrade", ""}, http.StatusUpgradeRequired},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr()+upgradePath, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", upgradeProtocol)
		req.Header.Set(c.header[0], c.header[1])
		if c.header[0] == "Host" {
			req.Host = c.header[1]
		}
		transport := new(http.Transport)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != c.status {
			t.Errorf("%s: %s", name, resp.Status)
		}
		transport.CloseIdleConnections()
	}
	if n := s.upgraded(); n != 0 {
		t.Errorf("%d connections are upgraded", n)
	}
}

// Calls in progress may finish when the server ends, but not for ever; and then
// nothing of them is left.
func TestUpgradedCallsMayFinish(t *testing.T) {
	testshort.Skip(t)
	began, finish := make(chan struct{}, 2), make(chan struct{})
	s, stop := serve(t, told{txn: func(ctx context.Context, x scope.Txn) (machine.Receipt, error) {
		began <- struct{}{}
		if string(x.Success[0].Key) == "stuck" {
			<-ctx.Done()
			return machine.Receipt{}, ctx.Err()
		}
		<-finish
		return done(ctx, x)
	}})
	conn := grpcTo(t, s)
	results := make(map[string]chan error)
	for _, key := range []string{"slow", "stuck"} {
		result := make(chan error, 1)
		results[key] = result
		go func() {
			result <- conn.Invoke(t.Context(), aweighv1connect.NodePutProcedure, &aweighv1.PutRequest{Key: []byte(key)}, new(aweighv1.PutResponse))
		}()
	}
	<-began
	<-began
	start := time.Now()
	time.AfterFunc(linger/4, func() { close(finish) })
	stop()
	if took := time.Since(start); took > 4*linger {
		t.Errorf("the server ended after %s", took)
	}
	if s.limits.calls.Load() != 0 {
		t.Error("a call is in progress after the end")
	}
	if err := <-results["slow"]; err != nil {
		t.Errorf("a call that finished in time: %v", err)
	}
	if err := <-results["stuck"]; err == nil || !strings.Contains(status.Code(err).String(), "Unavailable") {
		t.Errorf("a call that did not: %v", err)
	}
}
