package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aweigh/aweigh/sim"
)

// mostLanes, mostStrong and mostFaint bound the drawing of a close-up.
const (
	mostLanes  = 10
	mostStrong = 700
	mostFaint  = 250
)

// closeupFigure is a space-time diagram of a scene with its messages.
func closeupFigure(id string, r *sim.Result, lying map[int]bool) figure {
	f := figure{ID: id, Wide: true}
	s, ok := sceneOf(r, lying)
	if !ok {
		f.Title, f.Caption = "Close up", "No marks were kept of this run, so there is nothing to look at more closely."
		return f
	}
	all := allNodes(r)
	u := newCloseup(s, s.order(all, lying, mostLanes), lying)
	u.draw(r)
	f.Title, f.Caption = s.tell(r)
	if left := len(all) - len(u.lanes); left > 0 {
		f.Caption += fmt.Sprintf(" Only %s of %d nodes are drawn, those to whom most happens here.", strconv.Itoa(len(u.lanes)), len(all))
	}
	f.Drawing = u.svg(id, f.Title, f.Caption)
	f.Steps = s.steps(r, lying)
	f.Key = append(u.key(), key(u.shown)...)
	t := table{Head: []string{"time", "node", "what", "from", "sent", "more"}}
	for _, m := range u.told {
		from, sent := "", ""
		if m.From >= 0 {
			from, sent = place(m.From), exact(m.Sent)
		}
		t.Rows = append(t.Rows, []string{exact(m.At), place(m.Node), m.Kind, from, sent, m.Text})
	}
	f.Tables = []table{t.cut()}
	return f
}

// exact is a time to the microsecond.
func exact(d time.Duration) string { return fmt.Sprintf("%.3f"+nbsp+"ms", float64(d)/1e6) }

// closeup draws a scene.
type closeup struct {
	*canvas
	s             scene
	lanes         []int
	lying         map[int]bool
	y             map[int]float64
	time          stretch
	strong, faint []sim.Mark // messages
	told          []sim.Mark // for the table: the marks that are drawn clearly
	left, right   float64
	top, bottom   float64
	shown         map[string]bool
}

func newCloseup(s scene, lanes []int, lying map[int]bool) *closeup {
	pitch := 44.0
	if len(lanes) > 6 {
		pitch = math.Max(26, 44-2.6*float64(len(lanes)-6))
	}
	u := &closeup{s: s, lanes: lanes, lying: lying, y: make(map[int]float64), left: 74, right: 948, top: 58, shown: make(map[string]bool)}
	if len(s.branches) > 0 {
		u.right = 850
	}
	for i, n := range lanes {
		u.y[n] = u.top + pitch*(float64(i)+.5)
	}
	u.bottom = u.top + pitch*float64(len(lanes))
	if len(s.branches) > 1 {
		u.bottom += 20 // for the names of B's phases
	}
	u.canvas = &canvas{width: 960, height: u.bottom + 60}
	u.pick()
	return u
}

// pick sorts messages into those that matter here and the rest, and decides
// which times can be cut out.
func (u *closeup) pick() {
	var instants []time.Duration
	for _, m := range u.s.marks {
		if _, ok := u.y[m.Node]; !ok {
			continue
		}
		if m.From < 0 {
			if m.Kind != "write" && m.Kind != "done" {
				u.told = append(u.told, m)
				instants = append(instants, m.At)
			}
			continue
		}
		if _, ok := u.y[m.From]; !ok || m.Sent < u.s.from {
			continue
		}
		if u.s.about(m) >= 0 && len(u.strong) < mostStrong {
			u.strong = append(u.strong, m)
			u.told = append(u.told, m)
			instants = append(instants, m.Sent, m.At)
		} else if m.From != m.Node {
			u.faint = append(u.faint, m)
		}
	}
	if len(u.strong) == 0 { // nothing else shows where something happens
		for _, m := range u.faint {
			instants = append(instants, m.Sent, m.At)
		}
	}
	u.time = newStretch(u.s.from, u.s.to, instants, u.s.flight)
}

func (u *closeup) x(t time.Duration) float64 {
	return u.left + u.time.at(t)*(u.right-u.left)
}

func (u *closeup) draw(r *sim.Result) {
	for _, n := range u.lanes {
		class, label, name := "lane", "strong e", "n"+strconv.Itoa(n)
		if u.lying[n] {
			class, label, name = "lane liar", "strong e liar", name+" lies"
		}
		u.line(class, u.left, u.y[n], u.right, u.y[n])
		u.text(label, u.left-9, u.y[n]+4.5, name)
	}
	all := spans(r.Marks, max(r.Virtual, u.s.to))
	for _, n := range u.lanes {
		for _, p := range all[n] {
			if p.to >= u.s.from && p.from <= u.s.to {
				u.shown[p.kind] = true
				u.rect(p.kind, u.x(p.from), u.y[n]-8, math.Max(2, u.x(p.to)-u.x(p.from)), 16, fmt.Sprintf("n%d: %s to %s, %s", n, brief(p.from), brief(p.to), p.text))
			}
		}
	}
	u.breaks(r.Broken)
	u.messages()
	u.axis() // its cuts cover messages that cross them
	u.phases()
	u.signs()
	u.outcomes()
}

// breaks draws a line where the invariant of the scene broke, and a tick where others did.
func (u *closeup) breaks(all []sim.Breach) {
	var ours []sim.Breach
	for _, b := range all {
		switch {
		case b.At < u.s.from || b.At > u.s.to || u.s.breach == nil:
		case b.Invariant == u.s.breach.Invariant:
			ours = append(ours, b)
		default:
			u.path("alsobroke", "M"+num(u.x(b.At))+" "+num(u.bottom-7)+"v7", breach(b))
			u.shown["alsobroke"] = true
		}
	}
	breaks(u.canvas, ours, u.x, u.top-28, u.bottom, 18)
}

// axis draws ticks that count from the beginning of the scene, and where time is cut.
func (u *closeup) axis() {
	u.line("axis", u.left, u.bottom, u.right, u.bottom)
	u.text("name e", u.right, u.bottom+52, "time since "+exact(u.s.from)+" of the run")
	step := time.Duration(max(1, niceStep(float64(u.time.unit())/8)))
	last := math.Inf(-1)
	for _, p := range u.time.pieces {
		if p.cut {
			x0, x1 := u.x(p.from), u.x(p.to)
			u.rect("gap", x0, u.top-4, x1-x0, u.bottom-u.top+4, "nothing here happens for "+brief(p.to-p.from))
			u.text("small m", (x0+x1)/2, u.bottom+17, "⋯")
			u.text("small m", (x0+x1)/2, u.bottom+30, brief(p.to-p.from))
			last = x1
			continue
		}
		for t := (p.from - u.s.from + step - 1) / step * step; u.s.from+t <= p.to; t += step {
			x := u.x(u.s.from + t)
			u.line("axis", x, u.bottom, x, u.bottom+4)
			if x-last > 46 || math.IsInf(last, -1) {
				u.text("tick m", x, u.bottom+17, brief(t))
				last = x
			}
		}
	}
}

// messages draws those that matter as coloured lines, and some of the rest as faint ones.
func (u *closeup) messages() {
	var rest strings.Builder
	every := max(1, (len(u.faint)+mostFaint-1)/mostFaint)
	for i := 0; i < len(u.faint); i += every {
		rest.WriteString(u.way(u.faint[i]))
	}
	class := "msg"
	if len(u.strong) == 0 {
		class = "msg only"
	}
	u.path(class, rest.String(), "")
	u.shown["msg"] = len(u.faint) > 0
	for _, m := range u.strong {
		kind, _ := ballot(m)
		u.path("msg "+kind+" "+u.class(u.s.about(m)), u.way(m), fmt.Sprintf("n%d to n%d: %s, sent %s, arrived %s", m.From, m.Node, m.Text, exact(m.Sent), exact(m.At)))
		u.shown[kind] = true
	}
}

func (u *closeup) way(m sim.Mark) string {
	return "M" + num(u.x(m.Sent)) + " " + num(u.y[m.From]) + "L" + num(u.x(m.At)) + " " + num(u.y[m.Node])
}

// class is the colour of a branch.
func (u *closeup) class(i int) string {
	if i < 0 {
		return "other"
	}
	return string(rune('a' + i))
}

// phases names the proposals and ballots where most of them are: those of A
// above the lanes, those of B below.
func (u *closeup) phases() {
	for i, b := range u.s.branches {
		type phase struct {
			x    float64
			text string
		}
		var all []phase
		for _, kind := range []string{"propose", "notarize", "finalize"} {
			var xs []float64
			for _, m := range u.strong {
				if k, _ := ballot(m); k == kind && u.s.about(m) == i {
					xs = append(xs, (u.x(m.Sent)+u.x(m.At))/2)
				}
			}
			if len(xs) > 0 {
				slices.Sort(xs)
				all = append(all, phase{xs[len(xs)/2], strings.TrimSpace(kind + " " + b.name)})
			}
		}
		slices.SortStableFunc(all, func(p, q phase) int { return int(p.x - q.x) })
		edge := u.left
		for j := range all {
			half := wide(all[j].text, 12.5) / 2
			all[j].x = math.Max(all[j].x, edge+half)
			edge = all[j].x + half + 12
		}
		edge = u.right
		for j := len(all) - 1; j >= 0; j-- {
			half := wide(all[j].text, 12.5) / 2
			all[j].x = math.Min(all[j].x, edge-half)
			edge = all[j].x - half - 12
		}
		y := u.top - 6
		if i == 1 {
			y = u.bottom - 8
		}
		for _, p := range all {
			u.text("phase m "+u.class(i), p.x, y, p.text)
		}
	}
}

// signs draws what happens at nodes.
func (u *closeup) signs() {
	fits := make(thin)
	for _, m := range u.s.marks {
		y, ok := u.y[m.Node]
		if !ok || m.From >= 0 {
			continue
		}
		x, about := u.x(m.At), fmt.Sprintf("n%d, %s: %s %s", m.Node, exact(m.At), m.Kind, m.Text)
		lane := strconv.Itoa(m.Node)
		switch m.Kind {
		case "final":
			b, _ := sealedOf(m)
			i := slices.IndexFunc(u.s.branches, func(r branch) bool { return r.blocks[b.block] })
			u.rect("block "+u.class(i), x-5, y-5, 10, 10, about)
			u.shown["block "+u.class(i)] = true
		case "nullified":
			u.cross("null", x, y, 4, about)
			u.shown["nullified"] = true
		case "lie":
			if fits.fits(lane, "lie", x, 7) {
				u.triangle("lie", x, y-3, 4.5, about)
				u.shown["lie"] = true
			}
		case "proof":
			u.diamond("proof", x, y, 6, about)
			u.shown["proof"] = true
		}
	}
}

// outcomes writes at the end of each lane which block is final there.
func (u *closeup) outcomes() {
	if len(u.s.branches) == 0 {
		return
	}
	u.text("small", u.right+12, u.top-6, fmt.Sprintf("height %d", u.s.height))
	for _, n := range u.lanes {
		text, class := "", ""
		for i, b := range u.s.branches {
			if slices.ContainsFunc(u.s.marks, func(m sim.Mark) bool {
				x, ok := sealedOf(m)
				return ok && m.Node == n && x.block == b.block
			}) {
				if text != "" {
					text, class = "A and B", "both"
					continue
				}
				text, class = strings.TrimSpace(b.name+" "+b.block), u.class(i)
			}
		}
		if text == "" {
			text, class = "open", "open"
		}
		u.text("outcome "+class, u.right+12, u.y[n]+4.5, text)
	}
}

// key explains the lines and squares that occur.
func (u *closeup) key() (k []keyEntry) {
	add := func(text string, draw func(*canvas)) {
		e := sign(draw)
		e.Text = text
		k = append(k, e)
	}
	for i, b := range u.s.branches {
		if class := u.class(i); u.shown["block "+class] {
			add(strings.Join(strings.Fields("block "+b.name+" becomes final"), " "), func(c *canvas) { c.rect("block "+class, 6, 2, 10, 10, "") })
		}
	}
	if u.shown["block other"] {
		text := "another block becomes final"
		if len(u.s.branches) == 0 {
			text = "a block becomes final"
		}
		add(text, func(c *canvas) { c.rect("block other", 6, 2, 10, 10, "") })
	}
	for _, k := range []struct{ kind, text string }{{"propose", "proposal"}, {"notarize", "notarize ballot"}, {"finalize", "finalize ballot"}} {
		if u.shown[k.kind] {
			add(k.text, func(c *canvas) { c.path("msg "+k.kind+" a", "M1 12L21 2", "") })
		}
	}
	if u.shown["alsobroke"] {
		add("another invariant broke", func(c *canvas) { c.line("alsobroke", 11, 0, 11, 14) })
	}
	if u.shown["msg"] {
		add("other message, some left out", func(c *canvas) { c.path("msg", "M1 12L21 2", "") })
	}
	return k
}
