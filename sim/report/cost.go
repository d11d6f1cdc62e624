package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

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
