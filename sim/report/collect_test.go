package report

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/sim/scenario"
)

// pretend is a runner whose results depend on the scenario alone.
func pretend(_ context.Context, s scenario.Scenario, o sim.Options) (*sim.Result, error) {
	lying := 0
	for _, r := range s.Roles {
		lying += r.Count
	}
	r := made(s.Seed, s.WithDefaults().Network.Anchors, lying, min(o.Marks, 100))
	r.Scenario = s.WithDefaults()
	if o.Marks == 0 {
		r.Marks = nil
	}
	return r, nil
}

var small = Plan{Seeds: 2, Sizes: []int{4, 7, 50}, Loss: []scenario.Share{0, 100_000}, Models: []string{"constant", "regions"}, Attacks: []string{"mute"}}

func TestStudyDependsOnThePlanAlone(t *testing.T) {
	var first StudyData
	for _, workers := range []int{1, 2, 7} {
		p := small
		p.Workers = workers
		d, err := Collect(t.Context(), p, pretend, nil)
		if err != nil {
			t.Fatal(err)
		}
		if workers == 1 {
			first = d
		}
		if !reflect.DeepEqual(d, first) {
			t.Errorf("%d workers give another study", workers)
		}
	}
}

func TestPlannedScenariosMakeSense(t *testing.T) {
	p := Plan{Failure: &scenario.Scenario{Name: "failure", Roles: []scenario.Role{{Attacks: []string{"fork"}, Weight: "over"}}, Expect: []string{"agreement"}}}
	var mu sync.Mutex
	seen := 0
	_, err := Collect(t.Context(), p, func(ctx context.Context, s scenario.Scenario, o sim.Options) (*sim.Result, error) {
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		mu.Lock()
		seen++
		mu.Unlock()
		return pretend(ctx, s, o)
	}, nil)
	if err != nil || seen < 200 {
		t.Errorf("%d worlds, %v", seen, err)
	}
}

func TestStudyNamesSeedsAndCommandOfEveryFigure(t *testing.T) {
	p := small
	p.Command, p.Failure = "aweigh sim report --seeds 2", &scenario.Scenario{Seed: 7}
	d, err := Collect(t.Context(), p, pretend, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]Source{"latency": d.Latency.Source, "cost": d.Cost.Source, "heat": d.Heat.Source, "pace": d.Throughput.Source, "conduct": d.Conducts.Source, "share": d.Shares.Source, "tally": d.Tally.Source} {
		if s.Seeds != "1 to 2" || s.Command != p.Command {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if d.Failure.Seeds != "7" || d.Failure.Result == nil || len(d.Failure.Result.Marks) == 0 {
		t.Error("the failure has no seed, no result or no marks")
	}
	if page := studyPageOf(t, d); strings.Count(page, "Seeds 1 to 2.") < 5 {
		t.Error("a figure does not show its seeds")
	}
}

func TestResultsStandWhereTheirWorldsDo(t *testing.T) {
	d, err := Collect(t.Context(), small, pretend, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range d.Heat.Cells {
		if c.Faulty != uint64(100*c.Liars) || c.Over != (c.Liars > 3) || c.Worlds != 2 {
			t.Errorf("%+v", c)
		}
	}
	var anchors []int
	for _, p := range d.Cost.Points {
		anchors = append(anchors, p.Anchors)
	}
	if !reflect.DeepEqual(anchors, []int{4, 7, 50}) || len(d.Latency.Models) != 2 || len(d.Latency.Models[1].Points) != 2 {
		t.Errorf("%v %v", anchors, d.Latency.Models)
	}
	for i, p := range d.Throughput.Attacks[0].Points {
		if p.Faulty != uint64(100*i) {
			t.Errorf("point %d: %+v", i, p)
		}
	}
	if d.Beyond == 0 || d.Worlds <= d.Beyond {
		t.Errorf("%d of %d worlds are beyond the budget", d.Beyond, d.Worlds)
	}
}

func TestProgressCountsEveryWorld(t *testing.T) {
	last, total := 0, 0
	_, err := Collect(t.Context(), small, pretend, func(done, of int) {
		if done != last+1 {
			t.Errorf("%d follows %d", done, last)
		}
		last, total = done, of
	})
	if err != nil || last != total || total == 0 {
		t.Errorf("%d of %d, %v", last, total, err)
	}
}

func TestCollectEndsWithWhatFails(t *testing.T) {
	bad := errors.New("bad")
	_, err := Collect(t.Context(), small, func(ctx context.Context, s scenario.Scenario, o sim.Options) (*sim.Result, error) {
		if s.Name == "heat" {
			return nil, bad
		}
		return pretend(ctx, s, o)
	}, nil)
	if !errors.Is(err, bad) || !strings.Contains(err.Error(), "heat, seed 1") {
		t.Error(err)
	}
	_, err = Collect(t.Context(), small, func(context.Context, scenario.Scenario, sim.Options) (*sim.Result, error) { panic("broken") }, nil)
	if err == nil || !strings.Contains(err.Error(), "panic: broken") {
		t.Error(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Collect(ctx, small, pretend, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
