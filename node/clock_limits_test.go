package node

import (
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

func TestClocksAreJudgedByWhatBlocksProve(t *testing.T) {
	const bound = 500 * time.Millisecond
	type step struct {
		epoch        aweigh.Epoch
		view         aweigh.View
		ahead, later time.Duration
		off, changed bool
	}
	for name, steps := range map[string][]step{
		"ahead is proof":           {{0, 1, time.Hour, 0, true, true}, {0, 2, time.Millisecond, 0, false, true}},
		"within the bound":         {{0, 1, bound, 0, false, false}, {0, 2, -bound, 0, false, false}},
		"one late block is none":   {{0, 1, -time.Hour, 0, false, false}, {0, 2, 0, 0, false, false}, {0, 3, -time.Hour, 0, false, false}, {0, 4, -time.Hour, 0, false, false}},
		"three in a row are":       {{0, 1, -time.Hour, 0, false, false}, {0, 2, -time.Hour, 0, false, false}, {0, 3, -time.Hour, 0, true, true}, {0, 4, 0, 0, false, true}},
		"repeats of one view":      {{0, 1, -time.Hour, 0, false, false}, {0, 1, -time.Hour, 0, false, false}, {0, 1, -time.Hour, 0, false, false}, {0, 1, time.Hour, 0, false, false}},
		"said once, and again":     {{0, 1, time.Hour, 0, true, true}, {0, 2, time.Hour, time.Minute, true, false}, {0, 3, time.Hour, clockAgain, true, true}},
		"older views are no news":  {{0, 5, 0, 0, false, false}, {0, 4, time.Hour, 0, false, false}},
		"late, then ahead of time": {{0, 1, -time.Hour, 0, false, false}, {0, 2, time.Hour, 0, true, true}},
		"an epoch begins anew":     {{0, 5, 0, 0, false, false}, {1, 1, time.Hour, 0, true, true}, {0, 6, 0, 0, true, false}},
	} {
		var c clockOf
		now := time.Unix(1, 0)
		for i, s := range steps {
			now = now.Add(s.later)
			if off, changed := c.arrived(s.epoch, s.view, s.ahead, bound, now); off != s.off || changed != s.changed {
				t.Errorf("%s, step %d: off %v, changed %v", name, i, off, changed)
			}
		}
	}
}

// TestWrongClocksAreNamed: one anchor that is off is named, in the log and in
// the counts; if most are, it is this node that is off.
func TestWrongClocksAreNamed(t *testing.T) {
	n, log := stillNode(t, "n0", "n1", "n2", "n3")
	arrives := func(anchor string, from string, view aweigh.View, ahead time.Duration) {
		var by, carrier *anchorMeasure
		for _, a := range n.root.measured.roster.Load().all {
			if a.name == anchor {
				by = a
			}
			if a.name == from {
				carrier = a
			}
		}
		n.root.clock(carrier.peer, scope.Header{Proposer: by.id, View: view, Time: n.root.runner.now().Add(ahead)})
	}
	said := func(parts ...string) {
		t.Helper()
		text := log.take()
		for _, p := range parts {
			if !strings.Contains(text, p) {
				t.Errorf("the log does not say %q:\n%s", p, text)
			}
		}
		if len(parts) == 0 && text != "" {
			t.Errorf("the log says\n%s", text)
		}
	}
	arrives("n3", "n3", 1<<32, 0) // hides no later view
	arrives("n1", "n1", 1, -time.Millisecond)
	arrives("n2", "n2", 2, time.Millisecond)
	arrives("n3", "n1", 3, time.Hour) // passed on
	said()
	arrives("n3", "n3", 4, time.Hour)
	said("level=WARN", "an anchor's clock differs", "anchor=n3", "ahead=59m59.9")
	for _, a := range n.root.Counts().Anchors {
		if far := a.Ahead > 59*time.Minute; a.Heard != (a.Name != "n0") || far != (a.Name == "n3") {
			t.Errorf("counted of %s: %+v", a.Name, a)
		}
	}
	s := n.root.runner.stand.Load().Status()
	if says := n.root.report(&s); says.State == AnchorClock || n.root.clockErr() != nil {
		t.Errorf("one other clock differs, and this anchor reports %v", says)
	}
	arrives("n2", "n2", 5, time.Hour)
	said("level=WARN", "an anchor's clock differs", "anchor=n2")
	if says := n.root.report(&s); says.State == AnchorClock {
		t.Errorf("the clocks of half of the weight differ, and this anchor reports %v", says)
	}
	arrives("n1", "n1", 5, time.Hour)
	said("level=ERROR", "this node's clock differs")
	if says, by := n.root.report(&s), n.root.ClockBehind(); says.State != AnchorClock || by.Round(time.Minute) != time.Hour || n.root.clockErr() == nil {
		t.Errorf("this clock is behind by %v, and this anchor reports %v", by, says)
	}
	arrives("n2", "n2", 6, 0)
	said("level=INFO", "agrees again", "anchor=n2")
	if says := n.root.report(&s); says.State == AnchorClock {
		t.Errorf("the clocks agree again, and this anchor reports %v", says)
	}
	for _, c := range []struct {
		from  aweigh.View
		ahead time.Duration
		off   bool
	}{{10, 2 * time.Second, false}, {30, time.Hour, true}} { // one that is ahead by less votes for the blocks of others
		for view := range aweigh.View(3 * lateInARow) {
			by := []string{"n1", "n2", "n3"}[view%3]
			arrives(by, by, c.from+view, -c.ahead)
		}
		if says := n.root.report(&s); (says.State == AnchorClock) != c.off || (n.root.ClockBehind() < 0) != c.off {
			t.Errorf("this clock is ahead by %v, and this anchor reports %v", c.ahead, says)
		}
	}
}
