package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aweigh/aweigh/sim/scenario"
)

// heatFigure has a cell for each share of liars and each loss. A cell in which
// any invariant broke is black, and no other is.
func heatFigure(h Heat) figure {
	f := figure{ID: "heat", Title: "How much may lie, and how much may be lost", Wide: true, Source: &h.Source}
	if len(h.Cells) == 0 {
		f.Caption = "No runs are behind this figure."
		return f
	}
	var rows []int
	var columns []scenario.Share
	for _, c := range h.Cells {
		rows, columns = append(rows, c.Liars), append(columns, c.Loss)
	}
	rows = set(rows)
	slices.Sort(columns)
	columns = slices.Compact(columns)

	over := slices.IndexFunc(rows, func(liars int) bool { // the lowest row over the budget
		return slices.ContainsFunc(h.Cells, func(c HeatCell) bool { return c.Over && c.Liars == liars })
	})
	const left, top, tall, rim = 150, 46, 42, 5
	broad := min(96, 680/float64(len(columns)))
	bottom := top + tall*float64(len(rows)) + 2*rim
	c := &canvas{width: 960, height: bottom + 52}
	x := func(i int) float64 { return left + broad*float64(i) }
	y := func(i int) float64 {
		if over >= 0 && i >= over {
			return bottom - tall*float64(i+1) - 2*rim
		}
		return bottom - tall*float64(i+1)
	}
	c.text("name", 8, 20, "share of the weight that lies")
	t := table{Head: []string{"liars", "of the weight", "lost", "worlds", "writes final", "broken"}}
	for _, cell := range h.Cells {
		i, j := slices.Index(columns, cell.Loss), slices.Index(rows, cell.Liars)
		cell.draw(c, x(i), y(j), broad, tall)
		broke := "nothing"
		if len(cell.All) > 0 {
			broke = fmt.Sprintf("%s, in %s", strings.Join(cell.All, ", "), plural(cell.Broken, "world"))
		}
		t.Rows = append(t.Rows, []string{strconv.Itoa(cell.Liars), percent(cell.share()), cell.Loss.String(), strconv.Itoa(cell.Worlds),
			fmt.Sprintf("%d of %d", cell.Final, cell.Asked), broke})
	}
	for j, liars := range rows {
		i := slices.IndexFunc(h.Cells, func(c HeatCell) bool { return c.Liars == liars })
		c.text("tick e", left-10, y(j)+tall/2+4, fmt.Sprintf("%s (%d of %d)", percent(h.Cells[i].share()), liars, h.Anchors))
	}
	for i, loss := range columns {
		c.text("tick m", x(i)+broad/2, bottom+18, loss.String())
	}
	right := x(len(columns))
	c.text("name m", (left+right)/2, bottom+38, "frames lost")
	if over >= 0 {
		last := y(len(rows) - 1)
		c.rect("over", left-rim+1, last-rim+1, right-left+2*rim-2, y(over)+tall-last+2*rim-2, "more lies than the fault budget allows")
		c.text("strong", right+rim+10, (last+y(over)+tall)/2, "over the budget")
		c.text("small", right+rim+10, (last+y(over)+tall)/2+16, "may break")
		if over > 0 {
			c.text("strong", right+rim+10, (y(over-1)+bottom)/2, "within it")
			c.text("small", right+rim+10, (y(over-1)+bottom)/2+16, "must never")
		}
	}
	f.Caption = fmt.Sprintf("Networks of %d anchors of the same weight, of which some lie (they %s), over links that lose frames. The deeper the blue, the more of the writes asked for were final when the time was up; each cell says how many. "+
		"Black: an invariant broke, the one named in so many of the worlds. Outlined: the liars weigh more than the fault budget, and black may appear there only. "+
		"Within the budget, lies and losses cost time, and nothing else.", h.Anchors, list(h.Attacks))
	f.Drawing = c.svg(f.ID, f.Title, f.Caption)
	f.Tables = []table{t.cut()}
	return f
}

func (cell HeatCell) share() float64 {
	if cell.Total == 0 {
		return 0
	}
	return float64(cell.Faulty) / float64(cell.Total)
}

// draw fills the cell: black with the invariant that broke, or blue by the
// share of writes that became final.
func (cell HeatCell) draw(c *canvas, x, y, w, h float64) {
	about := fmt.Sprintf("%d lie, %s lost: %d of %d writes final in %s", cell.Liars, cell.Loss, cell.Final, cell.Asked, plural(cell.Worlds, "world"))
	switch {
	case len(cell.All) > 0:
		c.add(`<rect class="black" fill="#000000" x="%s" y="%s" width="%s" height="%s">%s</rect>`, num(x), num(y), num(w), num(h), tip(about+"; broken: "+list(cell.All)))
		name := cell.All[0]
		if wide(name, 12) > w-4 {
			name = "broken"
		}
		c.text("ontext m", x+w/2, y+h/2-2, name)
		c.text("ontext sub m", x+w/2, y+h/2+13, fmt.Sprintf("%d of %d", cell.First, cell.Worlds))
	case cell.Asked == 0:
		c.text("celltext m", x+w/2, y+h/2+4, "–")
	default:
		part := min(1, float64(cell.Final)/float64(cell.Asked))
		c.add(`<rect class="heat" fill-opacity="%s" x="%s" y="%s" width="%s" height="%s">%s</rect>`,
			strconv.FormatFloat(.04+.96*part, 'f', 3, 64), num(x), num(y), num(w), num(h), tip(about))
		c.text("celltext m", x+w/2, y+h/2+4, strconv.Itoa(int(100*part+.5))+" %")
	}
	c.rect("cell", x, y, w, h, "")
}
