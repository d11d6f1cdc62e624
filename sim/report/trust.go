package report

import (
	"fmt"
	"math"
	"strconv"

	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/trust"
)

// scoreFigure is the trust of every anchor of one run, over time.
func scoreFigure(r *sim.Result, lying map[int]bool) figure {
	f := figure{ID: "trust", Title: "Trust, anchor by anchor", Wide: true}
	if len(r.Epochs) < 2 {
		f.Caption = "No epoch ended in this run, so trust stayed as it was."
		return f
	}
	c := &canvas{width: 960, height: 320}
	last := math.Max(r.Epochs[len(r.Epochs)-1].At.Seconds(), r.Virtual.Seconds())
	g := frame{c, linear(0, last, 66, 880), linear(0, 1, 262, 40)}
	g.vertical([]float64{0, .25, .5, .75, 1}, percent, "trust at the start of an epoch")
	ticks := g.x.ticks(9)
	g.horizontal(ticks, clock(ticks), "virtual time")
	lines := make(map[int][]point)
	for _, e := range r.Epochs {
		for _, s := range e.Seats {
			lines[s.Node] = append(lines[s.Node], point{g.x.at(e.At.Seconds()), g.y.at(scored(s.Score))})
		}
	}
	var names []string // at the right: each liar, and the others together
	var ends []float64
	honest := -1
	for _, n := range sortedKeys(lines) {
		class, line := "node", lines[n]
		end := line[len(line)-1].y
		if lying[n] {
			class = "node liar"
			names, ends = append(names, "n"+strconv.Itoa(n)), append(ends, end)
		} else if honest < 0 {
			honest = len(names)
			names, ends = append(names, "honest"), append(ends, end)
		}
		c.path(class, stairs(append(line, point{g.x.to, end})), "n"+strconv.Itoa(n))
	}
	if len(names) <= 12 {
		for i, y := range spreadAny(ends, 13, g.y.from+3) {
			class := "small liar"
			if i == honest {
				class = "small"
			}
			c.text(class, g.x.to+8, y+4, names[i])
		}
	}
	f.Caption = fmt.Sprintf("What taking part gives and what absence and lies take, over %d epochs. Dashed lines are anchors that lie. Who is proven to contradict itself falls to 0 at once.", len(r.Epochs))
	f.Drawing = c.svg(f.ID, f.Title, f.Caption)
	t := table{Head: []string{"epoch", "from", "lowest honest", "highest honest", "liars", "weight of liars"}, Numbers: true}
	for _, e := range r.Epochs {
		low, high, lies := 1.0, 0.0, ""
		for _, s := range e.Seats {
			switch v := scored(s.Score); {
			case lying[s.Node]:
				lies += fmt.Sprintf("n%d %s ", s.Node, percent(v))
			case s.Seated:
				low, high = math.Min(low, v), math.Max(high, v)
			}
		}
		t.Rows = append(t.Rows, []string{fmt.Sprint(e.Number), brief(e.At), percent(low), percent(high), or(lies, "none"), percent(part(e))})
	}
	f.Tables = []table{t.cut()}
	return f
}

func scored(s trust.Score) float64 { return float64(s) / float64(trust.MaxScore) }

// part is the liars' part of an epoch's weight.
func part(e sim.EpochRecord) float64 { return float64(e.Liars) / math.Max(1, float64(e.Total)) }

// conductFigure is the mean trust of the nodes of each conduct, epoch by epoch.
func conductFigure(d Conducts) figure {
	f := figure{ID: "conduct", Title: "Trust over time, by conduct", Wide: true, Source: &d.Source}
	most := 0
	for _, k := range d.Kinds {
		most = max(most, len(k.Mean)-1)
	}
	if most < 1 {
		f.Caption = "No epoch ended in the runs behind this figure."
		return f
	}
	c := &canvas{width: 960, height: 340}
	g := frame{c, linear(0, float64(most), 66, 740), linear(0, 1, 282, 40)}
	g.vertical([]float64{0, .25, .5, .75, 1}, percent, "mean trust")
	g.horizontal(apart(g.x, g.x.ticks(8), 20), digits3, "epochs since the start")
	var ends []float64
	for _, k := range d.Kinds {
		y := g.y.from
		if n := len(k.Mean); n > 0 {
			y = g.y.at(k.Mean[n-1])
		}
		ends = append(ends, y)
	}
	labels := spreadAny(ends, 16, g.y.from-2)
	t := table{Head: []string{"conduct", "scenario", "at first", "lowest", "in the end", "epochs"}, Numbers: true}
	for i, k := range d.Kinds {
		var line []point
		low := 1.0
		for e, v := range k.Mean {
			line = append(line, point{g.x.at(float64(e)), g.y.at(v)})
			low = math.Min(low, v)
		}
		if len(line) == 0 {
			continue
		}
		class := fmt.Sprintf("s%d", i%6)
		c.path("curve "+class, polyline(line), k.Name)
		end := line[len(line)-1]
		c.path("event", polyline([]point{{end.x + 3, end.y}, {g.x.to + 4, labels[i]}}), "")
		c.text(fmt.Sprintf("strong t%d", i%6), g.x.to+10, labels[i]+4, k.Name)
		t.Rows = append(t.Rows, []string{k.Name, k.Scenario, percent(k.Mean[0]), percent(low), percent(k.Mean[len(k.Mean)-1]), fmt.Sprint(len(k.Mean) - 1)})
	}
	f.Caption = "Mean over anchors and seeds, for as many epochs as all of the seeds had. Epochs here hold few blocks, and few make a whole one, so that many end in seconds. " +
		"Trust is gained by taking part, and lost by staying away; a contradiction, once proven, costs all of it."
	f.Drawing = c.svg(f.ID, f.Title, f.Caption)
	f.Tables = []table{t.cut()}
	return f
}

// shareFigure is the liars' share of the weight before, during and after each attack.
func shareFigure(d Shares) figure {
	f := figure{ID: "share", Title: "Liars' share of the weight, before, during and after", Wide: true, Source: &d.Source}
	if len(d.Attacks) == 0 {
		f.Caption = "No attack on trust is behind this study."
		return f
	}
	const pitch, top = 26, 46
	bottom := top + pitch*float64(len(d.Attacks))
	c := &canvas{width: 960, height: bottom + 44}
	g := frame{c, linear(0, .4, 170, 930), scale{low: 0, high: 1, from: bottom, to: top}}
	g.horizontal([]float64{0, .1, .2, .3, .4}, percent, "share of the weight of all anchors")
	for _, m := range []struct {
		at   float64
		name string
	}{{.25, "a quarter"}, {1.0 / 3, "a third"}} {
		c.line("ref", g.x.at(m.at), top-10, g.x.at(m.at), bottom)
		c.text("small m", g.x.at(m.at), top-16, m.name)
	}
	t := table{Head: []string{"scenario", "worlds", "at first", "at most, mean", "at most, of all", "in the end"}, Numbers: true}
	for i, a := range d.Attacks {
		y := top + pitch*(float64(i)+.5)
		c.text("tick e", g.x.from-12, y+4, a.Scenario)
		c.line("grid", g.x.from, y, g.x.to, y)
		c.line("span", g.x.at(math.Min(a.End, a.Begin)), y, g.x.at(a.Peak), y)
		c.dot("open", g.x.at(a.Begin), y, 5.5, "at first "+percent(a.Begin))
		c.triangle("peak", g.x.at(a.Peak), y+5, 5, "at most, of all seeds "+percent(a.Peak))
		c.dot("end", g.x.at(a.End), y, 3.6, "in the end "+percent(a.End))
		t.Rows = append(t.Rows, []string{a.Scenario, fmt.Sprint(a.Worlds), percent(a.Begin), percent(a.Most), percent(a.Peak), percent(a.End)})
	}
	sign := func(draw func(*canvas)) keyEntry {
		k := &canvas{width: 14, height: 14}
		draw(k)
		return keyEntry{Sign: k.bare()}
	}
	f.Key = []keyEntry{
		sign(func(k *canvas) { k.dot("open", 7, 7, 5.5, "") }),
		sign(func(k *canvas) { k.triangle("peak", 7, 12, 5, "") }),
		sign(func(k *canvas) { k.dot("end", 7, 7, 3.6, "") }),
	}
	for i, text := range []string{"at first", "at most, in any epoch of any seed", "in the end, on average"} {
		f.Key[i].Text = text
	}
	f.Caption = "Each row is one scenario of the library (aweigh sim show NAME). A third stops the scope, and more than that could break it; liars who begin below a quarter never come there."
	f.Drawing = c.svg(f.ID, f.Title, f.Caption)
	f.Tables = []table{t.cut()}
	return f
}
