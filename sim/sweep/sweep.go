package sweep

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/sim/scenario"
)

// Config states which worlds to run. The zero value of a field means the
// default named beside it.
type Config struct {
	From        uint64                                                                     // the first seed; 1
	Seeds       uint64                                                                     // how many; 2000
	Workers     int                                                                        // worlds at the same time; 1
	Draw        func(seed uint64) scenario.Scenario                                        // scenario.Draw
	Run         func(context.Context, scenario.Scenario, sim.Options) (*sim.Result, error) // sim.Run
	Twice       bool                                                                       // run each world twice, and compare
	MaxFailures int                                                                        // ends the sweep; 0: no number does
	Progress    func(Progress)                                                             // called after each world, in order of seed
}

// Progress is where a sweep stands.
type Progress struct {
	Done, Of uint64   // worlds
	Failures int      // so far
	Failure  *Failure // of the world that was done last
}

// Result is what came of all worlds together.
type Result struct {
	From, Seeds uint64
	Worlds      uint64 // that were run
	Next        uint64 // the first seed that was not
	Possible    uint64 // worlds that had to heal
	Healed      uint64 // and did
	Events      uint64
	Virtual     time.Duration
	Verdicts    []sim.Verdict // one for each of scenario.Invariants, in their order
	Goals       []sim.Count   // one for each of scenario.Goals, in their order
	Attacks     []sim.Count   // lies told, by attack
	Refused     []sim.Count   // frames, by reason
	Executed    uint64        // as in sim.Result
	Unmodelled  []sim.Count   // likewise
	Failures    []Failure
}

// Failure is a world to look at.
type Failure struct {
	Seed   uint64
	Text   string
	Breach *sim.Breach // the first one, if an invariant broke
	Stack  string      // if the program panicked
}

// enoughWorlds is from how many on a sweep must have reached every goal.
const enoughWorlds = 500

// rare are goals that so few drawn worlds reach that only sweeps of manyWorlds must. Scenarios or tests reach them.
var rare = []string{"warning credited", "readmitted", "verified read too old", "refused: other scope", "refused: false neighbours", "order obeyed under fire",
	"scope came home under fire", "hostile scope came home", "founded again"}

// manyWorlds is how many worlds must reach every goal.
const manyWorlds = 10_000

// Missing are the goals that no world reached, if there were enough worlds to
// reach them all.
func (r *Result) Missing() (names []string) {
	if r.Worlds < enoughWorlds {
		return nil
	}
	for _, g := range r.Goals {
		if g.Count == 0 && (r.Worlds >= manyWorlds || !slices.Contains(rare, g.Name)) {
			names = append(names, g.Name)
		}
	}
	return names
}

// Run draws a world from each seed, and runs cfg.Workers of them at a time. What
// comes of it depends on the seeds alone, not on the number of workers. A world
// that panics is a failure of its seed. If ctx ends, the result holds the worlds
// that were done, and the error is that of ctx.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	cfg = cfg.withDefaults()
	inner, stop := context.WithCancel(ctx)
	defer stop()
	seeds, done := make(chan uint64), make(chan outcome)
	var workers sync.WaitGroup
	for range cfg.Workers {
		workers.Go(func() {
			for seed := range seeds {
				done <- cfg.world(inner, seed)
			}
		})
	}
	go func() {
		defer close(done)
		defer workers.Wait()
		defer close(seeds)
		for i := range cfg.Seeds {
			select {
			case seeds <- cfg.From + i:
			case <-inner.Done():
				return
			}
		}
	}()

	r := newResult(cfg)
	early := make(map[uint64]outcome) // done before a seed that comes first
	for o := range done {
		if o.stopped || r.full(cfg) {
			continue
		}
		early[o.seed] = o
		for next, ok := early[r.Next]; ok && !r.full(cfg); next, ok = early[r.Next] {
			delete(early, r.Next)
			r.Next++
			r.add(next, cfg)
		}
		if r.full(cfg) {
			stop()
		}
	}
	if err := ctx.Err(); err != nil && r.Worlds < cfg.Seeds && !r.full(cfg) {
		for _, seed := range slices.Sorted(maps.Keys(early)) {
			r.add(early[seed], cfg)
		}
		return r, err
	}
	return r, nil
}

func (cfg Config) withDefaults() Config {
	if cfg.From == 0 {
		cfg.From = 1
	}
	if cfg.Seeds == 0 {
		cfg.Seeds = 2000
	}
	cfg.Seeds = min(cfg.Seeds, -cfg.From) // no seed follows the largest
	cfg.Workers = max(1, cfg.Workers)
	if cfg.Draw == nil {
		cfg.Draw = scenario.Draw
	}
	if cfg.Run == nil {
		cfg.Run = sim.Run
	}
	return cfg
}

// outcome is what came of one world.
type outcome struct {
	seed    uint64
	result  *sim.Result // nil if there is none
	failure *Failure
	stopped bool // by the end of ctx
}

// world runs the world of one seed.
func (cfg Config) world(ctx context.Context, seed uint64) (o outcome) {
	o.seed = seed
	fail := func(text string) { o.failure = &Failure{Seed: seed, Text: text} }
	defer func() {
		if p := recover(); p != nil {
			fail(fmt.Sprintf("panic: %v", p))
			o.failure.Stack = string(debug.Stack())
		}
	}()
	var err error
	if o.result, err = cfg.Run(ctx, cfg.Draw(seed), sim.Options{}); err != nil {
		fail(strings.TrimPrefix(err.Error(), "sim: "))
		o.stopped = ctx.Err() != nil
		return o
	}
	if text := o.result.Failure(); text != "" {
		fail(text)
		if len(o.result.Broken) > 0 {
			o.failure.Breach = &o.result.Broken[0]
		}
	}
	if !cfg.Twice {
		return o
	}
	again, err := cfg.Run(ctx, cfg.Draw(seed), sim.Options{})
	switch {
	case ctx.Err() != nil:
		o.stopped = true
	case err != nil:
		fail("the second run of one seed fails: " + err.Error())
	case again.Trace != o.result.Trace:
		fail("two runs of one seed differ")
	}
	return o
}

func newResult(cfg Config) *Result {
	r := &Result{From: cfg.From, Seeds: cfg.Seeds, Next: cfg.From}
	for _, i := range scenario.Invariants {
		r.Verdicts = append(r.Verdicts, sim.Verdict{Invariant: i.Name})
	}
	for _, g := range scenario.Goals {
		r.Goals = append(r.Goals, sim.Count{Name: g.Name})
	}
	return r
}

// full reports whether there are as many failures as were asked for.
func (r *Result) full(cfg Config) bool {
	return cfg.MaxFailures > 0 && len(r.Failures) >= cfg.MaxFailures
}

// add adds a world, and reports it.
func (r *Result) add(o outcome, cfg Config) {
	r.Worlds++
	if o.failure != nil {
		r.Failures = append(r.Failures, *o.failure)
	}
	if o.result != nil {
		r.count(o.result)
	}
	if cfg.Progress != nil {
		cfg.Progress(Progress{Done: r.Worlds, Of: r.Seeds, Failures: len(r.Failures), Failure: o.failure})
	}
}

func (r *Result) count(of *sim.Result) {
	r.Events += of.Events
	r.Virtual += of.Virtual
	if of.Healed.Possible {
		r.Possible++
	}
	if of.Healed.Reached {
		r.Healed++
	}
	for _, v := range of.Verdicts {
		i := slices.IndexFunc(r.Verdicts, func(known sim.Verdict) bool { return known.Invariant == v.Invariant })
		if i < 0 {
			i = len(r.Verdicts)
			r.Verdicts = append(r.Verdicts, sim.Verdict{Invariant: v.Invariant})
		}
		r.Verdicts[i].Checks += v.Checks
		r.Verdicts[i].Broken += v.Broken
	}
	r.Goals = sum(r.Goals, of.Goals)
	r.Attacks = sum(r.Attacks, of.Attacks)
	r.Refused = sum(r.Refused, of.Refused)
	r.Executed += of.Executed
	r.Unmodelled = sum(r.Unmodelled, of.Unmodelled)
}

// sum adds counts to those of the same name.
func sum(all, more []sim.Count) []sim.Count {
	for _, c := range more {
		i := slices.IndexFunc(all, func(known sim.Count) bool { return known.Name == c.Name })
		if i < 0 {
			i = len(all)
			all = append(all, sim.Count{Name: c.Name})
		}
		all[i].Count += c.Count
	}
	return all
}
