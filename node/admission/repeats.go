package admission

import (
	"sync/atomic"

	"golang.org/x/time/rate"
)

// repeatsASecond bounds the frames in which a node repeats, in all scopes together, what other nodes may have
// received, and repeatsAtOnce how many of them may follow one another. One scope repeats at most 32 a second, not
// counting bundles. Each scope may repeat ownRepeats more, so that a scope that repeats much does not take the share
// of others.
const (
	repeatsASecond = 200
	repeatsAtOnce  = 400
	ownRepeats     = 1 // per second; bursts of three seconds
)

// Repeats keeps the repetitions of many scopes from taking the time that the scopes need to make progress: if all are
// slow because there is too much to do, each would repeat itself and so become slower. A repetition that is left out
// counts as lost. Safe for concurrent use.
type Repeats struct {
	limit *rate.Limiter
	left  atomic.Uint64 // left out
}

// NewRepeats returns the limit of a node.
func NewRepeats() *Repeats { return &Repeats{limit: rate.NewLimiter(repeatsASecond, repeatsAtOnce)} }

// ScopeRepeats is the limit of one scope. The zero value limits nothing. For one goroutine at a time.
type ScopeRepeats struct {
	all *Repeats
	own *rate.Limiter // nil: none recently
}

// Scope returns the limit of a scope.
func (r *Repeats) Scope() ScopeRepeats { return ScopeRepeats{all: r} }

// May reports whether another frame may be repeated.
func (s *ScopeRepeats) May() bool {
	if s.all == nil {
		return true
	}
	if s.own == nil {
		s.own = rate.NewLimiter(ownRepeats, 3*ownRepeats)
	}
	if s.own.Allow() || s.all.limit.Allow() {
		return true
	}
	s.all.left.Add(1)
	return false
}

// FreeMemory frees memory, after a time without repetitions in which the scope's own limit was filled again.
func (s *ScopeRepeats) FreeMemory() { s.own = nil }
