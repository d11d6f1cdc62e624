package report

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// quantile is the least sample that at least part of all do not exceed; 0 if
// there are none. The samples are sorted.
func quantile(sorted []time.Duration, part float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	i := int(math.Ceil(part*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// finalityFigure shows which share of writes was final after how long.
func finalityFigure(samples []time.Duration) figure {
	f := figure{ID: "finality", Title: "From a write to its finality"}
	if len(samples) == 0 {
		f.Caption = "No write was acknowledged in this run."
		return f
	}
	sorted := slices.Sorted(slices.Values(samples))
	p50, p99 := quantile(sorted, .5), quantile(sorted, .99)
	low, high := widen(positive(sorted[0]), positive(sorted[len(sorted)-1]))
	c := &canvas{width: 860, height: 268}
	g := frame{c, logarithmic(low, high, 60, 830), linear(0, 1, 208, 34)}
	g.vertical([]float64{0, .25, .5, .75, 1}, percent, "writes that are final")
	g.horizontal(g.x.ticks(10), seconds, "time since the client sent the write (virtual)")

	steps := []point{{g.x.at(low), g.y.at(0)}}
	for i, s := range sorted {
		p := point{g.x.at(positive(s)), g.y.at(float64(i+1) / float64(len(sorted)))}
		if last := &steps[len(steps)-1]; p.x-last.x < .3 {
			last.y = p.y
			continue
		}
		steps = append(steps, p)
	}
	steps = append(steps, point{g.x.to, g.y.at(1)})
	c.path("curve", stairs(steps), "")

	marks := []struct {
		part float64
		at   time.Duration
		name string
	}{{.5, p50, "p50"}, {.99, p99, "p99"}}
	for i, m := range marks {
		x, y := g.x.at(positive(m.at)), g.y.at(m.part)
		c.line("drop", x, y, x, g.y.from)
		c.dot("curve-dot", x, y, 3.5, "")
		label := m.name + " " + brief(m.at)
		class, lx := "strong", x+9
		if lx+wide(label, 13) > c.width-4 {
			class, lx = "strong e", x-9
		}
		c.text(class, lx, y+18+float64(i)*2, label)
	}
	f.Caption = fmt.Sprintf("Each write's time from submission to its acknowledgement, which is given once the write is final: %s. "+
		"Half took at most %s and 99 in 100 at most %s; the slowest took %s. A step far to the right is a write that waited for a view to time out, or for a fault to end.",
		plural(len(sorted), "write"), brief(p50), brief(p99), brief(sorted[len(sorted)-1]))
	f.Drawing = c.svg(f.ID, f.Title, f.Caption)
	t := table{Head: []string{"share of writes", "final within"}, Numbers: true}
	for _, q := range []float64{0, .1, .25, .5, .75, .9, .95, .99, .999, 1} {
		name := percent(q)
		switch q {
		case 0:
			name = "fastest"
		case 1:
			name = "slowest"
		}
		t.Rows = append(t.Rows, []string{name, brief(quantile(sorted, q))})
	}
	f.Tables = []table{t}
	return f
}

// positive is a duration in seconds, above 0 for a logarithm's sake.
func positive(d time.Duration) float64 { return math.Max(d.Seconds(), 1e-6) }
