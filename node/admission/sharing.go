package admission

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
)

// Sharing makes scopes whose clients write much give way to scopes with few writes, which would otherwise wait behind
// them for a processor at every step of a write. It does nothing while only one scope is written to, or while all
// scopes are written to about equally. Otherwise, this node's clients of the busy scopes together are limited to a
// rate, which falls while goroutines wait for processors and rises while they do not. CockroachDB limits its elastic
// work in this way (I. Sharif, "Rubbing control theory on the Go scheduler", 2022). It uses the longest waits and not
// the number of waiting goroutines; the former says less if there is little work. Like Pace, this is a limit of a node
// on its own clients, and no rule of the chain. Safe for concurrent use.
type Sharing struct {
	now     func() time.Time
	queue   func() float64 // see RunQueue; of the goroutine that holds looking
	limiter *rate.Limiter  // of all busy scopes together
	waited  atomic.Uint64  // changes that had to wait, since the start

	line sync.Mutex // held while a place is taken: a place can only be given back whole if none was taken behind it

	looking sync.Mutex // held during a look
	looked  time.Time

	mu      sync.Mutex
	scopes  map[aweigh.ScopeID]*written
	busiest float64   // the most changes a second that a scope wants, as of the last look
	before  float64   // what clients of the busy scopes handed in together while they were not limited
	lastly  time.Time // when they were last limited
	swept   time.Time // when idle scopes were last forgotten
}

// written records how much is written to a scope.
type written struct {
	handed flow      // changes that this node's clients hand in, or want to
	final  flow      // changes that became final, from any node
	wanted float64   // of handed, before the scope was limited; 0 if it is not limited
	much   time.Time // since when at least shareMuch is handed in; zero if it is not
}

const (
	shareLooks   = 100 * time.Millisecond // how often a rate is determined, while there are writes
	shareQueue   = 0.8                    // goroutines that wait for each processor: more are too many
	shareFirst   = 0.5                    // the first rate, as a part of what was taken before
	shareFalls   = 0.9                    // times the rate, if there are still too many
	shareRises   = 1.03                   // times the rate, otherwise
	shareLeast   = 0.25                   // of what was taken before, even if other work makes goroutines wait
	shareAgain   = 5 * time.Second        // scopes that were limited so recently have not taken what they can since
	shareAtOnce  = 16                     // changes that may come without a wait; then one by one, since large blocks are what others wait behind
	shareLongest = 2 * time.Second        // for a turn; then it is refused, so that no long line takes the place of other requests

	shareMuch    = 200.0                  // changes a second: a scope with fewer does not delay others
	shareGrace   = time.Second            // for which a scope may exceed shareMuch without a limit
	shareUnequal = 4.0                    // a scope with so many times the changes of another gives way to it
	shareFew     = 0.5                    // changes a second: a scope with fewer hardly ever waits
	shareFewer   = 0.3                    // the same, for scopes to which others give way already
	shareSilent  = 4                      // times as long as between two changes on average: then a scope is not waited for
	sharePause   = 200 * time.Millisecond // that does not count as silence yet

	handedMemory = time.Second
	finalMemory  = 5 * time.Second
	sharesSwept  = 10 * time.Second
)

// NewSharing returns the limit of a node. queue returns how many goroutines have waited for each processor on average
// since its last call, as RunQueue does.
func NewSharing(queue func() float64) *Sharing {
	return &Sharing{
		now: time.Now, queue: queue,
		limiter: rate.NewLimiter(rate.Inf, shareAtOnce), scopes: make(map[aweigh.ScopeID]*written),
	}
}

// Wait waits until a client may hand in changes to a scope: not at all unless other scopes go first. Errors wrap
// ErrBusy, or are those of ctx; nothing was done then.
func (s *Sharing) Wait(ctx context.Context, id aweigh.ScopeID, changes int, prefix []byte) error {
	if !s.hand(id, changes) {
		return nil
	}
	last := shareLongest + time.Second
	if at, ok := ctx.Deadline(); ok {
		last = min(last, turnTime(at))
	}
	delay, giveUp, ok := s.reserve(changes, last)
	if !ok {
		return fmt.Errorf("%w: processors are short, and the scope of %q, which is written to far more than others, gives way", machine.ErrBusy, prefix)
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

// reserve takes a place in the line. It returns false if the place begins too late, or ends later than last. giveUp
// leaves the line again; the caller must hold line.
func (s *Sharing) reserve(changes int, last time.Duration) (delay time.Duration, giveUp func(now time.Time), ok bool) {
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
func (s *Sharing) hand(id aweigh.ScopeID, changes int) bool {
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

// Final counts changes of a scope that became final.
func (s *Sharing) Final(id aweigh.ScopeID, changes int) {
	if changes == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.of(id, now).final.add(changes, finalMemory, now)
}

// of returns the record of a scope.
func (s *Sharing) of(id aweigh.ScopeID, now time.Time) *written {
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

// wants returns how many changes a second are handed in to a scope, or were before it was limited.
func (w *written) wants(now time.Time) float64 {
	return max(w.wanted, w.handed.of(handedMemory, now))
}

// busy reports whether a scope is one of those that give way.
func (s *Sharing) busy(w *written, now time.Time) bool {
	return !w.much.IsZero() && now.Sub(w.much) >= shareGrace && w.wants(now) >= max(shareMuch, s.busiest/shareUnequal)
}

// look determines the rate until the next look.
func (s *Sharing) look(now time.Time) {
	queue := s.queue()
	s.mu.Lock()
	defer s.mu.Unlock()
	unequal, handed := s.survey(now)
	limit := s.limiter.Limit()
	switch {
	case !unequal, limit != rate.Inf && handed < float64(limit)/2: // clients that want less than half are not held
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

// survey reports whether one scope is written to now and others far more, and how many changes a second are handed in
// to the latter.
func (s *Sharing) survey(now time.Time) (unequal bool, handed float64) {
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

// Rate returns how many changes of a scope became final a second, recently.
func (s *Sharing) Rate(id aweigh.ScopeID) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.scopes[id]; w != nil {
		return w.final.of(finalMemory, s.now())
	}
	return 0
}

// Held returns the limit of busy scopes in changes a second, 0 for none, and how many changes waited.
func (s *Sharing) Held() (perSecond float64, waited uint64) {
	if l := s.limiter.Limit(); l != rate.Inf {
		perSecond = float64(l)
	}
	return perSecond, s.waited.Load()
}

// flow is the rate of some event a second: an average in which an event that is as old as the memory counts a third of
// one that happens now.
type flow struct {
	average float64
	last    time.Time // of the last event
}

// add counts n more.
func (f *flow) add(n int, memory time.Duration, now time.Time) {
	f.average, f.last = f.of(memory, now)+float64(n)/memory.Seconds(), now
}

// of returns the rate a second as of now.
func (f *flow) of(memory time.Duration, now time.Time) float64 {
	return f.average * math.Exp(-now.Sub(f.last).Seconds()/memory.Seconds())
}
