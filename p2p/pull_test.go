package p2p

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh/internal/testwait"
)

func TestRequestIsAnswered(t *testing.T) {
	t.Parallel()
	a := start(t, nil)
	b := start(t, func(c *Config) { c.Handler.Request = echo })
	join(t, a, b)
	for _, n := range []int{0, 1, 1000, 3 << 20} {
		req := bytes.Repeat([]byte{'x'}, n)
		got, err := a.Request(t.Context(), b.ID(), req, n)
		if err != nil || !bytes.Equal(got, req) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if s := b.Stats(); s.RequestsServed < 4 {
		t.Errorf("%+v", s)
	}
}

func TestRequestErrors(t *testing.T) {
	t.Parallel()
	failing := func(_ context.Context, _ peer.ID, req []byte) ([]byte, error) {
		if string(req) == "long" {
			return make([]byte, 2000), nil
		}
		return nil, errors.New(strings.Repeat("no such view ", 100))
	}
	a := start(t, nil)
	b := start(t, func(c *Config) { c.Handler.Request = failing; c.MaxFrame = 3000 })
	mute := start(t, nil)
	if _, err := a.Request(t.Context(), b.ID(), nil, 10); !errors.Is(err, ErrNotConnected) {
		t.Errorf("not connected: %v", err)
	}
	join(t, a, b)
	join(t, a, mute)
	if _, err := a.Request(t.Context(), b.ID(), nil, 10); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "no such view") {
		t.Errorf("refused: %v", err)
	}
	if _, err := a.Request(t.Context(), b.ID(), []byte("long"), 1999); !errors.Is(err, ErrFrame) {
		t.Errorf("answer too long: %v", err)
	}
	if got, err := a.Request(t.Context(), b.ID(), []byte("long"), 2000); err != nil || len(got) != 2000 {
		t.Errorf("answer at the limit: %v", err)
	}
	if _, err := a.Request(t.Context(), b.ID(), make([]byte, 3001), 10); err == nil {
		t.Error("a request above the peer's limit was answered")
	}
	if _, err := a.Request(t.Context(), mute.ID(), nil, 10); !errors.Is(err, ErrRefused) {
		t.Errorf("no handler: %v", err)
	}
}

func TestRequestEndsWithItsContextAndTellsTheHandler(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}), make(chan struct{})
	a := start(t, nil)
	b := start(t, func(c *Config) {
		c.Handler.Request = func(ctx context.Context, _ peer.ID, _ []byte) ([]byte, error) {
			close(began)
			<-ctx.Done()
			close(ended)
			return nil, ctx.Err()
		}
	})
	join(t, a, b)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	if _, err := a.Request(ctx, b.ID(), nil, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	within(t, "the handler is told", ended)
}

func TestRequestTimesOut(t *testing.T) {
	t.Parallel()
	a := start(t, func(c *Config) { c.PullTimeout = 50 * time.Millisecond })
	b := start(t, func(c *Config) {
		c.Handler.Request = func(ctx context.Context, _ peer.ID, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, nil }
	})
	join(t, a, b)
	if _, err := a.Request(t.Context(), b.ID(), nil, 10); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestRequestsAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int64
	release := make(chan struct{})
	a := start(t, func(c *Config) { c.MaxRequests = 3 })
	b := start(t, func(c *Config) {
		c.Handler.Request = func(context.Context, peer.ID, []byte) ([]byte, error) {
			most.Store(max(most.Load(), now.Add(1)))
			<-release
			now.Add(-1)
			return nil, nil
		}
	})
	join(t, a, b)
	errs := make(chan error, 10)
	for range 10 {
		go func() {
			_, err := a.Request(t.Context(), b.ID(), nil, 10)
			errs <- err
		}()
	}
	testwait.Until(t, "three are served", func() bool { return now.Load() == 3 })
	close(release)
	for range 10 {
		if err := within(t, "a request ends", errs); err != nil {
			t.Error(err)
		}
	}
	if most.Load() != 3 {
		t.Errorf("%d at once", most.Load())
	}
}

func TestGreedyPeerIsToldBusy(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	a := start(t, func(c *Config) { c.MaxRequests = 16 })
	b := start(t, func(c *Config) {
		c.MaxRequests = 2
		c.Handler.Request = func(context.Context, peer.ID, []byte) ([]byte, error) { <-release; return nil, nil }
	})
	join(t, a, b)
	errs := make(chan error, 10)
	for range 10 {
		go func() {
			_, err := a.Request(t.Context(), b.ID(), nil, 10)
			errs <- err
		}()
	}
	for range 5 { // 2 * MaxRequests are held, and peer exchange may hold one
		if err := within(t, "a request is refused", errs); !errors.Is(err, ErrBusy) {
			t.Errorf("got %v", err)
		}
	}
	close(release)
	for range 5 {
		if err := within(t, "the others end", errs); err != nil && !errors.Is(err, ErrBusy) {
			t.Error(err)
		}
	}
}
