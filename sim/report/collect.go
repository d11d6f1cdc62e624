package report

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/sim/scenario"
)

// Plan states what a study runs. The zero value of a field means the default
// named beside it; with all defaults it takes about a minute on two cores.
type Plan struct {
	Info                       // Command is that of the whole study; aweigh sim report
	Seed    uint64             // the first; 1
	Seeds   int                // worlds for each point; 4
	Workers int                // worlds at the same time; as many as there are processors
	Failure *scenario.Scenario // to look at closely; none
	Sizes   []int              // numbers of anchors; 4 to 100
	Models  []string           // how frames travel; all of sim
	Loss    []scenario.Share   // of frames; 0 to 40 %
	Lies    []string           // told while frames are lost; equivocate and withhold
	Attacks []string           // to measure the pace under; mute, equivocate, delay, withhold
	Trust   []string           // scenarios of the library that attack trust; those that do
}

func (p Plan) withDefaults() Plan {
	if p.Command == "" {
		p.Command = "aweigh sim report"
	}
	p.Seed = max(1, p.Seed)
	if p.Seeds <= 0 {
		p.Seeds = 4
	}
	if p.Workers <= 0 {
		p.Workers = runtime.GOMAXPROCS(0)
	}
	if len(p.Sizes) == 0 {
		p.Sizes = []int{4, 7, 10, 16, 25, 40, 64, 100}
	}
	if len(p.Loss) == 0 {
		for _, percent := range []scenario.Share{0, 2, 5, 10, 20, 30, 40} {
			p.Loss = append(p.Loss, scenario.Whole/100*percent)
		}
	}
	if len(p.Models) == 0 {
		p.Models = []string{"constant", "uniform", "lognormal", "regions"}
	}
	if len(p.Lies) == 0 {
		p.Lies = []string{"equivocate", "withhold"}
	}
	if len(p.Trust) == 0 {
		p.Trust = []string{
			"collusion", "omission", "usurpers", "epoch-ends", "whitewash", "on-off-trust", "on-off-schedule",
			"made-up-proofs", "farming", "sybil", "sybil-welcome", "long-absence",
		}
	}
	if len(p.Attacks) == 0 {
		p.Attacks = []string{"mute", "equivocate", "delay", "withhold"}
	}
	return p
}

// seeds names the seeds of each point.
func (p Plan) seeds() string {
	if p.Seeds == 1 {
		return fmt.Sprint(p.Seed)
	}
	return fmt.Sprintf("%d to %d", p.Seed, p.Seed+uint64(p.Seeds)-1)
}

// Runner runs a scenario, as sim.Run does.
type Runner func(context.Context, scenario.Scenario, sim.Options) (*sim.Result, error)

// experiment is some worlds and what to do with their results, which come in the
// order of the worlds.
type experiment struct {
	worlds []scenario.Scenario
	marks  int // to keep of each
	take   func(*StudyData, []*sim.Result)
}

// Collect runs the worlds of a study, some at a time, and calls progress after
// each. Its result depends on the plan alone, not on the number of workers.
func Collect(ctx context.Context, p Plan, run Runner, progress func(done, of int)) (StudyData, error) {
	p = p.withDefaults()
	experiments := []experiment{costOf(p), latencyOf(p), heatOf(p), paceOf(p), trustOf(p), failureOf(p)} // the long worlds first
	var all []job
	for _, e := range experiments {
		for _, s := range e.worlds {
			all = append(all, job{s, e.marks})
		}
	}
	d := StudyData{Info: p.Info}
	results, err := runAll(ctx, p.Workers, all, run, progress)
	if err != nil {
		return d, err
	}
	d.sum(results)
	d.Tally.Source = Source{Seeds: p.seeds(), Command: p.Command}
	for _, e := range experiments {
		e.take(&d, results[:len(e.worlds)])
		results = results[len(e.worlds):]
	}
	return d, nil
}

type job struct {
	world scenario.Scenario
	marks int
}

// runAll runs all jobs, so many at a time. The first job that fails, in their
// order, gives the error.
func runAll(ctx context.Context, workers int, jobs []job, run Runner, progress func(done, of int)) ([]*sim.Result, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	results, errs := make([]*sim.Result, len(jobs)), make([]error, len(jobs))
	var mu sync.Mutex
	next, done := 0, 0
	take := func() int {
		mu.Lock()
		defer mu.Unlock()
		if next >= len(jobs) || ctx.Err() != nil {
			return -1
		}
		next++
		return next - 1
	}
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := take(); i >= 0; i = take() {
				results[i], errs[i] = attempt(ctx, jobs[i], run)
				if errs[i] != nil {
					stop()
				}
				mu.Lock()
				done++
				if progress != nil {
					progress(done, len(jobs))
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	i := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if i >= 0 {
		return nil, errs[i]
	}
	return results, ctx.Err()
}

// attempt runs one world. A panic is an error that names it.
func attempt(ctx context.Context, j job, run Runner) (r *sim.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("report: %s, seed %d: panic: %v\n%s", j.world.Name, j.world.Seed, p, debug.Stack())
		}
	}()
	r, err = run(ctx, j.world, sim.Options{Marks: j.marks})
	if err != nil {
		return nil, fmt.Errorf("report: %s, seed %d: %w", j.world.Name, j.world.Seed, err)
	}
	return r, nil
}

// sum adds up what all runs have in common.
func (d *StudyData) sum(results []*sim.Result) {
	for _, i := range scenario.Invariants {
		d.Tally.Within = append(d.Tally.Within, sim.Verdict{Invariant: i.Name})
		d.Tally.Beyond = append(d.Tally.Beyond, sim.Verdict{Invariant: i.Name})
	}
	for _, g := range scenario.Goals {
		d.Tally.Goals = append(d.Tally.Goals, sim.Count{Name: g.Name})
	}
	for _, r := range results {
		d.Worlds++
		d.Events += r.Events
		d.Virtual += r.Virtual
		into := d.Tally.Within
		if r.Faulty > r.Budget {
			d.Beyond++
			into = d.Tally.Beyond
		}
		for _, v := range r.Verdicts {
			if i := slices.IndexFunc(into, func(k sim.Verdict) bool { return k.Invariant == v.Invariant }); i >= 0 {
				into[i].Checks += v.Checks
				into[i].Broken += v.Broken
			}
		}
		for _, g := range r.Goals {
			if i := slices.IndexFunc(d.Tally.Goals, func(k sim.Count) bool { return k.Name == g.Name }); i >= 0 {
				d.Tally.Goals[i].Count += g.Count
			}
		}
	}
}
