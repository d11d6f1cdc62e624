package sweep

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/sim/scenario"
)

// worldOf is a run that costs nothing: what comes of it depends on the seed alone.
func worldOf(_ context.Context, s scenario.Scenario, _ sim.Options) (*sim.Result, error) {
	r := &sim.Result{
		Scenario: s, Trace: aweigh.Hash{byte(s.Seed)}, Events: s.Seed, Virtual: time.Second,
		Verdicts: []sim.Verdict{{Invariant: "agreement", Checks: s.Seed}},
		Goals:    []sim.Count{{Name: scenario.Goals[s.Seed%3].Name, Count: 1}},
		Attacks:  []sim.Count{{Name: "mute", Count: 2}},
		Healed:   sim.Healing{Asked: true, Possible: s.Seed%2 == 0, Reached: s.Seed%2 == 0},
	}
	if s.Seed%10 == 7 {
		r.Verdicts[0].Broken = 1
		r.Broken = []sim.Breach{{Invariant: "agreement", At: time.Duration(s.Seed) * time.Millisecond, Node: 3, Text: "two blocks"}}
	}
	return r, nil
}

func seeded(seed uint64) scenario.Scenario { return scenario.Scenario{Seed: seed} }

func TestSweepIsTheSameWithAnyNumberOfWorkers(t *testing.T) {
	for _, most := range []int{0, 1, 3} {
		var want *Result
		for _, workers := range []int{1, 2, 7, 100} {
			var told []uint64
			r, err := Run(t.Context(), Config{
				From: 5, Seeds: 60, Workers: workers, Draw: seeded, Run: worldOf, MaxFailures: most,
				Progress: func(p Progress) {
					if p.Failure != nil {
						told = append(told, p.Failure.Seed)
					}
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.IsSorted(told) || len(told) != len(r.Failures) {
				t.Errorf("told of failures %v, and found %d", told, len(r.Failures))
			}
			if want == nil {
				want = r
			} else if !reflect.DeepEqual(r, want) {
				t.Errorf("%d workers, at most %d failures: got %+v, want %+v", workers, most, r, want)
			}
		}
		if most > 0 && len(want.Failures) != most {
			t.Errorf("%d failures, want %d", len(want.Failures), most)
		}
	}
}

func TestSweepAddsUpItsWorlds(t *testing.T) {
	r, err := Run(t.Context(), Config{Seeds: 20, Workers: 3, Draw: seeded, Run: worldOf})
	if err != nil {
		t.Fatal(err)
	}
	if r.Worlds != 20 || r.Next != 21 || r.Events != 210 || r.Virtual != 20*time.Second || r.Possible != 10 || r.Healed != 10 {
		t.Errorf("got %+v", r)
	}
	if v := r.Verdicts[0]; v != (sim.Verdict{Invariant: "agreement", Checks: 210, Broken: 2}) {
		t.Errorf("got %+v", v)
	}
	if g := r.Goals[:4]; g[0].Count != 6 || g[1].Count != 7 || g[2].Count != 7 || g[3].Count != 0 {
		t.Errorf("goals %+v", g)
	}
	if !slices.Equal(r.Attacks, []sim.Count{{Name: "mute", Count: 40}}) {
		t.Errorf("attacks %+v", r.Attacks)
	}
	f := r.Failures
	if len(f) != 2 || f[0].Seed != 7 || f[1].Seed != 17 || f[1].Breach.At != 17*time.Millisecond || !strings.Contains(f[1].Text, "agreement broken") {
		t.Errorf("failures %+v", f)
	}
}

func TestWorldThatPanicsFailsAlone(t *testing.T) {
	r, err := Run(t.Context(), Config{Seeds: 6, Workers: 2, Draw: seeded, Run: func(ctx context.Context, s scenario.Scenario, o sim.Options) (*sim.Result, error) {
		switch s.Seed {
		case 3:
			panic("three")
		case 4:
			return nil, fmt.Errorf("%w: four", scenario.ErrInvalid)
		}
		return worldOf(ctx, s, o)
	}})
	if err != nil || r.Worlds != 6 || len(r.Failures) != 2 {
		t.Fatalf("got %+v, %v", r, err)
	}
	if f := r.Failures[0]; f.Seed != 3 || f.Text != "panic: three" || !strings.Contains(f.Stack, "sweep_test.go") {
		t.Errorf("got %+v", f)
	}
	if f := r.Failures[1]; f.Seed != 4 || !strings.Contains(f.Text, "four") {
		t.Errorf("got %+v", f)
	}
}

func TestSweepSeesThatTwoRunsDiffer(t *testing.T) {
	var runs atomic.Int64
	r, err := Run(t.Context(), Config{Seeds: 5, Twice: true, Draw: seeded, Run: func(ctx context.Context, s scenario.Scenario, o sim.Options) (*sim.Result, error) {
		r, err := worldOf(ctx, s, o)
		if runs.Add(1); s.Seed == 2 {
			r.Trace[1] = byte(runs.Load())
		}
		return r, err
	}})
	if err != nil || runs.Load() != 10 || len(r.Failures) != 1 {
		t.Fatalf("%d runs, got %+v, %v", runs.Load(), r, err)
	}
	if f := r.Failures[0]; f.Seed != 2 || f.Text != "two runs of one seed differ" {
		t.Errorf("got %+v", f)
	}
}

func TestStoppedSweepKeepsWhatWasDone(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	others.Add(3)
	r, err := Run(ctx, Config{From: 5, Seeds: 4, Workers: 2, Draw: seeded, Run: func(ctx context.Context, s scenario.Scenario, o sim.Options) (*sim.Result, error) {
		if s.Seed == 6 { // hangs, and is stopped when all others are done
			others.Wait()
			stop()
			<-ctx.Done()
			return nil, ctx.Err()
		}
		defer others.Done()
		return worldOf(ctx, s, o)
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if r.Next != 6 || r.Worlds != 3 || len(r.Failures) != 1 || r.Failures[0].Seed != 7 {
		t.Errorf("got %+v", r)
	}
}

func TestOnlyLargeSweepsMissGoals(t *testing.T) {
	for seeds, want := range map[uint64]int{enoughWorlds - 1: 0, enoughWorlds: len(scenario.Goals) - 3 - len(rare)} {
		r, err := Run(t.Context(), Config{Seeds: seeds, Draw: seeded, Run: worldOf})
		if err != nil || len(r.Missing()) != want {
			t.Errorf("%d seeds: %v missing, want %d (%v)", seeds, r.Missing(), want, err)
		}
	}
}
