package report

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/sim/scenario"
	"github.com/aweigh/aweigh/trust"
)

// epochs is a made-up run of three anchors, of which the last lies; each epoch has
// the trust of all, in percent.
func epochs(scores ...[3]int) *sim.Result {
	r := &sim.Result{Scenario: scenario.Scenario{Network: scenario.Network{Anchors: 3}}, Liars: []int{2}, Virtual: 10 * time.Second}
	for i, e := range scores {
		x := sim.EpochRecord{At: time.Duration(i) * time.Second, Total: 100, Liars: uint64(e[2] / 2), Heads: 3}
		for n, s := range e {
			x.Seats = append(x.Seats, sim.SeatRecord{Node: n, Score: trust.Score(s * 10_000), Seated: s > 0, Barred: s == 0})
		}
		r.Epochs = append(r.Epochs, x)
	}
	return r
}

func TestMeanTrustIsThatOfTheKind(t *testing.T) {
	group := []*sim.Result{epochs([3]int{50, 50, 50}, [3]int{60, 70, 40}, [3]int{80, 80, 0}), epochs([3]int{50, 50, 50}, [3]int{60, 50, 20})}
	for node, want := range map[int][]float64{founders: {.5, .6}, 2: {.5, .3}, seated: {.5, .3}, 0: {.5, .6}} {
		got := meanScores(group, node)
		if len(got) != len(want) || slices.ContainsFunc(want, func(v float64) bool { i := slices.Index(want, v); return math.Abs(got[i]-v) > 1e-9 }) {
			t.Errorf("%d: %v, want %v", node, got, want)
		}
	}
	if got := meanScores(group[:1], seated); len(got) != 2 {
		t.Errorf("who is barred has a seat: %v", got)
	}
}

func TestAttackIsTheWeightOfLiars(t *testing.T) {
	a := attack("made", []*sim.Result{epochs([3]int{50, 50, 40}, [3]int{60, 60, 60}, [3]int{80, 80, 20}), epochs([3]int{50, 50, 40}, [3]int{60, 60, 20}), {}})
	near := func(x, y float64) bool { return math.Abs(x-y) < 1e-9 }
	if a.Worlds != 2 || !near(a.Begin, .2) || !near(a.Most, .25) || !near(a.Peak, .3) || !near(a.End, .1) {
		t.Errorf("%+v", a)
	}
	f := shareFigure(Shares{Attacks: []Attack{a}})
	at := regexp.MustCompile(`class="(open|end)" cx="([0-9.]+)"`).FindAllStringSubmatch(string(f.Drawing), -1)
	third := regexp.MustCompile(`class="ref" x1="([0-9.]+)"`).FindAllStringSubmatch(string(f.Drawing), -1)
	if len(at) != 2 || len(third) != 2 || number(t, at[0][2]) <= number(t, at[1][2]) || number(t, third[1][1]) <= number(t, at[0][2]) {
		t.Errorf("%v %v", at, third)
	}
}

func TestTrustOfEveryAnchorIsDrawn(t *testing.T) {
	r := epochs([3]int{50, 50, 50}, [3]int{60, 60, 40}, [3]int{70, 70, 0})
	svg := string(scoreFigure(r, liars(r)).Drawing)
	if strings.Count(svg, `class="node"`) != 2 || strings.Count(svg, `class="node liar"`) != 1 || !strings.Contains(svg, ">n2<") || !strings.Contains(svg, ">honest<") {
		t.Error(svg)
	}
	if f := scoreFigure(epochs([3]int{1, 1, 1}), nil); f.Drawing != "" || f.Caption == "" {
		t.Error("an epoch that did not end is drawn")
	}
}

func TestConductIsNamedAndCounted(t *testing.T) {
	f := conductFigure(Conducts{Kinds: []Conduct{{"takes part", "x", []float64{.5, .6, .7}}, {"lies", "y", []float64{.5, .2}}, {"nothing", "z", nil}}})
	svg := string(f.Drawing)
	if strings.Count(svg, `class="curve`) != 2 || len(f.Tables[0].Rows) != 2 || !slices.Contains(f.Tables[0].Rows[1], percent(.2)) {
		t.Errorf("%v\n%s", f.Tables, svg)
	}
	if f := conductFigure(Conducts{}); f.Drawing != "" || f.Caption == "" {
		t.Error("nothing is drawn as something")
	}
}
