package admission

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// Costs limits the work that the clients of a node may cause at all nodes, in units of cost
// (scope.CheckedBundle.Cost). Requests that reserve nothing are not limited. The zero value is ready.
type Costs struct {
	limit   atomic.Pointer[rate.Limiter] // of what is reserved
	vain    atomic.Pointer[rate.Limiter] // of what was priced and is not reserved
	pricing sync.Mutex
	until   atomic.Int64 // wall clock in ns: until then all is priced, as something cost more than expected
}

const (
	ownUnits = 250_000 // per second, that clients of one node may reserve: a quarter of a processor
	wariness = time.Minute
)

// NeedsPrice reports whether a transaction must be priced before it is handed in.
func (c *Costs) NeedsPrice(e *scope.Epoch, t *scope.Txn) bool {
	return !e.Plain(t) || c.until.Load() > time.Now().UnixNano()
}

// Underestimated notes that something cost more than its form allows.
func (c *Costs) Underestimated() { c.until.Store(time.Now().Add(wariness).UnixNano()) }

// limiter returns the limiter at p, which it makes if there is none, with the given burst in units.
func limiter(p *atomic.Pointer[rate.Limiter], burst int) *rate.Limiter {
	if p.Load() == nil {
		p.CompareAndSwap(nil, rate.NewLimiter(ownUnits, burst))
	}
	return p.Load()
}

// Wait waits for the turn of a mutation that reserves the given units. Errors wrap ErrBusy, or are those of ctx.
func (c *Costs) Wait(ctx context.Context, units int64, prefix []byte) error {
	if units == 0 {
		return nil
	}
	return turn(ctx, limiter(&c.limit, 8*ownUnits), units, prefix)
}

// WaitPriced is Wait for a mutation that was priced. If the mutation is given up instead, its price was found in vain.
func (c *Costs) WaitPriced(ctx context.Context, units int64, prefix []byte) error {
	err := c.Wait(ctx, units, prefix)
	if err != nil {
		c.Lost(units)
	}
	return err
}

// Begin waits until something may be priced: what was priced in vain must be paid for first. It then holds pricing:
// this work is not paid for by any client yet, so it may use one processor only. End releases it. Errors are those of
// Wait.
func (c *Costs) Begin(ctx context.Context, prefix []byte) error {
	for {
		if l := c.vain.Load(); l != nil && l.Tokens() < 1 {
			if err := turn(ctx, l, 1, prefix); err != nil {
				return err
			}
		}
		c.pricing.Lock()
		if l := c.vain.Load(); l == nil || l.Tokens() >= 0 {
			return nil
		}
		c.pricing.Unlock()
	}
}

// End is called when the price is known.
func (c *Costs) End() { c.pricing.Unlock() }

// Lost charges for what was priced in vain, at most one second's units because other clients wait for them too.
func (c *Costs) Lost(units int64) {
	limiter(&c.vain, ownUnits).ReserveN(time.Now(), int(min(units, ownUnits)))
}

// turn waits for the given units, at most for three quarters of the time until ctx ends.
func turn(ctx context.Context, l *rate.Limiter, units int64, prefix []byte) error {
	if at, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, turnTime(at))
		defer cancel()
	}
	err := l.WaitN(ctx, int(min(units, 8*ownUnits)))
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w: clients of this node ask the scope of %q to look at more than its nodes can; use smaller ranges in transactions, or read outside of them", machine.ErrBusy, prefix)
	}
	return err
}
