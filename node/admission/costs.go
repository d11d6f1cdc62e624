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
//
// Requests that reserve a little have a part that large ones cannot take, and transactions of keys are priced beside
// those of ranges: neither waits behind the other.
type Costs struct {
	limit  atomic.Pointer[rate.Limiter] // of what is reserved
	few    atomic.Pointer[rate.Limiter] // likewise, for small requests alone
	prices [2]pricing                   // of transactions of ranges and other mutations, and of transactions of keys
	until  atomic.Int64                 // wall clock in ns: until then all is priced, as something cost more than expected
}

// pricing is where one request after another is priced.
type pricing struct {
	once sync.Once
	busy chan struct{}                // holds a token while something is priced
	vain atomic.Pointer[rate.Limiter] // of what was priced and is not reserved
}

const (
	ownUnits   = 250_000      // per second, that clients of one node may reserve: a quarter of a processor
	fewUnits   = ownUnits / 4 // of these, for small requests alone
	smallUnits = 10_000       // that a small request reserves at most
	wariness   = time.Minute
)

// NeedsPrice reports whether a transaction must be priced before it is handed in.
func (c *Costs) NeedsPrice(e *scope.Epoch, t *scope.Txn) bool {
	return !e.Plain(t) || c.until.Load() > time.Now().UnixNano()
}

// Underestimated notes that something cost more than its form allows.
func (c *Costs) Underestimated() { c.until.Store(time.Now().Add(wariness).UnixNano()) }

// limiter returns the limiter at p, which it makes if there is none, with the given rate and burst in units.
func limiter(p *atomic.Pointer[rate.Limiter], perSecond rate.Limit, burst int) *rate.Limiter {
	if p.Load() == nil {
		p.CompareAndSwap(nil, rate.NewLimiter(perSecond, burst))
	}
	return p.Load()
}

// Wait waits for the turn of a mutation that reserves the given units. Errors wrap ErrBusy, or are those of ctx.
func (c *Costs) Wait(ctx context.Context, units int64, prefix []byte) error {
	if units == 0 {
		return nil
	}
	all := limiter(&c.limit, ownUnits-fewUnits, 8*ownUnits)
	if units > smallUnits {
		return turn(ctx, all, units, prefix)
	}
	if all.AllowN(time.Now(), int(units)) {
		return nil
	}
	return turn(ctx, limiter(&c.few, fewUnits, fewUnits), units, prefix)
}

// Begin waits until something may be priced, beside transactions of keys or beside all others: what was priced in vain
// there must be paid for first. The work is not paid for by any client yet, so each of the two may use one processor
// only, until end is called. Errors are those of Wait.
func (c *Costs) Begin(ctx context.Context, keys bool, prefix []byte) (end func(), err error) {
	p := c.pricing(keys)
	if vain := p.vain.Load(); vain != nil && vain.Tokens() < 1 {
		if err := turn(ctx, vain, 1, prefix); err != nil {
			return nil, err
		}
	}
	within, cancel := turnOf(ctx)
	defer cancel()
	for {
		select {
		case p.busy <- struct{}{}:
		case <-within.Done():
			return nil, refusedTurn(within.Err(), prefix)
		}
		vain := p.vain.Load()
		if vain == nil || vain.Tokens() >= 0 {
			return func() { <-p.busy }, nil
		}
		<-p.busy
		if err := turn(ctx, vain, 1, prefix); err != nil {
			return nil, err
		}
	}
}

func (c *Costs) pricing(keys bool) *pricing {
	p := &c.prices[0]
	if keys {
		p = &c.prices[1]
	}
	p.once.Do(func() { p.busy = make(chan struct{}, 1) })
	return p
}

// WaitPriced is Wait for a mutation that was priced. If the mutation is given up instead, its price was found in vain.
func (c *Costs) WaitPriced(ctx context.Context, units int64, keys bool, prefix []byte) error {
	err := c.Wait(ctx, units, prefix)
	if err != nil {
		c.Lost(units, keys)
	}
	return err
}

// Lost charges for what was priced in vain, at most one second's units because other clients wait for them
// too.
func (c *Costs) Lost(units int64, keys bool) {
	limiter(&c.pricing(keys).vain, ownUnits, ownUnits).ReserveN(time.Now(), int(min(units, ownUnits)))
}

// turnOf returns ctx for three quarters of the time until it ends.
func turnOf(ctx context.Context) (context.Context, context.CancelFunc) {
	if at, ok := ctx.Deadline(); ok {
		return context.WithTimeout(ctx, turnTime(at))
	}
	return ctx, func() {}
}

// turn waits for the given units, at most for three quarters of the time until ctx ends.
func turn(ctx context.Context, l *rate.Limiter, units int64, prefix []byte) error {
	ctx, cancel := turnOf(ctx)
	defer cancel()
	return refusedTurn(l.WaitN(ctx, int(min(units, int64(l.Burst())))), prefix)
}

// refusedTurn returns why a request has no turn; that of a client which is gone stays as it is.
func refusedTurn(err error, prefix []byte) error {
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w: clients of this node ask the scope of %q to look at more than its nodes can; use smaller ranges in transactions, or read outside of them", machine.ErrBusy, prefix)
	}
	return err
}
