package report

import (
	"math"
	"slices"
	"time"

	"github.com/aweigh/aweigh/sim"
)

// span is a time during which something holds of a node.
type span struct {
	from, to time.Duration
	kind     string // down, cut
	text     string
}

// spans are the times during which each node was down or off the network.
func spans(marks []sim.Mark, end time.Duration) map[int][]span {
	all := make(map[int][]span)
	open := make(map[int]map[string]span)
	finish := func(node int, kind string, at time.Duration) {
		if s, ok := open[node][kind]; ok {
			s.to = at
			all[node] = append(all[node], s)
			delete(open[node], kind)
		}
	}
	begin := func(m sim.Mark, kind string) {
		if open[m.Node] == nil {
			open[m.Node] = make(map[string]span)
		}
		if _, ok := open[m.Node][kind]; !ok {
			open[m.Node][kind] = span{from: m.At, kind: kind, text: m.Text}
		}
	}
	for _, m := range marks {
		switch {
		case m.Kind == "crash", m.Kind == "stopped":
			begin(m, "down")
		case m.Kind == "up":
			finish(m.Node, "down", m.At)
		case m.Kind == "joined":
			finish(m.Node, "cut", m.At)
		case m.Kind == "cut":
			begin(m, "cut")
		}
	}
	for _, n := range sortedKeys(open) {
		for _, kind := range sortedKeys(open[n]) {
			finish(n, kind, end)
		}
	}
	return all
}

// thin reports, lane by lane, whether a sign at x keeps its distance to the one before.
type thin map[[2]string]float64

func (t thin) fits(lane, kind string, x, apart float64) bool {
	k := [2]string{lane, kind}
	if last, ok := t[k]; ok && math.Abs(x-last) < apart {
		return false
	}
	t[k] = x
	return true
}

// allNodes are the nodes of a run: all anchors and observers, and other marked nodes.
func allNodes(r *sim.Result) []int {
	seen := make(map[int]bool)
	for n := range r.Scenario.Network.Anchors + r.Scenario.Network.Observers {
		seen[n] = true
	}
	for _, m := range r.Marks {
		if m.Node >= 0 {
			seen[m.Node] = true
		}
	}
	return sortedKeys(seen)
}

// flight is the median time that messages took.
func flight(marks []sim.Mark) time.Duration {
	var all []time.Duration
	for _, m := range marks {
		if m.From >= 0 {
			all = append(all, m.At-m.Sent)
		}
	}
	slices.Sort(all)
	return quantile(all, .5)
}

// sign is a small drawing for a key.
func sign(draw func(c *canvas)) keyEntry {
	c := &canvas{width: 22, height: 14}
	draw(c)
	return keyEntry{Sign: c.bare()}
}

// signs are what lanes show besides messages, in the order of the key.
var signs = []struct {
	kind, text string
	draw       func(*canvas, float64, float64)
}{
	{"final", "a block becomes final", func(c *canvas, x, y float64) { c.line("seal", x, y-5, x, y+5) }},
	{"nullified", "a view ends without a block", func(c *canvas, x, y float64) { c.cross("null", x, y, 3, "") }},
	{"lie", "a lie is told", func(c *canvas, x, y float64) { c.triangle("lie", x, y+3, 4, "") }},
	{"proof", "a proof of fault is found", func(c *canvas, x, y float64) { c.diamond("proof", x, y, 5, "") }},
	{"down", "the node is down", func(c *canvas, x, y float64) { c.rect("down", x-10, y-4, 20, 8, "") }},
	{"cut", "the node is cut off from some or all, or its frames wait", func(c *canvas, x, y float64) { c.rect("cut", x-10, y-4, 20, 8, "") }},
}

// key explains the signs that occur.
func key(shown map[string]bool) (k []keyEntry) {
	for _, s := range signs {
		if shown[s.kind] {
			e := sign(func(c *canvas) { s.draw(c, 11, 7) })
			e.Text = s.text
			k = append(k, e)
		}
	}
	return k
}
