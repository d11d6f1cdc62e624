package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// scale maps values to a stretch of a canvas.
type scale struct {
	low, high float64 // values
	from, to  float64 // places
	log       bool
}

// linear is a scale that is sound even where low and high are the same.
func linear(low, high, from, to float64) scale {
	if !(high > low) {
		high = low + 1
	}
	return scale{low: low, high: high, from: from, to: to}
}

// logarithmic is a scale of values above 0.
func logarithmic(low, high, from, to float64) scale {
	if !(low > 0) {
		low = 1
	}
	if !(high > low) {
		high = low * 10
	}
	return scale{low: low, high: high, from: from, to: to, log: true}
}

// at is the place of a value; what lies outside is moved to the edge.
func (s scale) at(v float64) float64 {
	v = math.Min(math.Max(v, s.low), s.high)
	part := (v - s.low) / (s.high - s.low)
	if s.log {
		part = math.Log(v/s.low) / math.Log(s.high/s.low)
	}
	return s.from + part*(s.to-s.from)
}

// ticks are round values on the scale, about so many.
func (s scale) ticks(about int) (t []float64) {
	if s.log {
		return s.logTicks(about)
	}
	step := niceStep((s.high - s.low) / float64(about))
	for i := math.Ceil(s.low/step - 1e-9); i*step <= s.high+step*1e-9; i++ {
		t = append(t, i*step+0) // no -0
	}
	return t
}

// niceStep is the least of 1, 2 and 5 times a power of ten that is at least x.
func niceStep(x float64) float64 {
	base := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 5} {
		if m*base >= x*(1-1e-9) {
			return m * base
		}
	}
	return 10 * base
}

// logTicks are powers of ten, with 2 and 5 between them if there is room.
func (s scale) logTicks(about int) (t []float64) {
	for _, parts := range [][]float64{{1, 2, 5}, {1, 3}, {1}} {
		t = nil
		for e := math.Floor(math.Log10(s.low)); e <= math.Ceil(math.Log10(s.high)); e++ {
			for _, m := range parts {
				if v := m * math.Pow(10, e); v >= s.low*(1-1e-9) && v <= s.high*(1+1e-9) {
					t = append(t, v)
				}
			}
		}
		if len(t) <= about+1 {
			break
		}
	}
	return t
}

// widen moves the ends of a logarithmic range outward to 1, 2 or 5 times a power of ten.
func widen(low, high float64) (float64, float64) {
	down, up := low, high
	for _, m := range []float64{1, 2, 5, 10} {
		if v := m * math.Pow(10, math.Floor(math.Log10(low))); v <= low*(1+1e-9) {
			down = v
		}
		if v := m * math.Pow(10, math.Floor(math.Log10(high))); v >= high*(1-1e-9) {
			up = v
			break
		}
	}
	return down, up
}

// frame is a plot: where its scales begin and end, with grid and axes.
type frame struct {
	*canvas
	x, y scale
}

// horizontal draws the x axis below the plot, with labels and their meaning.
func (f frame) horizontal(ticks []float64, label func(float64) string, name string) {
	base := f.y.from
	f.line("axis", f.x.from, base, f.x.to, base)
	for _, t := range ticks {
		x := f.x.at(t)
		f.line("axis", x, base, x, base+4)
		f.text("tick m", x, base+17, label(t))
	}
	if name != "" {
		f.text("name m", (f.x.from+f.x.to)/2, base+36, name)
	}
}

// vertical draws the grid of the y axis, with labels to the left and their
// meaning above.
func (f frame) vertical(ticks []float64, label func(float64) string, name string) {
	for _, t := range ticks {
		y := f.y.at(t)
		f.line("grid", f.x.from, y, f.x.to, y)
		f.text("tick e", f.x.from-8, y+4, label(t))
	}
	if name != "" {
		f.text("name", f.x.from-34, f.y.to-14, name)
	}
}

// clock labels times in seconds that are a step apart, all in one unit.
func clock(ticks []float64) func(float64) string {
	if len(ticks) < 2 {
		return seconds
	}
	unit, factor := nbsp+"s", 1.0
	if ticks[len(ticks)-1] < 1 {
		unit, factor = nbsp+"ms", 1000
	}
	places := max(0, int(math.Ceil(-math.Log10((ticks[1]-ticks[0])*factor)-1e-9)))
	return func(v float64) string {
		if v == 0 {
			return "0"
		}
		return strconv.FormatFloat(v*factor, 'f', places, 64) + unit
	}
}

// nbsp keeps a number and its unit on one line.
const nbsp = "\u00a0"

// seconds labels a duration that is given in seconds.
func seconds(v float64) string { return brief(time.Duration(math.Round(v * 1e9))) }

// brief is a duration with three digits at most.
func brief(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d < 0:
		return "-" + brief(-d)
	case d < time.Microsecond:
		return fmt.Sprintf("%d"+nbsp+"ns", d.Nanoseconds())
	case d < 999500*time.Nanosecond:
		return digits3(float64(d)/1e3) + nbsp + "µs"
	case d < 999500*time.Microsecond:
		return digits3(float64(d)/1e6) + nbsp + "ms"
	case d < 10*time.Minute:
		return digits3(d.Seconds()) + nbsp + "s"
	}
	return d.Round(time.Second).String()
}

// digits3 is a number with three significant digits at most.
func digits3(v float64) string {
	places := 2
	switch a := math.Abs(v); {
	case a >= 99.95:
		places = 0
	case a >= 9.995:
		places = 1
	}
	s := strconv.FormatFloat(v, 'f', places, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// short labels a count: 1,500 and 2.5 M.
func short(v float64) string {
	switch {
	case v >= 1e9:
		return digits3(v/1e9) + nbsp + "G"
	case v >= 1e6:
		return digits3(v/1e6) + nbsp + "M"
	case v >= 1e4:
		return digits3(v/1e3) + nbsp + "k"
	case v >= 1000:
		return grouped(uint64(math.Round(v)))
	}
	return digits3(v)
}

// size labels a number of bytes.
func size(v float64) string {
	switch {
	case v >= 1e9:
		return digits3(v/1e9) + nbsp + "GB"
	case v >= 1e6:
		return digits3(v/1e6) + nbsp + "MB"
	case v >= 1e3:
		return digits3(v/1e3) + nbsp + "kB"
	}
	return digits3(v) + nbsp + "B"
}

// percent labels a part of 1.
func percent(v float64) string { return digits3(100*v) + nbsp + "%" }
