package report

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/sim/scenario"
)

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestOnlyBrokenCellsAreBlack(t *testing.T) {
	black := regexp.MustCompile(`fill="#0{3,6}"`)
	for name, c := range map[string]struct {
		cells []HeatCell
		want  int
	}{
		"none broken":             {[]HeatCell{{Worlds: 4, Asked: 10, Final: 10}, {Loss: 1, Worlds: 4, Asked: 10}, {Loss: 2}}, 0},
		"one broken":              {[]HeatCell{{Worlds: 4, Asked: 10, Final: 10}, {Loss: 1, Worlds: 4, Asked: 10, Final: 10, Broken: 1, First: 1, All: []string{"ballots"}}}, 1},
		"broken within budget":    {[]HeatCell{{Liars: 0, Worlds: 1, Asked: 1, Final: 1, Broken: 1, First: 1, All: []string{"agreement"}}}, 1},
		"over budget, not broken": {[]HeatCell{{Liars: 9, Over: true, Worlds: 1, Asked: 1}}, 0},
	} {
		svg := string(heatFigure(Heat{Anchors: 10, Cells: c.cells}).Drawing)
		if got := len(black.FindAllString(svg, -1)); got != c.want {
			t.Errorf("%s: %d cells are black, not %d", name, got, c.want)
		}
	}
}

func TestCellsNameWhatBrokeAndWhere(t *testing.T) {
	broke := func(names ...string) *sim.Result {
		r := &sim.Result{Scenario: scenario.Scenario{Load: scenario.Load{Writes: 10}}, Writes: 5, Faulty: 2, Budget: 1, Total: 4}
		for _, n := range names {
			r.Broken = append(r.Broken, sim.Breach{Invariant: n})
		}
		return r
	}
	var c HeatCell
	c.sum([]*sim.Result{broke("ballots", "agreement", "agreement"), broke("ballots"), broke()})
	if c.Worlds != 3 || c.Broken != 2 || c.First != 1 || !slices.Equal(c.All, []string{"agreement", "ballots"}) || !c.Over || c.Asked != 30 || c.Final != 15 {
		t.Errorf("%+v", c)
	}
}

func TestForkIsToldFromItsMarks(t *testing.T) {
	r := forked()
	f := closeupFigure("closeup", r, liars(r))
	if f.Title != "How the fork happened" {
		t.Fatal(f.Title)
	}
	told := strings.ReplaceAll(strings.Join(f.Steps, "\n"), nbsp, " ")
	for _, want := range []string{
		"n3, which lies, proposes block A (aaaaaaaa) in view 1 to n0.", "n3, which lies, proposes block B (bbbbbbbb) in view 1 to n1.",
		"Ballots for A come from n0, n2 and n3; ballots for B come from n1 to n3. n2 and n3 signed for both.",
		"n0 has the weight for A", "1 ms later, n1 makes B final", "prove n2 and n3 at fault",
	} {
		if !strings.Contains(told, want) {
			t.Errorf("%q is not told:\n%s", want, told)
		}
	}
	svg := string(f.Drawing)
	at := func(label string) float64 {
		m := regexp.MustCompile(`y="([0-9.]+)">` + label + `<`).FindStringSubmatch(svg)
		if m == nil {
			t.Fatalf("no lane %s in %s", label, svg)
		}
		return number(t, m[1])
	}
	if !(at("n0") < at("n2 lies") && at("n2 lies") < at("n3 lies") && at("n3 lies") < at("n1")) {
		t.Error("those who lie do not stand between those who made A and B final")
	}
	if !strings.Contains(svg, ">agreement broken<") || !strings.Contains(svg, "A aaaaaaaa<") || !strings.Contains(svg, "B bbbbbbbb<") {
		t.Error("the breach or what is final where is not named")
	}
}

func TestAgreementHasNoFork(t *testing.T) {
	r := made(1, 4, 1, 500)
	if f := closeupFigure("closeup", r, liars(r)); f.Title != "One block, close up" || len(f.Steps) > 0 {
		t.Errorf("%s %v", f.Title, f.Steps)
	}
}

func TestCloseupKeepsThoseWhoMatter(t *testing.T) {
	r := made(1, 60, 19, 0)
	f := forked()
	r.Broken, r.Scenario.Expect = f.Broken, f.Scenario.Expect
	r.Marks = slices.Clone(f.Marks)
	for i := range r.Marks { // n3 of the small fork is n59 here
		if r.Marks[i].Node == 3 {
			r.Marks[i].Node = 59
		}
		if r.Marks[i].From == 3 {
			r.Marks[i].From = 59
		}
	}
	lying := liars(r)
	s, _ := sceneOf(r, lying)
	lanes := s.order(allNodes(r), lying, mostLanes)
	if len(lanes) != mostLanes {
		t.Errorf("%d lanes", len(lanes))
	}
	for _, n := range []int{0, 1, 59} {
		if !slices.Contains(lanes, n) {
			t.Errorf("n%d is not among %v", n, lanes)
		}
	}
}

func TestStretchGrowsWithTimeAndCutsGaps(t *testing.T) {
	ms := time.Millisecond
	s := newStretch(0, 1000*ms, []time.Duration{1 * ms, 3 * ms, 5 * ms, 900 * ms, 903 * ms, 1000 * ms}, ms)
	last := -1.0
	for at := time.Duration(0); at <= 1000*ms; at += ms / 2 {
		x := s.at(at)
		if x < last || x < 0 || x > 1 {
			t.Fatalf("%v lies at %v, after %v", at, x, last)
		}
		last = x
	}
	if s.at(0) != 0 || s.at(1000*ms) != 1 {
		t.Error("the ends are not at 0 and 1")
	}
	if gap := s.at(890*ms) - s.at(10*ms); gap > .5 {
		t.Errorf("an idle stretch takes %.2f of the room", gap)
	}
}

func TestQuantileIsASampleThatEnoughDoNotExceed(t *testing.T) {
	sorted := []time.Duration{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for part, want := range map[float64]time.Duration{0: 1, .1: 1, .11: 2, .5: 5, .9: 9, .99: 10, 1: 10} {
		if got := quantile(sorted, part); got != want {
			t.Errorf("%v: %d, not %d", part, got, want)
		}
	}
	if quantile(nil, .5) != 0 {
		t.Error("none has a quantile")
	}
}

func TestTicksAreRoundAndWithin(t *testing.T) {
	for _, s := range []scale{linear(0, 10, 0, 1), linear(1.2291, 1.2413, 0, 1), linear(5, 5, 0, 1), logarithmic(.004, 2.5, 0, 1), logarithmic(0, 0, 0, 1), logarithmic(1, 1e9, 0, 1)} {
		ticks := s.ticks(8)
		if len(ticks) < 2 || len(ticks) > 14 {
			t.Errorf("%+v has %d ticks", s, len(ticks))
		}
		for _, v := range ticks {
			if v < s.low*(1-1e-6) || v > s.high*(1+1e-6) || v == 0 && math.Signbit(v) {
				t.Errorf("%+v has a tick at %v", s, v)
			}
		}
	}
}

func TestClockLabelsDiffer(t *testing.T) {
	for _, s := range []scale{linear(0, 10, 0, 1), linear(1.2291, 1.2413, 0, 1), linear(0, .02, 0, 1)} {
		ticks := s.ticks(8)
		label := clock(ticks)
		for i := 1; i < len(ticks); i++ {
			if label(ticks[i]) == label(ticks[i-1]) {
				t.Errorf("two ticks are labelled %s", label(ticks[i]))
			}
		}
	}
}

func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		brief(0): "0", brief(999_700 * time.Nanosecond): "1 ms", brief(1240321 * time.Microsecond): "1.24 s", brief(-5 * time.Millisecond): "-5 ms",
		brief(37*time.Minute + 2*time.Second): "37m2s", brief(350 * time.Nanosecond): "350 ns", size(1234567): "1.23 MB", short(22_040): "22 k", short(9_876): "9,876", percent(.571428): "57.1 %",
		grouped(1234567): "1,234,567", nodes([]int{1, 2, 4, 5, 6}): "n1, n2 and n4 to n6", plural(1, "node"): "1 node", plural(0, "node"): "no nodes",
	} {
		if got = strings.ReplaceAll(got, nbsp, " "); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

func TestVerdictsSayWhatCameOut(t *testing.T) {
	all := results()
	over := made(9, 4, 2, 10)
	over.Broken = []sim.Breach{{Invariant: "ballots", Node: 1, Text: "two"}}
	defect := made(9, 4, 1, 10)
	defect.Broken = over.Broken
	kept := made(9, 4, 2, 10)
	kept.Scenario.Heal, kept.Scenario.Expect = nil, []string{"agreement"}
	idle := made(9, 4, 1, 10)
	idle.Scenario.Shows, idle.Goals = []string{"failed disk"}, nil
	for want, r := range map[string]*sim.Result{
		"Held": all["small"], "Broken, as expected": all["fork"], "No progress": all["stuck"],
		"Broken, beyond the fault budget": over, "Broken": defect, "Not broken as expected": kept, "Shows too little": idle,
	} {
		if got := verdictOf(r).Word; got != want {
			t.Errorf("%q, not %q", got, want)
		}
		if !strings.Contains(runPageOf(t, r), fmt.Sprintf("<b>%s</b>", want)) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func TestDownTimesEnd(t *testing.T) {
	marks := []sim.Mark{
		{At: 1, Node: 0, Kind: "crash"}, {At: 2, Node: 0, Kind: "crash"}, {At: 3, Node: 1, Kind: "cut", Text: "clogged"},
		{At: 4, Node: 0, Kind: "up"}, {At: 5, Node: 1, Kind: "joined"}, {At: 6, Node: 2, Kind: "stopped"},
	}
	got := spans(marks, 9)
	want := map[int]span{0: {from: 1, to: 4, kind: "down"}, 1: {from: 3, to: 5, kind: "cut", text: "clogged"}, 2: {from: 6, to: 9, kind: "down"}}
	for n, s := range want {
		if len(got[n]) != 1 || got[n][0] != s {
			t.Errorf("n%d: %+v, not %+v", n, got[n], s)
		}
	}
}

func TestMarksOfRealRunsAreUnderstood(t *testing.T) {
	r, err := sim.Run(t.Context(), scenario.Scenario{Network: scenario.Network{Anchors: 4}, Load: scenario.Load{Writes: 5, Reads: 1}}, sim.Options{Marks: 5000})
	if err != nil {
		t.Fatal(err)
	}
	kinds := make(map[string]int)
	for _, m := range r.Marks {
		kind, block := ballot(m)
		if kind != "" && (block != "" || kind == "nullify") {
			kinds[kind]++
		}
		if s, ok := sealedOf(m); ok && s.height > 0 && s.block != "" {
			kinds["final"]++
		}
	}
	for _, kind := range []string{"propose", "notarize", "finalize", "final"} {
		if kinds[kind] == 0 {
			t.Errorf("no %s is found among %d marks", kind, len(r.Marks))
		}
	}
	f := closeupFigure("closeup", r, liars(r))
	if f.Title != "One block, close up" || !strings.Contains(string(f.Drawing), "msg finalize a") {
		t.Errorf("%s shows no ballots", f.Title)
	}
}

// TestOneScopeIsDrawn: blocks of two scopes at one height are no fork; the scope of the breach is drawn.
func TestOneScopeIsDrawn(t *testing.T) {
	r := made(2, 4, 0, 100)
	whole, _ := inOne(r)
	height := heightsFigure(whole, nil).Drawing
	for _, m := range r.Marks {
		m.Scope = 1
		if s, ok := sealedOf(m); ok {
			m.Text = strings.ReplaceAll(m.Text, s.block, "another")
		}
		r.Marks = append(r.Marks, m)
	}
	r.Scopes = []sim.ScopeRecord{{Prefix: "/below/"}}
	if page := runPageOf(t, r); strings.Contains(page, "How the fork happened") || !strings.Contains(page, "Only the root scope is drawn.") {
		t.Error("the root scope is not drawn, or as if there were a fork")
	}
	if one, _ := inOne(r); heightsFigure(one, nil).Drawing != height {
		t.Error("another scope's marks are drawn")
	}
	r.Broken = []sim.Breach{{Invariant: "durable", Scope: 1, At: time.Second}, {Invariant: "durable", At: time.Second}}
	if one, _ := inOne(r); len(one.Broken) != 1 {
		t.Error("another scope's breach is drawn")
	}
	if !strings.Contains(runPageOf(t, r), "Only the scope of /below/ is drawn.") {
		t.Error("the scope of the breach is not drawn")
	}
}
