package scope

import (
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/refusal"
)

// The time of a scope is that of its newest block. It grows with every block, and all
// dates of the scope (validity, leases, motions, notices, revisions) depend on it
// alone. An honest leader takes the time of its clock; where the scope's time is ahead
// of that, as after all clocks were wrong for a while, each block adds the smallest
// step until the clocks have caught up. See docs/decisions/0037-block-time.md.

// timeStep is by how much a block's time exceeds its parent's at least.
const timeStep = time.Nanosecond

// ErrEarly is wrapped where a block's time is ahead of a clock, and not the next after its parent's.
var ErrEarly = refusal.New(refusal.Early, "scope: a block of a time to come")

// NextTime is the time of a block on top of the state, for a leader whose clock shows now.
func (s *State) NextTime(now aweigh.Instant) aweigh.Instant {
	return max(now, s.head.Time.Add(timeStep))
}

// CheckTime reports whether a block on top of the state may have a time, for a node whose clock shows
// now (P13). CheckHeader checks that it is after the parent's. Errors wrap ErrInvalid and ErrEarly.
func (s *State) CheckTime(at, now aweigh.Instant, lim *Limits) error {
	if Early(at, s.head.Time, now.Add(lim.Drift)) {
		return fmt.Errorf("%w: %w, by %v", ErrInvalid, ErrEarly, at.Sub(now))
	}
	return nil
}

// Early reports whether a block's time is beyond an instant, and by more than the smallest
// step past its parent's.
func Early(at, parent, most aweigh.Instant) bool {
	return at > most && at > parent.Add(timeStep)
}
