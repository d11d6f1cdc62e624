package trust

import "slices"

// steps is into how many parts the way from old weights to new ones is divided.
const steps = 1 << 20

// weightPath is the straight line from the weights of one epoch to those that scores
// and caps give for the next. Removed anchors are gone at its start already, and
// new ones stand there with 0.
type weightPath struct {
	claims   []claim // groups; raw is not used
	from, to []uint64
	caps     caps // which the end keeps
}

// walk is the weights after as much of the way as budget, the sum of all
// changes, allows. The caps come first: where the start breaks them, because
// anchors were removed or caps became tighter, it goes on to the first point
// that keeps them, whatever the sum. Caps are linear and the end keeps them, so
// there is such a point, and from it on all do. Where none of the old anchors
// is left, there is nothing to walk from, and the end is taken.
func (y weightPath) walk(budget uint64) []uint64 {
	if slices.Max(y.from) == 0 || change(y.from, y.to) <= budget {
		return y.to
	}
	first := y.firstWithin()
	best, ok := y.at(first)
	if !ok {
		first, best = y.firstWhole(first)
	}
	if change(y.from, best) > budget {
		return best
	}
	low, high := first, uint64(steps) // low is within budget, high is not
	for high-low > 1 {
		mid := low + (high-low)/2
		if w, ok := y.at(mid); ok && change(y.from, w) <= budget {
			low, best = mid, w
		} else {
			high = mid
		}
	}
	return best
}

// firstWithin is the first step whose exact weights keep within the caps.
func (y weightPath) firstWithin() uint64 {
	exact := make([]uint64, len(y.from))
	within := func(step uint64) bool {
		for i := range exact {
			exact[i] = y.from[i]*(steps-step) + y.to[i]*step // below 2^52, and so is their sum
		}
		return y.caps.hold(y.claims, exact)
	}
	if within(0) {
		return 0
	}
	low, high := uint64(0), uint64(steps) // low breaks a cap, high keeps them
	for high-low > 1 {
		if mid := low + (high-low)/2; within(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// firstWhole is a step beyond one that whole numbers cannot keep, which they can,
// and its weights: where weights are a few units only, that may be the end.
func (y weightPath) firstWhole(low uint64) (uint64, []uint64) {
	high, best := uint64(steps), y.to
	for high-low > 1 {
		mid := low + (high-low)/2
		if w, ok := y.at(mid); ok {
			high, best = mid, w
		} else {
			low = mid
		}
	}
	return high, best
}

// at is the weights after a step, in whole numbers of at least 1, rounded toward
// the start and then cut to the caps, which rounding can break by a little. It
// is false where whole numbers cannot keep them.
func (y weightPath) at(step uint64) ([]uint64, bool) {
	if step == steps {
		return y.to, true
	}
	claims := make([]claim, len(y.from))
	for i := range claims {
		from, to := y.from[i], y.to[i]
		w := from + (max(from, to)-from)*step/steps - (from-min(from, to))*step/steps
		claims[i] = claim{max(w, 1), y.claims[i].group}
	}
	return newTank(claims).fill(y.caps)
}

// change is the sum of all differences.
func change(from, to []uint64) (sum uint64) {
	for i := range from {
		sum += max(from[i], to[i]) - min(from[i], to[i])
	}
	return sum
}
