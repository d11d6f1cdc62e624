package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aweigh/aweigh/sim"
)

// sealed is the content of a final mark's text.
type sealed struct {
	height uint64
	view   string
	block  string
}

// sealedOf reads "HEIGHT view VIEW BLOCK (MUTATIONS)".
func sealedOf(m sim.Mark) (s sealed, ok bool) {
	w := strings.Fields(m.Text)
	if m.Kind != "final" || len(w) < 4 || w[1] != "view" {
		return s, false
	}
	h, err := strconv.ParseUint(w[0], 10, 64)
	return sealed{h, w[2], w[3]}, err == nil
}

// heightsFigure shows how far each node was at each time.
func heightsFigure(r *sim.Result, liars map[int]bool) figure {
	f := figure{ID: "heights", Title: "Height over time"}
	type step struct {
		at     time.Duration
		height uint64
	}
	byNode := make(map[int][]step)
	var most uint64
	var end time.Duration
	for _, m := range r.Marks {
		end = max(end, m.At)
		if s, ok := sealedOf(m); ok {
			byNode[m.Node] = append(byNode[m.Node], step{m.At, s.height})
			most = max(most, s.height)
		}
	}
	if len(byNode) == 0 {
		f.Caption = "No block was seen to become final; without marks there is nothing to draw."
		return f
	}
	begin, last := extent(r)
	c := &canvas{width: 860, height: 268}
	g := frame{c, linear(begin.Seconds(), last.Seconds(), 60, 790), linear(0, float64(most), 208, 34)}
	g.vertical(whole(g.y.ticks(5)), short, "final blocks at each node")
	ticks := g.x.ticks(8)
	g.horizontal(ticks, clock(ticks), "virtual time")
	if stop := r.Scenario.Stop; r.Scenario.Heal != nil && stop < last {
		x := g.x.at(stop.Seconds())
		c.line("event", x, g.y.to, x, g.y.from)
		if x > 640 {
			c.text("small e", x-5, g.y.to-4, "faults end")
		} else {
			c.text("small", x+5, g.y.to-4, "faults end")
		}
	}
	type final struct {
		node   int
		height uint64
	}
	var finals []final
	t := table{Head: []string{"node", "height", "last block final after"}, Numbers: true}
	for _, n := range sortedKeys(byNode) {
		steps := byNode[n]
		line := []point{{g.x.from, g.y.from}}
		var reached uint64
		for _, s := range steps {
			reached = max(reached, s.height)
			p := point{g.x.at(s.at.Seconds()), g.y.at(float64(s.height))}
			if l := &line[len(line)-1]; len(line) > 1 && p.x-l.x < .4 {
				l.y = p.y
				continue
			}
			line = append(line, p)
		}
		finals = append(finals, final{n, reached})
		line = append(line, point{g.x.at(end.Seconds()), line[len(line)-1].y})
		class := "node"
		if liars[n] {
			class = "node liar"
		}
		c.path(class, stairs(line), fmt.Sprintf("n%d: height %d", n, reached))
		t.Rows = append(t.Rows, []string{fmt.Sprintf("n%d", n), grouped(reached), brief(steps[len(steps)-1].at)})
	}
	slices.SortStableFunc(finals, func(a, b final) int { return cmp.Compare(a.height, b.height) })
	slow, fast := finals[0], finals[len(finals)-1]
	yf, ys := g.y.at(float64(fast.height)), g.y.at(float64(slow.height))
	c.text("small", g.x.to+6, yf+4, fmt.Sprintf("n%d: %d", fast.node, fast.height))
	if ys-yf > 14 {
		c.text("small", g.x.to+6, ys+4, fmt.Sprintf("n%d: %d", slow.node, slow.height))
	}
	f.Caption = "One line for each node; lines that lie on each other are nodes that agree and keep pace. A flat stretch is time without progress, a line that stays below the others a node that is down or cut off, and a steep rise one that catches up."
	if len(liars) > 0 {
		f.Caption += " Dashed: the liars."
	}
	f.Caption += kept(r)
	f.Drawing = c.svg(f.ID, f.Title, f.Caption)
	f.Tables = []table{t.cut()}
	return f
}

// whole keeps the ticks that are whole numbers.
func whole(ticks []float64) []float64 {
	return slices.DeleteFunc(ticks, func(t float64) bool { return t != float64(int64(t)) })
}
