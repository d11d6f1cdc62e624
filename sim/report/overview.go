package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/aweigh/aweigh/sim"
)

// overviewFigure is the whole run: a lane for each node, time to the right.
func overviewFigure(r *sim.Result, lying map[int]bool) figure {
	f := figure{ID: "run", Title: "The whole run", Wide: true}
	if len(r.Marks) == 0 {
		f.Caption = "No marks were kept of this run, so there is no space-time diagram."
		return f
	}
	begin, last := extent(r)
	who := allNodes(r)
	pitch := math.Min(math.Max(560/float64(len(who)), 6), 24)
	const left, top = 52, 44
	bottom := top + pitch*float64(len(who))
	c := &canvas{width: 960, height: bottom + 44}
	g := frame{c, linear(begin.Seconds(), last.Seconds(), left, 944), scale{low: 0, high: 1, from: bottom, to: top}}
	x := func(t time.Duration) float64 { return g.x.at(t.Seconds()) }
	ticks := g.x.ticks(9)
	g.horizontal(ticks, clock(ticks), "virtual time")

	o := overview{canvas: c, x: x, pitch: pitch, y: make(map[int]float64), shown: make(map[string]bool), thin: make(thin), paths: make(map[int]map[string]*strings.Builder)}
	each := int(niceStep(math.Ceil(13 / pitch)))
	if pitch > 11 {
		each = 1
	}
	for i, n := range who {
		y := top + pitch*(float64(i)+.5)
		o.y[n] = y
		class, label := "lane", "tick e"
		if lying[n] {
			class, label = "lane liar", "tick e liar"
			c.rect("liarmark", left-4, y-pitch*.36, 3, pitch*.72, "")
		}
		c.line(class, left, y, g.x.to, y)
		if i%each == 0 {
			c.text(label, left-8, y+3.5, "n"+strconv.Itoa(n))
		}
	}
	o.spans(spans(r.Marks, last))
	for _, m := range r.Marks {
		o.put(m)
	}
	breaks(c, r.Broken, x, top, bottom, 16)
	o.flush(who)
	if stop := r.Scenario.Stop; r.Scenario.Heal != nil && stop > 0 && stop < last {
		c.line("event", x(stop), top-6, x(stop), bottom)
		c.text("small m", math.Min(math.Max(x(stop), left+40), 900), top-10, "faults end")
	}

	f.Caption = "One lane for each node, time to the right, messages left out. Look for lanes without ticks: nothing becomes final there."
	if len(lying) > 0 {
		f.Caption += " The nodes with a bar beside their name lie."
	}
	f.Caption += kept(r)
	f.Drawing = c.svg(f.ID, f.Title, f.Caption)
	f.Key = key(o.shown)
	t := table{Head: []string{"time", "node", "what", "more"}}
	for _, m := range r.Marks {
		if m.Kind != "message" && m.Kind != "write" && m.Kind != "done" {
			t.Rows = append(t.Rows, []string{brief(m.At), place(m.Node), m.Kind, m.Text})
		}
	}
	f.Tables = []table{t.cut()}
	return f
}

// extent is the time that the marks of a run cover, from shortly before the
// first one if that is late.
func extent(r *sim.Result) (begin, last time.Duration) {
	first := time.Duration(-1)
	for _, m := range r.Marks {
		last = max(last, m.At)
		if first < 0 && m.Kind != "message" && m.Kind != "write" && m.Kind != "done" {
			first = m.At
		}
	}
	if last >= r.Virtual*19/20 {
		last = max(last, r.Virtual)
	}
	if first > last/2 {
		begin = first - (last-first)/20
	}
	return begin, last + (last-begin)/80
}

// kept reports that marks end before the run does, if so.
func kept(r *sim.Result) string {
	if _, last := extent(r); last < r.Virtual*19/20 {
		return fmt.Sprintf(" As many marks were kept as were asked for: they end after %s of %s.", brief(last), brief(r.Virtual))
	}
	return ""
}

func place(node int) string {
	if node < 0 {
		return "all"
	}
	return "n" + strconv.Itoa(node)
}

// overview draws signs on lanes, those of a kind in one path for each lane.
type overview struct {
	*canvas
	x     func(time.Duration) float64
	y     map[int]float64
	pitch float64
	shown map[string]bool
	thin  thin
	paths map[int]map[string]*strings.Builder
}

func (o *overview) spans(all map[int][]span) {
	for _, n := range sortedKeys(all) {
		for _, s := range all[n] {
			o.shown[s.kind] = true
			o.rect(s.kind, o.x(s.from), o.y[n]-o.pitch*.36, math.Max(1.5, o.x(s.to)-o.x(s.from)), o.pitch*.72,
				fmt.Sprintf("n%d: %s to %s, %s", n, brief(s.from), brief(s.to), s.text))
		}
	}
}

// put adds the sign of a mark to the paths of its lane.
func (o *overview) put(m sim.Mark) {
	y, ok := o.y[m.Node]
	if !ok {
		return
	}
	x, lane, r := o.x(m.At), strconv.Itoa(m.Node), math.Min(3.2, o.pitch*.34)
	apart := 4.0
	var d string
	switch m.Kind {
	case "final":
		apart = 1.2
		d = "M" + num(x) + " " + num(y-o.pitch*.32) + "v" + num(o.pitch*.64)
	case "nullified":
		d = "M" + num(x-r) + " " + num(y-r) + "l" + num(2*r) + " " + num(2*r) + "m0 " + num(-2*r) + "l" + num(-2*r) + " " + num(2*r)
	case "lie":
		d = "M" + num(x-r) + " " + num(y+r) + "l" + num(r) + " " + num(-1.8*r) + "l" + num(r) + " " + num(1.8*r) + "z"
	case "proof":
		if o.thin.fits(lane, m.Kind, x, 6) {
			o.shown[m.Kind] = true
			o.diamond("proof", x, y, math.Min(5, o.pitch*.5), fmt.Sprintf("n%d, %s: proof %s", m.Node, brief(m.At), m.Text))
		}
		return
	default:
		return
	}
	if !o.thin.fits(lane, m.Kind, x, apart) {
		return
	}
	o.shown[m.Kind] = true
	if o.paths[m.Node] == nil {
		o.paths[m.Node] = make(map[string]*strings.Builder)
	}
	if o.paths[m.Node][m.Kind] == nil {
		o.paths[m.Node][m.Kind] = new(strings.Builder)
	}
	o.paths[m.Node][m.Kind].WriteString(d)
}

// flush draws the paths.
func (o *overview) flush(who []int) {
	for _, n := range who {
		for _, s := range [][2]string{{"final", "seal"}, {"nullified", "null"}, {"lie", "lie"}} {
			if b := o.paths[n][s[0]]; b != nil {
				o.path(s[1], b.String(), "")
			}
		}
	}
}

// breaks draws a line for each moment at which invariants broke, and names each
// invariant at the first; later ones are thin. Lines that would lie on each other are one; names that
// would, take a second row.
func breaks(c *canvas, all []sim.Breach, x func(time.Duration) float64, top, bottom, label float64) {
	var named, names []string
	edge := math.Inf(-1) // of the last label in the first row
	for i, b := range all {
		if n := len(named); len(appendNew(named, b.Invariant)) > n {
			names, named = append(names, b.Invariant), append(named, b.Invariant)
		}
		at := x(b.At)
		if i+1 < len(all) && math.Abs(x(all[i+1].At)-at) < 3 {
			continue
		}
		if len(names) == 0 {
			c.line("alsobroke", at, top-6, at, bottom)
			continue
		}
		c.line("broke", at, top-6, at, bottom)
		text := strings.Join(names, ", ") + " broken"
		half := wide(text, 14) / 2
		middle := math.Min(math.Max(at, half+4), c.width-half-4)
		row := label
		if middle-half < edge {
			row += 15
		} else {
			edge = middle + half + 10
		}
		c.text("broke m", middle, row, text)
		names = nil
	}
}

func appendNew(names []string, name string) []string {
	for _, n := range names {
		if n == name {
			return names
		}
	}
	return append(names, name)
}
