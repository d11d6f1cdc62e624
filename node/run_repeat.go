package node

import (
	"sync/atomic"

	"golang.org/x/time/rate"
)

// repeatsASecond bounds the frames in which a node repeats, in all scopes together,
// what others may have heard, and repeatsAtOnce how many of them may follow one another.
// One scope repeats 32 a second at most, but for bundles.
const (
	repeatsASecond = 200
	repeatsAtOnce  = 400
)

// repeats keeps what repeats in many scopes from taking the time that they need to get
// on: where all are slow because there is too much to do, each would repeat itself, and
// be slower. What is left out counts as lost; each scope repeats itself until it gets on,
// so the frames that are let through come to all.
type repeats struct {
	limit *rate.Limiter
	left  atomic.Uint64 // left out
}

func newRepeats() repeats { return repeats{limit: rate.NewLimiter(repeatsASecond, repeatsAtOnce)} }

// may says whether another frame may be repeated.
func (r *repeats) may() bool {
	if r == nil || r.limit.Allow() {
		return true
	}
	r.left.Add(1)
	return false
}
