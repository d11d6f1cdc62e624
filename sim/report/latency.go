package report

import (
	"math"
	"slices"
	"strconv"
)

// latencyFigure has a panel for each way that frames travel.
func latencyFigure(l Latency) figure {
	f := figure{ID: "latency", Title: "Finality by network and size", Wide: true, Source: &l.Source}
	low, high, least, most := math.Inf(1), 0.0, math.MaxInt, 0
	t := table{Head: []string{"frames", "anchors", "writes", "p10", "p50", "p90", "p99"}, Numbers: true}
	for _, m := range l.Models {
		for _, p := range m.Points {
			slices.Sort(p.Samples)
			row := []string{m.Name, strconv.Itoa(p.Anchors), grouped(uint64(len(p.Samples)))}
			for _, q := range []float64{.1, .5, .9, .99} {
				row = append(row, brief(quantile(p.Samples, q)))
			}
			t.Rows = append(t.Rows, row)
			if len(p.Samples) > 0 {
				low, high = math.Min(low, positive(quantile(p.Samples, .1))), math.Max(high, positive(quantile(p.Samples, .99)))
				least, most = min(least, p.Anchors), max(most, p.Anchors)
			}
		}
	}
	if high == 0 {
		f.Caption = "No write became final in the runs behind this figure."
		return f
	}
	low, high = widen(low, high)
	c := &canvas{width: 960, height: 330}
	const left, gap = 66, 20
	room := (c.width - left - 46 - gap*float64(len(l.Models)-1)) / float64(len(l.Models))
	for i, m := range l.Models {
		x := left + float64(i)*(room+gap)
		g := frame{c, logarithmic(float64(least), float64(most), x, x+room), logarithmic(low, high, 272, 46)}
		ticks, name := g.y.ticks(8), ""
		if i == 0 {
			name = "time to finality"
		}
		for _, v := range ticks {
			y := g.y.at(v)
			c.line("grid", x, y, x+room, y)
			if i == 0 {
				c.text("tick e", x-8, y+4, seconds(v))
			}
		}
		c.text("name", 8, 14, name)
		c.text("panel", x, 38, m.Name)
		bandPanel(g, m, i == len(l.Models)-1)
	}
	c.text("name m", left+(c.width-left-46)/2, 322, "anchors (logarithmic)")
	f.Caption = "From a write's submission to its acknowledgement, in networks where nothing is wrong. The line is the median, the band holds 8 of 10 writes, the dashed line is p99. " +
		"Look at how flat the bands are: the time is a few message delays, however many anchors vote. Nodes stand in the regions in turn, so that small networks span fewer of them."
	f.Drawing = c.svg(f.ID, f.Title, f.Caption)
	f.Tables = []table{t.cut()}
	return f
}

// bandPanel draws one link model; the last one names its lines.
func bandPanel(g frame, m LinkModel, labels bool) {
	var p10, p50, p90, p99 []point
	var anchors []float64
	for _, p := range m.Points {
		if len(p.Samples) == 0 {
			continue
		}
		at := func(q float64) point {
			return point{g.x.at(float64(p.Anchors)), g.y.at(positive(quantile(p.Samples, q)))}
		}
		p10, p50, p90, p99 = append(p10, at(.1)), append(p50, at(.5)), append(p90, at(.9)), append(p99, at(.99))
		anchors = append(anchors, float64(p.Anchors))
	}
	g.horizontal(apart(g.x, anchors, 24), func(v float64) string { return strconv.Itoa(int(v)) }, "")
	if len(p50) == 0 {
		g.text("small m", (g.x.from+g.x.to)/2, (g.y.from+g.y.to)/2, "nothing became final")
		return
	}
	back := slices.Clone(p10)
	slices.Reverse(back)
	g.path("band in", polyline(append(slices.Clone(p90), back...))+"Z", "")
	g.path("curve thin", polyline(p99), "")
	g.path("curve", polyline(p50), "")
	for _, p := range p50 {
		g.dot("curve-dot", p.x, p.y, 3, "")
	}
	if labels {
		last := len(p50) - 1
		ys := spread([]float64{p99[last].y, p90[last].y, p50[last].y, p10[last].y}, 13, g.y.from)
		for i, name := range []string{"p99", "p90", "p50", "p10"} {
			g.text("small", g.x.to+7, ys[i]+4, name)
		}
	}
}
