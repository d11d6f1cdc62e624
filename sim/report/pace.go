package report

import (
	"fmt"
	"math"
	"time"
)

// paceFigure shows writes per second against the share of the weight that lies.
func paceFigure(h Throughput) figure {
	f := figure{ID: "pace", Title: "Pace under attack", Wide: true, Source: &h.Source}
	t := table{Head: []string{"play", "weight that lies", "writes", "virtual time", "per second"}, Numbers: true}
	var most, share float64
	rate := func(p PacePoint) float64 { return float64(p.Writes) / math.Max(p.Virtual.Seconds(), 1e-3) }
	part := func(p PacePoint) float64 { return float64(p.Faulty) / math.Max(1, float64(p.Total)) }
	for _, pl := range h.Attacks {
		for _, p := range pl.Points {
			most, share = math.Max(most, rate(p)), math.Max(share, part(p))
			t.Rows = append(t.Rows, []string{pl.Attack, percent(part(p)), grouped(uint64(max(0, p.Writes))), brief(p.Virtual.Round(time.Millisecond)), digits3(rate(p))})
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
	for _, pl := range h.Attacks {
		y := g.y.from
		if len(pl.Points) > 0 {
			y = g.y.at(rate(pl.Points[len(pl.Points)-1]))
		}
		ends = append(ends, y)
	}
	labels := spreadAny(ends, 16, g.y.from-3)
	for i, pl := range h.Attacks {
		var line []point
		for _, p := range pl.Points {
			line = append(line, point{g.x.at(part(p)), g.y.at(rate(p))})
		}
		c.path(fmt.Sprintf("curve s%d", i%5), polyline(line), pl.Attack)
		c.text(fmt.Sprintf("strong t%d", i%5), g.x.to+10, labels[i]+4, pl.Attack)
	}
	f.Caption = fmt.Sprintf("Writes of 4 clients that ask one after another, in networks of %d anchors, for ways to lie and the share of the weight that does. All are within the fault budget. "+
		"What is lost is mostly the wait for views whose leader lies.", h.Anchors)
	f.Drawing = c.svg(f.ID, f.Title, f.Caption)
	f.Tables = []table{t.cut()}
	return f
}
