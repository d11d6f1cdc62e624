package client

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
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
