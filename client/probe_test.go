package client

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/testshort"
)

// hung accepts connections and never answers, like a process that is stopped.
func hung(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// The kernel accepts connections for a process that hangs. Requests go to another node, and a write is sent to it once.
func TestNodesThatHangArePassedOver(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	f := new(fake)
	c := dial(t, hung(t), f.serve(t))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	begin := time.Now()
	if _, err := c.Put(ctx, &aweighv1.PutRequest{Key: []byte("a")}); err != nil {
		t.Error(err)
	}
	if _, err := c.Range(ctx, &aweighv1.RangeRequest{Key: []byte("a")}); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > 2*patienceToProbe {
		t.Errorf("it took %v", took)
	}
	if len(f.puts) != 1 || f.reads != 1 {
		t.Errorf("%d puts and %d reads came", len(f.puts), f.reads)
	}
}

func TestNodesThatAllHangEndWithTheDeadline(t *testing.T) {
	t.Parallel()
	c := dial(t, hung(t), hung(t))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := c.Range(ctx, &aweighv1.RangeRequest{Key: []byte("a")})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if first := c.Addresses()[0]; err == nil || !strings.HasPrefix(err.Error(), first) {
		t.Errorf("it does not name %s: %v", first, err)
	}
}

// What an earlier node answered, such as that there is no quorum, is not lost because a later one takes too long.
func TestEarlierAnswersAreKeptWhenALaterNodeIsLate(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	f := &fake{read: func(int) error { return told(connect.CodeUnavailable, "unread") }}
	c := dial(t, f.serve(t), hung(t))
	ctx, cancel := context.WithTimeout(t.Context(), patienceToProbe+time.Second)
	defer cancel()
	_, err := c.Range(ctx, &aweighv1.RangeRequest{Key: []byte("a")})
	if !errors.Is(err, ErrUnread) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestNetworksOfNodesThatAnswer(t *testing.T) {
	t.Parallel()
	f := new(fake)
	c := dial(t, hung(t), f.serve(t))
	got := c.Networks(t.Context(), 200*time.Millisecond)
	if len(got) != 2 || got[0] != nil || string(got[1]) != "net" {
		t.Errorf("%q", got)
	}
	if begin := time.Now(); c.endpoints[0].answers(t.Context()) || !c.endpoints[1].answers(t.Context()) || time.Since(begin) > patienceToProbe/2 {
		t.Error("what was found a moment ago is asked again")
	}
}
