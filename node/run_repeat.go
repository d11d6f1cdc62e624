package node

import (
	"sync/atomic"

	"golang.org/x/time/rate"
)

// repeatsASecond bounds the frames in which a node repeats, in all scopes together,
// what others may have heard, and repeatsAtOnce how many of them may follow one another.
// One scope repeats 32 a second at most, but for bundles. Each scope has ownRepeats more
// for itself, so that one that repeats much leaves none without.
const (
	repeatsASecond = 200
	repeatsAtOnce  = 400
	ownRepeats     = 1 // per second; bursts of three seconds
)

// repeats keeps what repeats in many scopes from taking the time that they need to get
// on: where all are slow because there is too much to do, each would repeat itself, and
// be slower. What is left out counts as lost.
type repeats struct {
	limit *rate.Limiter
	left  atomic.Uint64 // left out
}

func newRepeats() repeats { return repeats{limit: rate.NewLimiter(repeatsASecond, repeatsAtOnce)} }

// may says whether another frame may be repeated in a scope, which has so much for itself.
func (r *repeats) may(own *rate.Limiter) bool {
	if r == nil || own.Allow() || r.limit.Allow() {
		return true
	}
	r.left.Add(1)
	return false
}
