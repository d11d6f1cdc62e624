package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
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

// apart leaves out values whose places are too near to the one before.
func apart(s scale, values []float64, least float64) (kept []float64) {
	for _, v := range values {
		if len(kept) == 0 || math.Abs(s.at(v)-s.at(kept[len(kept)-1])) >= least {
			kept = append(kept, v)
		}
	}
	return kept
}

// spread moves places, which grow, apart so far that labels fit, and keeps their
// middle, unless they would fall below a floor.
func spread(ys []float64, least, floor float64) []float64 {
	out := slices.Clone(ys)
	var shift float64
	for i := 1; i < len(out); i++ {
		out[i] = math.Max(out[i], out[i-1]+least)
	}
	for i := range out {
		shift += (out[i] - ys[i]) / float64(len(out))
	}
	for i := range out {
		out[i] = math.Min(out[i]-shift, floor-least*float64(len(out)-1-i))
	}
	return out
}

// costFigure holds messages and bytes of a decision against the square of n.
func costFigure(k Cost) figure {
	f := figure{ID: "cost", Title: "What a decision costs", Wide: true, Source: &k.Source}
	var n, messages, bytes []float64
	t := table{Head: []string{"anchors", "blocks", "messages per block", "per block and pair of anchors", "bytes per block"}, Numbers: true}
	for _, p := range k.Points {
		if p.Blocks <= 0 || p.Messages == 0 || p.Anchors < 1 {
			continue
		}
		m, b := float64(p.Messages)/float64(p.Blocks), float64(p.Bytes)/float64(p.Blocks)
		n, messages, bytes = append(n, float64(p.Anchors)), append(messages, m), append(bytes, math.Max(b, 1))
		t.Rows = append(t.Rows, []string{strconv.Itoa(p.Anchors), grouped(uint64(p.Blocks)), grouped(uint64(math.Round(m))), digits3(m / float64(p.Anchors*p.Anchors)), size(b)})
	}
	if len(n) == 0 {
		f.Caption = "No block became final in the runs behind this figure."
		return f
	}
	c := &canvas{width: 960, height: 340}
	for i, v := range []struct {
		name   string
		values []float64
		label  func(float64) string
	}{{"messages per final block", messages, short}, {"bytes sent per final block, over all links", bytes, size}} {
		x := 70 + float64(i)*475
		ceiling := slices.Max(v.values)
		for j := range n {
			ceiling = math.Max(ceiling, v.values[0]*n[j]*n[j]/(n[0]*n[0]))
		}
		low, high := widen(slices.Min(v.values), ceiling)
		g := frame{c, logarithmic(n[0], n[len(n)-1], x, x+340), logarithmic(low, high, 280, 40)}
		g.vertical(g.y.ticks(8), v.label, v.name)
		g.horizontal(apart(g.x, n, 24), func(v float64) string { return strconv.Itoa(int(v)) }, "anchors (logarithmic)")
		var line, ref []point
		for j := range n {
			line = append(line, point{g.x.at(n[j]), g.y.at(v.values[j])})
			ref = append(ref, point{g.x.at(n[j]), g.y.at(v.values[0] * n[j] * n[j] / (n[0] * n[0]))})
		}
		c.path("ref", polyline(ref), "")
		c.path("curve", polyline(line), "")
		for j, p := range line {
			c.dot("curve-dot", p.x, p.y, 3.2, fmt.Sprintf("%d anchors: %s", int(n[j]), v.label(v.values[j])))
		}
		last := len(line) - 1
		ys := spreadAny([]float64{ref[last].y, line[last].y}, 15, g.y.from)
		c.text("small", g.x.to+8, ys[0]+4, "n²")
		c.text("strong t0", g.x.to+8, ys[1]+4, v.label(v.values[last]))
	}
	f.Caption = "One client writes, so that every block holds one write. All anchors send their ballots to all, and so messages grow with the square of their number: the measured line runs along the dashed one. Bytes are steeper where messages carry certificates, which hold a signature of each who signed."
	f.Drawing = c.svg(f.ID, f.Title, f.Caption)
	f.Tables = []table{t.cut()}
	return f
}

// paceFigure shows writes per second against the share of the weight that lies.
func paceFigure(h Throughput) figure {
	f := figure{ID: "pace", Title: "Pace under attack", Wide: true, Source: &h.Source}
	t := table{Head: []string{"play", "weight that lies", "writes", "virtual time", "per second"}, Numbers: true}
	var most, share float64
	rate := func(p PacePoint) float64 { return float64(p.Writes) / math.Max(p.Virtual.Seconds(), 1e-3) }
	part := func(p PacePoint) float64 { return float64(p.Faulty) / math.Max(1, float64(p.Total)) }
	for _, pl := range h.Plays {
		for _, p := range pl.Points {
			most, share = math.Max(most, rate(p)), math.Max(share, part(p))
			t.Rows = append(t.Rows, []string{pl.Play, percent(part(p)), grouped(uint64(max(0, p.Writes))), brief(p.Virtual.Round(time.Millisecond)), digits3(rate(p))})
		}
	}
	if most == 0 {
		f.Caption = "No write became final in the runs behind this figure."
		return f
	}
	c := &canvas{width: 960, height: 320}
	g := frame{c, linear(0, math.Max(share, .01), 66, 830), linear(0, most*1.05, 262, 40)}
	g.vertical(g.y.ticks(5), short, "writes final per second of virtual time")
	g.horizontal(g.x.ticks(8), percent, "share of the weight that lies")
	var ends []float64
	for _, pl := range h.Plays {
		y := g.y.from
		if len(pl.Points) > 0 {
			y = g.y.at(rate(pl.Points[len(pl.Points)-1]))
		}
		ends = append(ends, y)
	}
	labels := spreadAny(ends, 16, g.y.from-3)
	for i, pl := range h.Plays {
		var line []point
		for _, p := range pl.Points {
			line = append(line, point{g.x.at(part(p)), g.y.at(rate(p))})
		}
		c.path(fmt.Sprintf("curve s%d", i%5), polyline(line), pl.Play)
		c.text(fmt.Sprintf("strong t%d", i%5), g.x.to+10, labels[i]+4, pl.Play)
	}
	f.Caption = fmt.Sprintf("Writes of 4 clients that ask one after another, in networks of %d anchors, for ways to lie and the share of the weight that does. All are within the fault budget. "+
		"What is lost is mostly the wait for views whose leader lies.", h.Anchors)
	f.Drawing = c.svg(f.ID, f.Title, f.Caption)
	f.Tables = []table{t.cut()}
	return f
}

// spreadAny is spread for places in any order.
func spreadAny(ys []float64, least, floor float64) []float64 {
	order := make([]int, len(ys))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case ys[a] < ys[b]:
			return -1
		case ys[a] > ys[b]:
			return 1
		}
		return 0
	})
	sorted := make([]float64, len(ys))
	for i, o := range order {
		sorted[i] = ys[o]
	}
	out := make([]float64, len(ys))
	for i, y := range spread(sorted, least, floor) {
		out[order[i]] = y
	}
	return out
}
