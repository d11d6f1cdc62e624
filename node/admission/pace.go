package admission

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// Pace limits the clients of a node to the changes a second that a scope's policy allows each node (Limits.Rate);
// further changes wait for their turn. Nodes enforce this bound on their own clients, and the chain does not: what
// other nodes hand in is bounded by the budgets that anchors give each other. The zero value is ready, and safe for
// concurrent use.
type Pace struct {
	mu    sync.Mutex
	limit *rate.Limiter // nil: none was needed yet
	rate  int64         // that it is for
}

// burst returns how many changes may come at once: those of a tenth of a second.
func burst(rate int64) int { return int(max(1, rate/10)) }

// at returns the limiter for a rate, which may have changed.
func (p *Pace) at(perSecond int64) *rate.Limiter {
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

// turnTime returns how long a request with a deadline may wait for its turn. The rest of its time is for the decision.
func turnTime(deadline time.Time) time.Duration { return time.Until(deadline) * 3 / 4 }

// Paced reports whether rates limit a class of mutations.
func Paced(class scope.Class) bool {
	return class == scope.Write || class == scope.Name || class == scope.Act
}

// Wait waits for the turn of changes under a policy. Errors wrap ErrBusy if that would take longer than three quarters
// of the time until ctx ends; nothing was done then.
func (p *Pace) Wait(ctx context.Context, changes int, policy *scope.Policy, prefix []byte) error {
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
		return fmt.Errorf("%w: the scope of %q takes %d changes a second of the clients of a node (limits.rate of its policy)", machine.ErrBusy, prefix, perSecond)
	}
	return err
}
