package node

import (
	"context"
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

// sharing has scopes whose clients write much give way to those that are written to little, which would
// wait behind them for a processor at every step of a write. It does nothing while one scope alone is written to, or
// all as much as each other. Otherwise this node's clients of the busy ones together are held to a rate, which falls
// while goroutines wait for processors and rises while they do not. CockroachDB holds back its elastic work
// in this way (I. Sharif, "Rubbing control theory on the Go scheduler", 2022); it goes by the longest waits and not
// by how many wait, which says less where little is done. Like pace, it is what a node keeps with its own clients, and
// no rule of the chain. Safe for concurrent use.
type sharing struct {
	now     func() time.Time
	queue   func() float64 // see runQueue; of whoever looks
	limiter *rate.Limiter  // of all busy scopes together
	waited  atomic.Uint64  // changes that had to, since the start

	line sync.Mutex // held by whoever takes a place in it: what is given back is whole only if nobody took one behind it

	looking sync.Mutex // held by whoever looks
	looked  time.Time

	mu      sync.Mutex
	scopes  map[aweigh.ScopeID]*written
	busiest float64   // of what they want, as of the last look
	before  float64   // what clients of the busy ones handed in together, when they were not held yet
	lastly  time.Time // that they were held
	swept   time.Time // when scopes were forgotten that were written to long ago
}

// written is how much is written to a scope.
type written struct {
	handed flow      // changes that this node's clients hand in, or want to
	final  flow      // changes that became final, whoever handed them in
	wanted float64   // of handed, when the scope was not held yet; 0 if it is not held
	much   time.Time // since when much is handed in; zero if it is not
}

const (
	shareLooks   = 100 * time.Millisecond // so often is a rate found, while there are writes
	shareQueue   = 0.8                    // goroutines that wait for each processor: more are too many
	shareFirst   = 0.5                    // of what was taken before: the rate then
	shareFalls   = 0.9                    // times the rate, if there are still too many
	shareRises   = 1.03                   // times the rate, otherwise
	shareLeast   = 0.25                   // of what was taken before, whatever else makes goroutines wait
	shareAgain   = 5 * time.Second        // who was held so shortly ago has not taken what it can since
	shareAtOnce  = 16                     // changes that may come without a wait; then one by one, since large blocks are what others wait behind
	shareLongest = 2 * time.Second        // for a turn; then it is refused, so that no long line takes the place of other requests

	shareMuch    = 200.0                  // changes a second: a scope with fewer takes a processor from nobody
	shareGrace   = time.Second            // for which a scope may take them without being held
	shareUnequal = 4.0                    // times as many as another: that other goes first
	shareFew     = 0.5                    // changes a second: who has fewer has hardly anything to wait for
	shareFewer   = 0.3                    // the same, of those who others give way to already
	shareSilent  = 4                      // times as long as between two changes on average: then a scope is not waited for
	sharePause   = 200 * time.Millisecond // that does not count as silence yet

	handedMemory = time.Second
	finalMemory  = 5 * time.Second
	sharesSwept  = 10 * time.Second
)

func newSharing() *sharing {
	return &sharing{
		now: time.Now, queue: runQueue(time.Now),
		limiter: rate.NewLimiter(rate.Inf, shareAtOnce), scopes: make(map[aweigh.ScopeID]*written),
	}
}

// wait lets a client hand in changes to a scope, at once unless others are to go first. Errors wrap ErrBusy, or are
// those of ctx; nothing was done then.
func (s *sharing) wait(ctx context.Context, id aweigh.ScopeID, changes int, prefix []byte) error {
	if !s.hand(id, changes) {
		return nil
	}
	last := shareLongest + time.Second
	if at, ok := ctx.Deadline(); ok {
		last = min(last, turnTime(at))
	}
	delay, giveUp, ok := s.reserve(changes, last)
	if !ok {
		return fmt.Errorf("%w: processors are short, and the scope of %q, which is written to far more than others, gives way", ErrBusy, prefix)
	}
	if delay == 0 {
		return nil
	}
	s.waited.Add(uint64(changes))
	turn := time.NewTimer(delay)
	defer turn.Stop()
	select {
	case <-turn.C:
		return nil
	case <-ctx.Done():
		s.line.Lock()
		defer s.line.Unlock()
		giveUp(time.Now())
		return ctx.Err()
	}
}

// reserve takes a place in the line, unless its beginning is too far off, or its end, which may last is the most. giveUp
// leaves it, for who holds the line.
func (s *sharing) reserve(changes int, last time.Duration) (delay time.Duration, giveUp func(now time.Time), ok bool) {
	s.line.Lock()
	defer s.line.Unlock()
	now, limit := time.Now(), s.limiter.Limit()
	if limit == rate.Inf {
		return 0, nil, true
	}
	var turns []*rate.Reservation                                                 // of a bundle, several: it waits for its end, and is refused by its beginning, or none would pass where single changes do
	for left := max(1, min(changes, int(limit))); left > 0; left -= shareAtOnce { // of a second's at most
		turns = append(turns, s.limiter.ReserveN(now, min(left, shareAtOnce)))
	}
	giveUp = func(now time.Time) {
		for i := range turns {
			turns[len(turns)-1-i].CancelAt(now)
		}
	}
	delay = turns[len(turns)-1].DelayFrom(now)
	if turns[0].DelayFrom(now) > shareLongest || delay > last {
		giveUp(now)
		return 0, nil, false
	}
	return delay, giveUp, true
}

// hand counts changes that a client wants to hand in, and reports whether their scope is one of those that give way.
func (s *sharing) hand(id aweigh.ScopeID, changes int) bool {
	now := s.now()
	if s.looking.TryLock() {
		if now.Sub(s.looked) >= shareLooks {
			s.looked = now
			s.look(now)
		}
		s.looking.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.of(id, now)
	w.handed.add(changes, handedMemory, now)
	if w.much.IsZero() && w.handed.of(handedMemory, now) >= shareMuch {
		w.much = now
	}
	return s.busy(w, now)
}

// final counts changes of a scope that became final.
func (s *sharing) final(id aweigh.ScopeID, changes int) {
	if changes == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.of(id, now).final.add(changes, finalMemory, now)
}

// of is what is known of a scope.
func (s *sharing) of(id aweigh.ScopeID, now time.Time) *written {
	w := s.scopes[id]
	if w == nil {
		if now.Sub(s.swept) >= sharesSwept {
			s.swept = now
			for id, w := range s.scopes {
				if now.Sub(w.final.last) > 2*sharesSwept && now.Sub(w.handed.last) > 2*sharesSwept {
					delete(s.scopes, id)
				}
			}
		}
		w = &written{}
		s.scopes[id] = w
	}
	return w
}

// wants is how many changes a second are handed in to a scope, or were before it was held.
func (w *written) wants(now time.Time) float64 {
	return max(w.wanted, w.handed.of(handedMemory, now))
}

// busy reports whether a scope is one of those that give way.
func (s *sharing) busy(w *written, now time.Time) bool {
	return !w.much.IsZero() && now.Sub(w.much) >= shareGrace && w.wants(now) >= max(shareMuch, s.busiest/shareUnequal)
}

// look finds the rate until the next look.
func (s *sharing) look(now time.Time) {
	queue := s.queue()
	s.mu.Lock()
	defer s.mu.Unlock()
	unequal, handed := s.survey(now)
	limit := s.limiter.Limit()
	switch {
	case !unequal, limit != rate.Inf && handed < float64(limit)/2: // who wants less than half of it is not held by it
		limit = rate.Inf
	case limit == rate.Inf && queue > shareQueue:
		if now.Sub(s.lastly) > shareAgain {
			s.before = 0
		}
		s.before = max(s.before, handed)
		limit = rate.Limit(max(handed*shareFirst, s.before*shareLeast, shareMuch))
	case limit == rate.Inf:
	case queue > shareQueue:
		limit = rate.Limit(max(float64(limit)*shareFalls, s.before*shareLeast, shareMuch))
	default:
		limit *= shareRises
	}
	if limit != rate.Inf {
		s.lastly = now
	}
	for _, w := range s.scopes {
		switch {
		case limit == rate.Inf:
			w.wanted = 0
		case w.wanted == 0 && s.busy(w, now):
			w.wanted = w.handed.of(handedMemory, now)
		}
	}
	s.limiter.SetLimit(limit)
}

// survey reports whether a scope is written to now, and others far more, and how many changes a second are handed in to
// those.
func (s *sharing) survey(now time.Time) (unequal bool, handed float64) {
	s.busiest = 0
	few := shareFew
	if s.limiter.Limit() != rate.Inf {
		few = shareFewer
	}
	for _, w := range s.scopes {
		rate := w.handed.of(handedMemory, now)
		if w.wanted == 0 && rate < shareMuch || rate < min(shareMuch, w.wanted*shareLeast/5) { // it is over, and not held
			w.much, w.wanted = time.Time{}, 0
		}
		if !w.much.IsZero() {
			s.busiest = max(s.busiest, w.wants(now))
		}
	}
	for _, w := range s.scopes {
		if s.busy(w, now) {
			handed += w.handed.of(handedMemory, now)
			continue
		}
		final := w.final.of(finalMemory, now)
		if final < few || max(final, w.wants(now)) >= s.busiest/shareUnequal {
			continue
		}
		usual := time.Duration(float64(time.Second) / final) // between two changes
		unequal = unequal || now.Sub(w.final.last) <= max(sharePause, shareSilent*usual)
	}
	return unequal && handed > 0, handed
}

// rate is how many changes of a scope became final a second, of late.
func (s *sharing) rate(id aweigh.ScopeID) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.scopes[id]; w != nil {
		return w.final.of(finalMemory, s.now())
	}
	return 0
}

// held tells how many changes a second busy scopes are held to, 0 for any number, and how many waited.
func (s *sharing) held() (perSecond float64, waited uint64) {
	if l := s.limiter.Limit(); l != rate.Inf {
		perSecond = float64(l)
	}
	return perSecond, s.waited.Load()
}

// flow is how often something happens a second: an average in which what is as old as its memory weighs a third of
// what happens now.
type flow struct {
	average float64
	last    time.Time // that something happened
}

// add counts n more.
func (f *flow) add(n int, memory time.Duration, now time.Time) {
	f.average, f.last = f.of(memory, now)+float64(n)/memory.Seconds(), now
}

// of is how often a second, as of now.
func (f *flow) of(memory time.Duration, now time.Time) float64 {
	return f.average * math.Exp(-now.Sub(f.last).Seconds()/memory.Seconds())
}

// schedulerSamples is of how many times that a goroutine becomes ready to run the runtime measures one
// (runtime.gTrackingPeriod).
const schedulerSamples = 8

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
		return schedulerSamples * waited / passed.Seconds() / float64(runtime.GOMAXPROCS(0))
	}
}
