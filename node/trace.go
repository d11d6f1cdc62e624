package node

import (
	"context"
	"sync"

	"github.com/aweigh/aweigh/node/referral"
)

// Trace records which anchors of scopes that the node does not hold a call asked.
type Trace struct {
	mu    sync.Mutex
	trips []Trip
}

// Trip is one question to a scope that the node does not hold.
type Trip struct {
	Prefix []byte // of the scope
	Asked  []referral.Asked
	Cached bool // the node had the answer of moments ago, and asked no anchor
}

type traceKey struct{}

// Traced returns a context whose calls are recorded.
func Traced(ctx context.Context) (context.Context, *Trace) {
	t := new(Trace)
	return context.WithValue(ctx, traceKey{}, t), t
}

// Trips returns the questions that were asked so far, in the order in which they ended.
func (t *Trace) Trips() []Trip {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Trip(nil), t.trips...)
}

// record records an inquiry that has ended, if the context's calls are recorded.
func record(ctx context.Context, prefix []byte, q *referral.Inquiry) {
	t, ok := ctx.Value(traceKey{}).(*Trace)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	asked := append([]referral.Asked(nil), q.Asked()...)
	t.trips = append(t.trips, Trip{Prefix: prefix, Asked: asked, Cached: len(asked) == 0})
}
