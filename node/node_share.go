package node

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/aweigh/aweigh"
)

// sharing has scopes that are written to much give way to those that are written to little, which
// would wait behind them for a processor at every step of a write. It does nothing while one
// scope alone is written to, or all as much as each other. Otherwise this node's clients of the busy ones
// together are held to a rate, which falls while goroutines wait for processors and rises while they do not:
// CockroachDB holds back
// its elastic work in this way (I. Sharif, "Rubbing control theory on the Go scheduler", 2022); it goes by
// the longest waits and not by how many wait, which says less where little is done. Like pace, it is what a node keeps with
// its own clients, and no rule of the chain. Safe for concurrent use.
type sharing struct {
	now     func() time.Time
	queue   func() float64 // how many goroutines waited for each processor, on average since the last call
	taken   atomic.Int64   // changes that clients handed in to busy scopes, since the last look
	waited  atomic.Uint64  // of these, those that had to wait, since the start
	limiter *rate.Limiter

	mu      sync.Mutex
	flows   map[aweigh.ScopeID]*flow // of changes that became final, whoever handed them in
	busiest float64                  // of these, as of the last look
	looked  time.Time
	before  float64 // changes a second that clients handed in to busy scopes when they last were not held
}

const (
	shareLooks   = 100 * time.Millisecond // so often is a rate found, while there are writes
	shareQueue   = 0.1                    // goroutines that wait for each processor: more are too many
	shareFalls   = 0.9                    // times the rate, then
	shareAtOnce  = 16                     // changes that may come without a wait; then one by one, so that they do not make large blocks
	shareRises   = 1.03                   // times the rate, otherwise
	shareLeast   = 0.25                   // of what was taken before, whatever else makes goroutines wait
	shareBusy    = 200.0                  // changes a second: no scope with less takes a processor from anybody
	shareUnequal = 4.0                    // times as many changes as another: that other goes first
	shareFew     = 1.0                    // changes a second: who has fewer has hardly anything to wait for
	shareRecent  = time.Second            // after which a scope without changes is no longer waited for
)

func newSharing() *sharing {
	return &sharing{
		now: time.Now, queue: runQueue(time.Now),
		limiter: rate.NewLimiter(rate.Inf, shareAtOnce), flows: make(map[aweigh.ScopeID]*flow),
	}
}

// final counts changes of a scope that became final.
func (s *sharing) final(id aweigh.ScopeID, changes int) {
	if changes == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.flows[id]
	if f == nil {
		f = &flow{}
		s.flows[id] = f
	}
	f.add(changes, s.now())
}

// rate is how many changes of a scope became final a second, of late.
func (s *sharing) rate(id aweigh.ScopeID) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.flows[id]; f != nil {
		return f.of(s.now())
	}
	return 0
}

// wait lets a client hand in changes to a scope, at once unless others are to go first. Errors wrap ErrBusy if
// that would take longer than ctx lasts; nothing was done then.
func (s *sharing) wait(ctx context.Context, id aweigh.ScopeID, changes int, prefix []byte) error {
	if !s.busy(id) {
		return nil
	}
	s.taken.Add(int64(changes))
	if s.limiter.Limit() == rate.Inf {
		return nil
	}
	s.waited.Add(uint64(changes))
	for changes > 0 {
		now := min(changes, shareAtOnce)
		changes -= now
		if err := s.limiter.WaitN(ctx, now); errors.Is(err, context.Canceled) {
			return err
		} else if err != nil {
			return fmt.Errorf("%w: processors are short, and the scope of %q, which is written to far more than others, gives way", ErrBusy, prefix)
		}
	}
	return nil
}

// busy reports whether a scope is one of those that give way.
func (s *sharing) busy(id aweigh.ScopeID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if passed := now.Sub(s.looked); passed >= shareLooks {
		s.looked = now
		s.look(now, passed)
	}
	f := s.flows[id]
	return f != nil && f.of(now) >= max(shareBusy, s.busiest/shareUnequal)
}

// look finds the rate until the next look. So much time has passed since the last.
func (s *sharing) look(now time.Time, passed time.Duration) {
	queue, taken := s.queue(), float64(s.taken.Swap(0))/passed.Seconds()
	limit := s.limiter.Limit()
	switch {
	case !s.unequal(now) || passed > shareRecent:
		limit = rate.Inf
	case queue > shareQueue:
		if limit == rate.Inf {
			s.before, limit = taken, rate.Limit(taken)
		}
		limit = max(limit*shareFalls, rate.Limit(max(s.before*shareLeast, shareBusy)))
	case limit != rate.Inf && taken > float64(limit)/2: // who does not use it learns nothing of it
		limit *= shareRises
	}
	s.limiter.SetLimitAt(now, limit)
}

// unequal reports whether a scope is written to now, and another far more. It forgets those that were long ago.
func (s *sharing) unequal(now time.Time) bool {
	s.busiest = 0
	for id, f := range s.flows {
		if of := f.of(now); of < shareFew/10 {
			delete(s.flows, id)
		} else {
			s.busiest = max(s.busiest, of)
		}
	}
	if s.busiest < shareBusy {
		return false
	}
	for _, f := range s.flows {
		if of := f.of(now); of >= shareFew && of < s.busiest/shareUnequal && now.Sub(f.last) < shareRecent {
			return true
		}
	}
	return false
}

// held tells how many changes a second busy scopes are held to, 0 for any number, and how many waited.
func (s *sharing) held() (perSecond float64, waited uint64) {
	if l := s.limiter.Limit(); l != rate.Inf {
		perSecond = float64(l)
	}
	return perSecond, s.waited.Load()
}

// flow is how often something happens a second: an average in which what was long ago weighs little.
type flow struct {
	average float64
	last    time.Time // that something happened
}

// flowMemory is the age at which something weighs a third of what it weighs when it happens.
const flowMemory = 5 * time.Second

// add counts n more.
func (f *flow) add(n int, now time.Time) {
	f.average, f.last = f.of(now)+float64(n)/flowMemory.Seconds(), now
}

// of is how often a second, as of now.
func (f *flow) of(now time.Time) float64 {
	return f.average * math.Exp(-now.Sub(f.last).Seconds()/flowMemory.Seconds())
}

// runQueue makes a function that tells how many goroutines waited for each processor on average since its last call, which
// is how long all of them waited together by the time that passed (Little's law).
func runQueue(now func() time.Time) func() float64 {
	sample := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	var at time.Time
	var before []uint64
	return func() float64 {
		metrics.Read(sample)
		h := sample[0].Value.Float64Histogram()
		if before == nil {
			before = make([]uint64, len(h.Counts))
		}
		var waited float64 // seconds
		for i, count := range h.Counts {
			if least := h.Buckets[i]; least > 0 { // the first bucket has no lower end
				waited += float64(count-before[i]) * least
			}
		}
		passed := now().Sub(at)
		at = now()
		copy(before, h.Counts)
		return waited / passed.Seconds() / float64(runtime.GOMAXPROCS(0))
	}
}
