package sim

import (
	"math/rand/v2"
	"time"

	"github.com/aweigh/aweigh/sim/scenario"
)

// drawTime draws a time of day for a request: any until Stop or, where the world is busy in bursts, one in a burst.
func (w *World) drawTime(r *rand.Rand) time.Duration {
	n := time.Duration(w.Scenario.Load.Bursts)
	if n == 0 {
		return time.Duration(r.Int64N(int64(w.Scenario.Stop)))
	}
	at := time.Duration(r.Int64N(int64(n * scenario.Burst)))
	return at/scenario.Burst*w.burstPeriod() + at%scenario.Burst
}

// burstPeriod is the time from the beginning of a burst to that of the next: the first is at the beginning, and the
// last ends at Stop.
func (w *World) burstPeriod() time.Duration {
	return (w.Scenario.Stop - scenario.Burst) / time.Duration(w.Scenario.Load.Bursts-1)
}

// burst is the burst that is now, or was last.
func (w *World) burst() int { return int(w.Now() / w.burstPeriod()) }

// untilBusy is how long it is, at a time of day, until the world is busy. It is from Stop on, until it has healed.
func (w *World) untilBusy(at time.Duration) time.Duration {
	if w.Scenario.Load.Bursts > 0 && at < w.Scenario.Stop {
		if in := at % w.burstPeriod(); in >= scenario.Burst {
			return w.burstPeriod() - in
		}
	}
	return 0
}

// atBusy is At, but waits for the next burst if there is none then.
func (w *World) atBusy(after time.Duration, do func()) { w.at(after+w.untilBusy(w.Now()+after), do) }
