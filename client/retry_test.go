package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
)

// fake is a node with given answers.
type fake struct {
	aweighv1connect.UnimplementedNodeHandler
	mu    sync.Mutex
	puts  []*aweighv1.Once
	reads int
	put   func(try int) error
	read  func(try int) error
}

func (f *fake) Put(_ context.Context, r *connect.Request[aweighv1.PutRequest]) (*connect.Response[aweighv1.PutResponse], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.puts = append(f.puts, r.Msg.Once)
	if f.put != nil {
		if err := f.put(len(f.puts)); err != nil {
			return nil, err
		}
	}
	return connect.NewResponse(&aweighv1.PutResponse{Header: &aweighv1.Header{Revision: 7}}), nil
}

func (f *fake) Range(context.Context, *connect.Request[aweighv1.RangeRequest]) (*connect.Response[aweighv1.RangeResponse], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	if f.read != nil {
		if err := f.read(f.reads); err != nil {
			return nil, err
		}
	}
	return connect.NewResponse(&aweighv1.RangeResponse{}), nil
}

func (f *fake) Status(context.Context, *connect.Request[aweighv1.StatusRequest]) (*connect.Response[aweighv1.StatusResponse], error) {
	return connect.NewResponse(&aweighv1.StatusResponse{Header: &aweighv1.Header{Network: []byte("net")}}), nil
}

// serve starts a fake and gives its address.
func (f *fake) serve(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(aweighv1connect.NewNodeHandler(f))
	s := httptest.NewUnstartedServer(mux)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// closed is an address without a listener.
func closed(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func dial(t *testing.T, addresses ...string) *Client {
	t.Helper()
	c, err := Dial(addresses...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func told(code connect.Code, reason string) error {
	e := connect.NewError(code, errors.New("as told"))
	problem := &aweighv1.Problem{Reason: reason, Mutation: []byte{1}, ValidUntilNs: 5}
	if reason == "stopped" { // it sends no more
		problem = &aweighv1.Problem{Reason: reason}
	}
	d, err := connect.NewErrorDetail(problem)
	if err != nil {
		panic(err)
	}
	e.AddDetail(d)
	return e
}

// broken drops the connection of a request, so that its outcome is unknown.
func broken() error { panic(http.ErrAbortHandler) }

func put(t *testing.T, c *Client) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err := c.Put(ctx, &aweighv1.PutRequest{Key: []byte("/a")})
	return err
}

func TestReadsPassOverNodesThatAreAway(t *testing.T) {
	busy := &fake{read: func(int) error { return told(connect.CodeResourceExhausted, "busy") }}
	good := &fake{}
	c := dial(t, closed(t), busy.serve(t), good.serve(t))
	for range 2 {
		if _, err := c.Range(context.Background(), &aweighv1.RangeRequest{Key: []byte("/a")}); err != nil {
			t.Fatal(err)
		}
	}
	if busy.reads != 1 || good.reads != 2 {
		t.Errorf("busy node asked %d times, good one %d; want 1, and then the one that answered: 2", busy.reads, good.reads)
	}
}

func TestReadsPassOverNodesThatDoNotHoldTheScope(t *testing.T) {
	elsewhere := &fake{read: func(int) error { return told(connect.CodeFailedPrecondition, "not_held") }}
	good := &fake{}
	if _, err := dial(t, elsewhere.serve(t), good.serve(t)).Range(context.Background(), &aweighv1.RangeRequest{Key: []byte("/a")}); err != nil || good.reads != 1 {
		t.Errorf("got %v, and the node that holds it was asked %d times", err, good.reads)
	}
	if _, err := dial(t, elsewhere.serve(t)).Range(context.Background(), &aweighv1.RangeRequest{Key: []byte("/a")}); !errors.Is(err, ErrNotHeld) {
		t.Errorf("nobody holds it: got %v", err)
	}
}

func TestReadsDoNotRepeatWhatIsTheCallersFault(t *testing.T) {
	bad := &fake{read: func(int) error { return told(connect.CodeOutOfRange, "compacted") }}
	other := &fake{}
	_, err := dial(t, bad.serve(t), other.serve(t)).Range(context.Background(), &aweighv1.RangeRequest{Key: []byte("/a")})
	if !errors.Is(err, ErrCompacted) || other.reads != 0 {
		t.Errorf("got %v, and the other node was asked %d times", err, other.reads)
	}
}

func TestWritesThatWereNeverSentGoToAnotherNode(t *testing.T) {
	good := &fake{}
	if err := put(t, dial(t, closed(t), good.serve(t))); err != nil || len(good.puts) != 1 {
		t.Errorf("got %v after %d puts", err, len(good.puts))
	}
}

func TestWritesOfUnknownOutcomeAreRepeatedAtTheSameNodeWithTheSameNonce(t *testing.T) {
	first := &fake{put: func(try int) error {
		if try < 3 {
			return broken()
		}
		return nil
	}}
	other := &fake{}
	if err := put(t, dial(t, first.serve(t), other.serve(t))); err != nil {
		t.Fatal(err)
	}
	if len(first.puts) != 3 || len(other.puts) != 0 {
		t.Fatalf("%d puts at the first node and %d at the other, want 3 and none", len(first.puts), len(other.puts))
	}
	for _, o := range first.puts {
		if string(o.Nonce) != string(first.puts[0].Nonce) || len(o.Nonce) != 16 || o.ValidUntilNs != first.puts[0].ValidUntilNs {
			t.Errorf("another Once: %v", o)
		}
	}
}

func TestWritesThatAreUndecidedSayHowToRepeatThem(t *testing.T) {
	node := &fake{put: func(int) error { return told(connect.CodeUnavailable, "undecided") }}
	other := &fake{}
	address := node.serve(t)
	err := put(t, dial(t, address, other.serve(t)))
	var u *Undecided
	if !errors.Is(err, ErrUndecided) || !errors.As(err, &u) {
		t.Fatalf("got %v", err)
	}
	if u.Node != address || string(u.Once.Nonce) != string(node.puts[0].Nonce) || len(u.Mutation) != 1 || u.ValidUntil.UnixNano() != 5 {
		t.Errorf("got %+v", u)
	}
	if len(node.puts) != 1 || len(other.puts) != 0 {
		t.Errorf("%d and %d puts; an answer that says undecided is for the caller", len(node.puts), len(other.puts))
	}
}

func TestBusyNodesAreAskedAgain(t *testing.T) {
	node := &fake{put: func(try int) error {
		if try < 3 {
			return told(connect.CodeResourceExhausted, "busy")
		}
		return nil
	}}
	if err := put(t, dial(t, node.serve(t))); err != nil || len(node.puts) != 3 {
		t.Errorf("got %v after %d puts", err, len(node.puts))
	}
}

func TestErrorsHaveTheirKind(t *testing.T) {
	for reason, want := range kinds {
		err := translate(told(connect.CodeUnknown, reason))
		if !errors.Is(err, want) || err.Error() != "as told" {
			t.Errorf("%s: got %v, want %v", reason, err, want)
		}
	}
	if err := put(t, dial(t, closed(t))); !errors.Is(err, ErrUnreachable) {
		t.Errorf("nobody there: got %v", err)
	}
	late := &fake{put: func(int) error { return connect.NewError(connect.CodeDeadlineExceeded, errors.New("late")) }}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := dial(t, late.serve(t)).Put(ctx, &aweighv1.PutRequest{})
	if !errors.Is(err, ErrUndecided) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no answer in time: got %v", err)
	}
}

func TestWritesThatTheServerRefusesAreNotRepeated(t *testing.T) {
	node := &fake{put: func(int) error { return connect.NewError(connect.CodeResourceExhausted, errors.New("too long")) }}
	if err := put(t, dial(t, node.serve(t))); !errors.Is(err, ErrInvalid) || errors.Is(err, ErrUndecided) || len(node.puts) != 1 {
		t.Errorf("got %v after %d puts", err, len(node.puts))
	}
}

func TestWritesThatANodeTookBeforeItStoppedAreUndecided(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	node := &fake{put: func(try int) error {
		if try == 3 {
			cancel()
		}
		return told(connect.CodeUnavailable, "stopped")
	}}
	if _, err := dial(t, node.serve(t)).Put(ctx, &aweighv1.PutRequest{Key: []byte("/a")}); !errors.Is(err, ErrUndecided) || ctx.Err() == nil {
		t.Errorf("got %v; the third put ends the request: %v", err, ctx.Err())
	}
	var u *Undecided
	err := undecided(translate(told(connect.CodeUnavailable, "stopped")), &aweighv1.Once{ValidUntilNs: 77}, &endpoint{})
	if !errors.As(err, &u) || u.ValidUntil.UnixNano() != 77 {
		t.Errorf("got %v, which may commit until another time than the request says", err)
	}
}

func TestAddressesAreChecked(t *testing.T) {
	for _, bad := range [][]string{nil, {""}, {"host"}, {"http://host"}, {"127.0.0.1:"}} {
		if _, err := Dial(bad...); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

// TestRequestsAreDatedByTheScopesTime: a request that no node has seen is dated anew where the scope's time is ahead,
// and lasts as long from there; one that may have been taken before is not.
func TestRequestsAreDatedByTheScopesTime(t *testing.T) {
	ahead := time.Now().Add(23 * time.Hour).UnixNano()
	expired := func() error {
		e := connect.NewError(connect.CodeInvalidArgument, errors.New("as told"))
		d, err := connect.NewErrorDetail(&aweighv1.Problem{Reason: "expired", ValidUntilNs: ahead})
		if err != nil {
			t.Fatal(err)
		}
		e.AddDetail(d)
		return e
	}
	f := &fake{}
	f.put = func(int) error {
		if f.puts[len(f.puts)-1].ValidUntilNs < ahead {
			return expired()
		}
		return nil
	}
	c := dial(t, f.serve(t))
	if err := put(t, c); err != nil {
		t.Fatal(err)
	}
	if n := len(f.puts); n != 2 || string(f.puts[0].Nonce) != string(f.puts[1].Nonce) {
		t.Fatalf("%d tries", n)
	}
	if left := time.Duration(f.puts[1].ValidUntilNs - ahead); left < 50*time.Second || left > validity {
		t.Errorf("it lasts %v from the scope's time on", left)
	}
	for name, once := range map[string]*aweighv1.Once{ // order-free: each is tried alone
		"a repeated request":              {Nonce: []byte("12345678")},
		"one that is repeated as a whole": {Nonce: []byte("12345678"), ValidUntilNs: 5},
		"one that is over by all clocks":  {ValidUntilNs: 5},
	} {
		f.puts = nil
		if _, err := c.Put(t.Context(), &aweighv1.PutRequest{Key: []byte("/a"), Once: once}); !errors.Is(err, ErrExpired) || len(f.puts) != 1 {
			t.Errorf("%s: %v after %d tries", name, err, len(f.puts))
		}
	}
	f.puts = nil
	later := &aweighv1.Once{Nonce: []byte("12345678"), ValidUntilNs: ahead}
	f.put = func(int) error { return expired() }
	var u *Undecided
	if _, err := c.Put(t.Context(), &aweighv1.PutRequest{Key: []byte("/a"), Once: later}); !errors.As(err, &u) {
		t.Errorf("over by the node's clock, and not by the scope's time: %v", err) // a block of before may become final
	}
	f.puts, f.put = nil, func(int) error { return expired() }
	if err := put(t, c); !errors.Is(err, ErrExpired) || len(f.puts) != 2 {
		t.Errorf("a node that always says so: %v after %d tries", err, len(f.puts))
	}
}
