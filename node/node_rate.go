package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/aweigh/aweigh/scope"
)

// pace holds the clients of a node to the changes a second that a scope's policy allows each node
// (Limits.Rate): more wait for their turn. It is a bound that nodes keep, and not the chain:
// what the nodes of others hand in is bounded by what anchors spend on each other. Its
// zero value is ready, and safe for concurrent use.
type pace struct {
	mu    sync.Mutex
	limit *rate.Limiter // nil: none was needed yet
	rate  int64         // that it is for
}

// burst is how many changes may come at once: a tenth of a second's.
func burst(rate int64) int { return int(max(1, rate/10)) }

// at is the limiter for a rate, which may be another than before.
func (p *pace) at(perSecond int64) *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limit == nil {
		p.limit = rate.NewLimiter(rate.Limit(perSecond), burst(perSecond))
	} else if p.rate != perSecond {
		p.limit.SetLimit(rate.Limit(perSecond))
		p.limit.SetBurst(burst(perSecond))
	}
	p.rate = perSecond
	return p.limit
}

// turnTime is how long a request with a deadline may wait for its turn. What is left is for the decision.
func turnTime(deadline time.Time) time.Duration { return time.Until(deadline) * 3 / 4 }

// paced reports whether rates count a class of mutations.
func paced(class scope.Class) bool {
	return class == scope.Write || class == scope.Name || class == scope.Act
}

// wait waits for the turn of so many changes under a policy. Errors wrap ErrBusy if that would take longer than three
// quarters of what ctx lasts; nothing was done then.
func (p *pace) wait(ctx context.Context, changes int, policy *scope.Policy, prefix []byte) error {
	perSecond := policy.Limits.Rate
	if perSecond <= 0 {
		return nil
	}
	l := p.at(perSecond)
	if at, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, turnTime(at))
		defer cancel()
	}
	err := l.WaitN(ctx, min(changes, l.Burst()))
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w: the scope of %q takes %d changes a second of the clients of a node (limits.rate of its policy)", ErrBusy, prefix, perSecond)
	}
	return err
}
