package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/aweigh/aweigh/scope"
)

// costs hold the clients of a node to what all nodes may be made to do for them, in units of cost
// (scope.CheckedBundle.Cost). What takes no reserve has no part in it. The zero value is ready.
type costs struct {
	limit   atomic.Pointer[rate.Limiter] // of what is reserved
	vain    atomic.Pointer[rate.Limiter] // of what was priced and cannot be reserved
	pricing sync.Mutex
	until   atomic.Int64 // wall clock in ns: until then all is priced, as something cost more than its form allows
}

const (
	ownUnits  = 250_000 // per second, that clients of one node may reserve: a quarter of a processor
	wariness  = time.Minute
	priceOver = 64 // units on top of a price, and a quarter of it, for what is written meanwhile
)

// dear reports whether a transaction is to be priced before it is handed in.
func (c *costs) dear(e *scope.Epoch, t *scope.Txn) bool {
	return !e.Plain(t) || c.until.Load() > time.Now().UnixNano()
}

// surprised notes that something cost more than its form allows.
func (c *costs) surprised() { c.until.Store(time.Now().Add(wariness).UnixNano()) }

// limiter is one of them, which lets so many units go at once.
func limiter(p *atomic.Pointer[rate.Limiter], burst int) *rate.Limiter {
	if p.Load() == nil {
		p.CompareAndSwap(nil, rate.NewLimiter(ownUnits, burst))
	}
	return p.Load()
}

// wait waits for the turn of a mutation that reserves so many units. Errors wrap ErrBusy, or are those of ctx.
func (c *costs) wait(ctx context.Context, units int64, prefix []byte) error {
	if units == 0 {
		return nil
	}
	return turn(ctx, limiter(&c.limit, 8*ownUnits), units, prefix)
}

// begin waits until something may be priced: what was priced in vain must be paid first. It holds pricing then:
// this is work that no client has paid for yet, so one processor is enough. Errors are those of wait.
func (c *costs) begin(ctx context.Context, prefix []byte) error {
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

// lost charges for what was priced in vain: a second's units at most, as other clients wait for them too.
func (c *costs) lost(units int64) {
	limiter(&c.vain, ownUnits).ReserveN(time.Now(), int(min(units, ownUnits)))
}

// turn waits for so many units, for three quarters of what ctx lasts at most.
func turn(ctx context.Context, l *rate.Limiter, units int64, prefix []byte) error {
	if at, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, turnTime(at))
		defer cancel()
	}
	err := l.WaitN(ctx, int(min(units, 8*ownUnits)))
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w: clients of this node ask the scope of %q to look at more than its nodes can; use smaller ranges in transactions, or read outside of them", ErrBusy, prefix)
	}
	return err
}

// never is what a mutation exceeded that was not tried yet.
const never = -1

// price is what a mutation shall reserve: what it would cost on the state that this node has, and some more for what
// others write meanwhile; and more than failed, which it exceeded before: the same bundle is not executed again. The
// error is scope.ErrTooMuch if no block may cost as much: that is paid by all who ask for a price after it.
func (n *Part) price(ctx context.Context, m scope.Mutation, failed int64) (int64, error) {
	if err := n.costs.begin(ctx, n.prefix); err != nil {
		return 0, err
	}
	defer n.costs.pricing.Unlock()
	v, err := n.views.open()
	if err != nil {
		return 0, err
	}
	units, most, err := v.Price(m, n.runner.now())
	if err == nil && failed >= most {
		err = scope.ErrTooMuch
	}
	if errors.Is(err, scope.ErrTooMuch) {
		n.costs.lost(units)
	}
	if err := errors.Join(err, n.views.release(v)); err != nil {
		return 0, err
	}
	if units == 0 && failed == never {
		return 0, nil
	}
	return min(max(units+units/4, 4*failed)+priceOver, most), nil
}

// paid lets a peer pay for what executing its bundle costs beyond its bytes, bit by bit, and waits meanwhile; false if the
// node stops. An anchor of another scope does not wait, as in frame: false then says that it cannot pay. An anchor of this
// scope pays nothing: it hands on what others signed, its ballots would wait behind it, and its own clients pay at its node.
func (n *Part) paid(p Peer, b *scope.CheckedBundle) bool {
	if n.budgets.anchor(p) {
		return true
	}
	if n.budgets.home(p) != nil {
		if !n.budgets.neighbourLooks(p, b.Looks()) {
			n.note(Dropped{From: p, Class: Full, Why: "mutations above the budget of an anchor of another scope"})
			return false
		}
		return true
	}
	for units := b.Looks(); units > 0; {
		part := min(units, int64(n.budgets.of(p).work.Burst()))
		if d := n.budgets.looks(p, int(part)); d > 0 && !n.pause(d) {
			return false
		}
		units -= part
	}
	return true
}
