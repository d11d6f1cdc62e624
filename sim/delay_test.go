package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/sim/scenario"
)

// TestLogNormalHasItsQuantiles compares the integer model with the distribution
// that it stands for: median, and the quantile of one standard deviation.
func TestLogNormalHasItsQuantiles(t *testing.T) {
	const n = 200_000
	for _, c := range []struct{ median, spread time.Duration }{
		{time.Millisecond, 500 * time.Microsecond}, {40 * time.Millisecond, 40 * time.Millisecond}, {5 * time.Millisecond, 100 * time.Millisecond},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		all := make([]time.Duration, n)
		for i := range all {
			all[i] = logNormal(r, c.median, c.spread)
		}
		slices.Sort(all)
		for _, q := range []struct{ share, want float64 }{
			{0.5, float64(c.median)}, {0.841, float64(c.median + c.spread)},
		} {
			if got := float64(all[int(q.share*n)]); math.Abs(got/q.want-1) > 0.05 {
				t.Errorf("median %v, spread %v: quantile %.3f is %v, want %v", c.median, c.spread, q.share, time.Duration(got), time.Duration(q.want))
			}
		}
	}
}

func TestFixedPointFollowsFloats(t *testing.T) {
	for x := int64(fix); x < 1000*fix; x += 997 {
		if got, want := float64(log2(x))/fix, math.Log2(float64(x)/fix); math.Abs(got-want) > 0.001 {
			t.Fatalf("log2(%f) is %f, want %f", float64(x)/fix, got, want)
		}
	}
	for x := int64(-8 * fix); x < 10*fix; x += 997 {
		if got, want := float64(exp2(x))/fix, math.Exp2(float64(x)/fix); math.Abs(got/want-1) > 0.01 {
			t.Fatalf("exp2(%f) is %f, want %f", float64(x)/fix, got, want)
		}
	}
}

func TestRoundTripsAreSymmetric(t *testing.T) {
	for a := range roundTrip {
		for b := range roundTrip {
			if roundTrip[a][b] != roundTrip[b][a] || roundTrip[a][b] <= 0 {
				t.Errorf("%s to %s takes %d ms, back %d", scenario.Regions[a], scenario.Regions[b], roundTrip[a][b], roundTrip[b][a])
			}
		}
	}
	if len(scenario.Regions) != len(roundTrip) {
		t.Errorf("%d regions, %d rows", len(scenario.Regions), len(roundTrip))
	}
}

// TestClockWaitsUntilItShows: repeated waits of the clock's length reach the
// instant, in few steps and not much too late.
func TestClockWaitsUntilItShows(t *testing.T) {
	for _, drift := range []int64{-50_000, -1, 0, 1, 50_000} {
		for _, offset := range []time.Duration{-time.Hour, 0, 2 * time.Second} {
			c := clock{}
			now := start.Add(time.Minute)
			c.set(now, offset, drift)
			until := c.read(now).Add(10 * time.Second)
			steps := 0
			for c.read(now) < until {
				now = now.Add(c.wait(now, until))
				if steps++; steps > 20 {
					t.Fatalf("drift %d, offset %v: does not come to the instant", drift, offset)
				}
			}
			if late := c.read(now).Sub(until); late > 10*time.Microsecond {
				t.Errorf("drift %d, offset %v: %v too late", drift, offset, late)
			}
		}
	}
}

// TestEventsComeInOrder pushes events for the slot at hand and for later ones,
// and pops each once, none before an earlier one.
func TestEventsComeInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, ahead := range []int{50, 1 << slotBits, 20 << slotBits} {
		var q queue
		last, seen := event{}, make(map[uint64]bool)
		pop := func() {
			next := *q.next()
			e := q.pop()
			if e.before(&last) || seen[e.seq] || e.seq != next.seq {
				t.Fatalf("event %d came twice, before an earlier one, or in the place of %d", e.seq, next.seq)
			}
			last, seen[e.seq] = e, true
		}
		const events = 20_000
		for i := range events {
			for q.next() != nil && r.IntN(3) == 0 {
				pop()
			}
			q.push(event{at: last.at + aweigh.Instant(r.IntN(ahead)), seq: uint64(i + 1)})
		}
		for q.next() != nil {
			pop()
		}
		if len(seen) != events {
			t.Errorf("up to %d ns ahead %d of %d events came", ahead, len(seen), events)
		}
	}
}
