package model

import (
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// follows reports whether a block on top of the view may have a time, by the words of decision 0037, for a node whose
// clock shows now: parent < t ≤ max(parent + 1 ns, now + drift).
func (v *View) follows(t, now aweigh.Instant, drift time.Duration) bool {
	return v.Time < t && t <= max(v.Time.Add(1), now.Add(drift))
}

// CompareTimes compares which times of the next block a state takes, and which one its leader gives it, for clocks
// around the newest block's time, and times around the bound that each clock sets.
func (v *View) CompareTimes(s *scope.State, lim *scope.Limits) (d Differences) {
	head := s.Head()
	for _, ahead := range []time.Duration{-time.Hour, -lim.Drift - 1, -lim.Drift, 1 - lim.Drift, -1, 0, 1, lim.Drift, time.Hour} {
		now := v.Time.Add(ahead)
		takes := func(t aweigh.Instant) bool {
			h, _, err := s.Claim(scope.Header{Epoch: head.Epoch, View: head.View + 1, Time: t})
			return !d.fail(err, "claiming a header") && s.CheckHeader(h) == nil && s.CheckTime(t, now, lim) == nil
		}
		for _, from := range []aweigh.Instant{v.Time, now, now.Add(lim.Drift)} {
			for step := time.Duration(-2); step <= 2; step++ {
				t := from.Add(step)
				got := takes(t)
				d.look(got == v.follows(t, now, lim.Drift), "a block %v after the newest, where the clock is %v after it: taken %v", t.Sub(v.Time), ahead, got)
			}
		}
		next := max(now, v.Time.Add(1))
		d.look(s.NextTime(now) == next && takes(next), "a leader whose clock is %v after the newest block gives its block %v", ahead, s.NextTime(now).Sub(v.Time))
	}
	return d
}
