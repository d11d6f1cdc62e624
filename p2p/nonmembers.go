package p2p

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// nonMembers are what all peers that are no members share, so that many of them
// get no more than a few: identities cost nothing.
type nonMembers struct {
	rates
	arriving *semaphore.Weighted // bytes of long frames from the first byte until they are handed over
	memory   int64
	queued   atomic.Int64 // bytes that wait to be sent to them
}

func newNonMembers(cfg Config) *nonMembers {
	return &nonMembers{
		rates:    newRates(4*cfg.NonMemberMessages, 4*cfg.NonMemberBytes, cfg.MaxFrame),
		arriving: semaphore.NewWeighted(int64(max(cfg.NonMemberMemory, cfg.MaxFrame))),
		memory:   int64(max(cfg.NonMemberMemory, cfg.MaxFrame)),
	}
}

// rates are the rates accepted of a peer.
type rates struct{ messages, bytes *rate.Limiter }

// newRates allows bursts of two seconds, and at least one frame.
func newRates(messages, bytes, frame int) rates {
	return rates{
		messages: rate.NewLimiter(rate.Limit(messages), 2*messages),
		bytes:    rate.NewLimiter(rate.Limit(bytes), max(2*bytes, frame)),
	}
}

// reserve takes one message of n bytes, and returns how long to wait for it.
func (r rates) reserve(now time.Time, n int) time.Duration {
	return max(r.messages.ReserveN(now, 1).DelayFrom(now), r.bytes.ReserveN(now, n).DelayFrom(now))
}

// Streams that one peer may open. Honest nodes open one for frames, and one for
// each request.
const (
	streamsPerSecond = 50
	streamsBurst     = 200
)

// newStreams is a peer's rate of streams.
func newStreams() *rate.Limiter { return rate.NewLimiter(streamsPerSecond, streamsBurst) }

// maySend reports whether a peer that has proved may open one more stream, and blames it if not.
func (h *Host) maySend(r *remote) bool { return h.mayOpen(r.id, r.streams) }

// mayOpen is maySend for any peer.
func (h *Host) mayOpen(id peer.ID, streams *rate.Limiter) bool {
	if streams.Allow() {
		return true
	}
	h.count.StreamsRefused.Add(1)
	h.Blame(id)
	return false
}

// room takes the memory for a frame of n bytes that a non-member begins to send.
// Short frames are free. The function returned gives it back.
func (h *Host) room(ctx context.Context, r *remote, n int) (func(), error) {
	if n <= allocatedAhead || h.dialer.isMember(r.id) {
		return func() {}, nil
	}
	if err := h.nonMembers.arriving.Acquire(ctx, int64(n)); err != nil {
		return nil, err
	}
	return func() { h.nonMembers.arriving.Release(int64(n)) }, nil
}

// slow makes a peer's reader wait while the peer is above its rates, or all
// non-members are above theirs.
func (h *Host) slow(r *remote, n int) error {
	now := time.Now()
	var wait time.Duration
	if h.dialer.isMember(r.id) {
		wait = r.rates.reserve(now, n)
	} else {
		wait = max(r.modest.reserve(now, n), h.nonMembers.reserve(now, n))
	}
	if wait <= 0 {
		return nil
	}
	h.count.Slowed.Add(1)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}
