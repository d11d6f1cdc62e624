package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aweigh/aweigh/sim/scenario"
)

// delayModel draws how long frames take. Integers alone: floating point differs
// between processors, and a run must not.
type delayModel struct {
	scenario.Links
	regions []int // by node, in turn
}

func newDelayModel(l scenario.Links) delayModel {
	m := delayModel{Links: l}
	names := l.Regions
	if len(names) == 0 {
		names = scenario.Regions
	}
	for _, name := range names {
		m.regions = append(m.regions, max(0, slices.Index(scenario.Regions, name)))
	}
	return m
}

func (m *delayModel) delay(r *rand.Rand, from, to int) time.Duration {
	d := m.Delay
	switch m.Model {
	case "uniform":
		if m.Spread > 0 {
			d += time.Duration(r.Int64N(int64(m.Spread) + 1))
		}
	case "lognormal":
		d = logNormal(r, m.Delay, m.Spread)
	case "regions":
		a, b := m.regions[from%len(m.regions)], m.regions[to%len(m.regions)]
		base := time.Duration(roundTrip[a][b]) * time.Millisecond / 2
		d = base + time.Duration(r.Int64N(int64(base/5+time.Millisecond))) // jitter of a fifth
	}
	return min(max(d, time.Microsecond), m.Most)
}

// logNormal draws from a log-normal distribution by its median and by how far
// above it one standard deviation lies: median · (1 + spread/median)^z.
func logNormal(r *rand.Rand, median, spread time.Duration) time.Duration {
	if median <= 0 {
		return 0
	}
	// z in 1/65536: the sum of twelve uniform numbers, less six (Irwin and Hall).
	z := int64(-6 * fix)
	for range 12 {
		z += r.Int64N(fix)
	}
	sigma := log2(fix + int64(spread)*fix/int64(median))
	return time.Duration(int64(median) / 64 * exp2(z*sigma/fix) / (fix / 64))
}

// fix is 1 in fixed point.
const fix = 1 << 16

// log2 of a fixed-point number of at least 1, by repeated squaring.
func log2(x int64) (y int64) {
	for ; x >= 2*fix; x /= 2 {
		y += fix
	}
	for bit := int64(fix / 2); bit > 0; bit /= 2 {
		if x = x * x / fix; x >= 2*fix {
			x /= 2
			y += bit
		}
	}
	return y
}

// exp2 of a fixed-point number, as a fixed-point number, at most 1024.
func exp2(x int64) int64 {
	n, f := x>>16, x&(fix-1)
	// 2^f = 1 + f·(0.6565 + 0.3435·f) within 0.3 %.
	y := fix + f*(43025+22511*f/fix)/fix
	switch {
	case n >= 10:
		return fix << 10
	case n >= 0:
		return y << n
	case n > -17:
		return y >> -n
	}
	return 0
}

// roundTrip holds typical round-trip times between large cloud regions, in
// milliseconds, rounded; a frame takes half of it.
var roundTrip = [8][8]int{
	{2, 70, 70, 90, 115, 220, 160, 200},
	{70, 2, 130, 145, 180, 170, 100, 140},
	{70, 130, 2, 25, 180, 180, 210, 260},
	{90, 145, 25, 2, 205, 160, 230, 290},
	{115, 180, 180, 205, 2, 330, 260, 310},
	{220, 170, 180, 160, 330, 2, 70, 95},
	{160, 100, 210, 230, 260, 70, 2, 105},
	{200, 140, 260, 290, 310, 95, 105, 2},
}
