package sim

import (
	"time"

	"github.com/aweigh/aweigh"
)

// clock is a node's own: off by a constant, and running too fast or too slowly.
type clock struct {
	offset time.Duration
	drift  int64          // parts per million
	since  aweigh.Instant // when drift began
}

// read is what the clock shows at a time of the world.
func (c clock) read(now aweigh.Instant) aweigh.Instant {
	return now.Add(c.offset + c.drifted(now))
}

func (c clock) drifted(now aweigh.Instant) time.Duration {
	return now.Sub(c.since) / 1000 * time.Duration(c.drift) / 1000
}

// wait is about how long it is until the clock shows an instant: at least a
// microsecond, and never much too long, so that the caller can wait again.
func (c clock) wait(now, until aweigh.Instant) time.Duration {
	d := until.Sub(c.read(now))
	if d <= 0 {
		return 0
	}
	return max(time.Microsecond, d/1000*million/time.Duration(million+c.drift)*1000)
}

// set changes the clock without a jump other than that of the offset.
func (c *clock) set(now aweigh.Instant, offset time.Duration, drift int64) {
	*c = clock{offset: offset, drift: drift, since: now}
}
