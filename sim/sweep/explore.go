package sweep

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"

	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/sim/scenario"
)

// ExploreConfig states which schedules to run. The zero value of a field means the default named beside
// it.
type ExploreConfig struct {
	Seed   uint64              // of chance; 1
	Worlds int                 // how many to run, those of Corpus besides; 1000
	Corpus []scenario.Scenario // schedules to begin with
	Blind  bool                // draws each schedule anew, whatever the others came to: to compare
	Until  bool                // ends at the first failure
	Most   int                 // schedules in the resulting corpus; 0: all
	Told   func(worlds, states, failures int)
}

// Explored is what came of it.
type Explored struct {
	Worlds   int
	States   int                 // of votes, by Options.States
	Corpus   []scenario.Scenario // the schedules that reached new states
	Failures []ExploreFailure
}

// ExploreFailure is a schedule that broke something.
type ExploreFailure struct {
	World    int // its number, from 1
	Scenario scenario.Scenario
	Text     string
}

// smallWorlds are the small worlds whose schedules are explored.
func smallWorlds() []scenario.Scenario {
	ground := func(name, mode string, anchors int, attacks ...string) scenario.Scenario {
		s := scenario.Scenario{
			Name: name, Network: scenario.Network{Anchors: anchors, Mode: mode, EpochBlocks: 12},
			Links: scenario.Links{Model: "constant", Delay: 2 * time.Millisecond},
			Load:  scenario.Load{Clients: 2, Writes: 30, Reads: 6, Give: time.Second},
			Stop:  4 * time.Second, Heal: &scenario.Heal{},
		}
		s.Network.Timing.View = 200 * time.Millisecond
		s.Network.Timing.MaxView = 800 * time.Millisecond
		if len(attacks) > 0 {
			s.Roles = []scenario.Role{{Attacks: attacks, Anchors: []int{anchors - 1}, Rate: scenario.Whole / 2}}
		}
		return s
	}
	return []scenario.Scenario{
		ground("four", "bft", 4),
		ground("four, of whom one equivocates", "bft", 4, "equivocate"),
		ground("four, of whom one builds rivals", "bft", 4, "rival", "shirk"),
		ground("four, of whom one is two", "bft", 4, "twins"),
		ground("three in mode crash", "crash", 3),
		ground("five in mode crash", "crash", 5),
	}
}

// explorer is the state of Explore.
type explorer struct {
	cfg   ExploreConfig
	rand  *rand.Rand
	cells map[cell]*way
	order []cell // as they were found
	out   *Explored
	lead  []leading // schedules that came to new cells
}

// cell is a state of votes in one of the grounds.
type cell struct {
	ground int
	state  uint64
}

// way is how to come to a cell.
type way struct {
	bytes  []byte // the shortest beginning of a schedule that does
	visits int    // by how many worlds
}

// leading is a schedule, and to how many cells it came first.
type leading struct {
	ground int
	bytes  []byte
	first  int
}

// Explore runs schedules of small worlds, and notes the states of consensus that they reach. Most schedules begin as
// one that reached a rare state, and go on at random from there, as in Go-Explore (Ecoffet et al., "First return,
// then explore", Nature 590, 2021): a world is a function of its schedule, so that it reaches the state again. The
// result depends on the configuration alone. If ctx ends, the result is that of the runs so far, and the error is
// that of ctx.
func Explore(ctx context.Context, cfg ExploreConfig) (*Explored, error) {
	x := &explorer{cfg: cfg, rand: rand.New(rand.NewPCG(max(1, cfg.Seed), 0xe4b1)), cells: make(map[cell]*way), out: new(Explored)}
	if x.cfg.Worlds == 0 {
		x.cfg.Worlds = 1000
	}
	grounds := smallWorlds()
	for _, s := range cfg.Corpus {
		at := slices.IndexFunc(grounds, func(g scenario.Scenario) bool { return g.Name == s.Name })
		bytes, err := hex.DecodeString(s.Schedule)
		if at < 0 || err != nil {
			return nil, fmt.Errorf("%w: a schedule of %q, which is none of the worlds that are explored", scenario.ErrInvalid, s.Name)
		}
		if err := x.run(ctx, grounds, at, bytes); err != nil {
			return x.result(grounds), err
		}
	}
	for range x.cfg.Worlds {
		if x.cfg.Until && len(x.out.Failures) > 0 {
			break
		}
		ground, bytes := x.next(len(grounds))
		if err := x.run(ctx, grounds, ground, bytes); err != nil {
			return x.result(grounds), err
		}
	}
	return x.result(grounds), nil
}

// tries is of how many states the one where the fewest worlds came is gone on from.
const tries = 20

// next is the schedule to run: a new one, or one that goes on from where few have been.
func (x *explorer) next(grounds int) (ground int, bytes []byte) {
	ground = x.rand.IntN(grounds)
	if !x.cfg.Blind && len(x.order) > 0 && x.rand.IntN(3) > 0 {
		rare := x.order[x.rand.IntN(len(x.order))]
		for range tries - 1 {
			c := x.order[x.rand.IntN(len(x.order))]
			if a, b := x.cells[c], x.cells[rare]; a.visits*len(a.bytes) < b.visits*len(b.bytes) {
				rare = c
			}
		}
		ground, bytes = rare.ground, slices.Clone(x.cells[rare].bytes)
	}
	return ground, append(bytes, scenario.DrawSchedule(x.rand)...)
}

// run runs a schedule, and notes where it came.
func (x *explorer) run(ctx context.Context, grounds []scenario.Scenario, ground int, bytes []byte) error {
	s := grounds[ground]
	s.Seed, s.Schedule = 1, hex.EncodeToString(bytes)
	visited := make(map[uint64]bool)
	first := 0
	o := sim.Options{States: func(state uint64, used int) {
		if visited[state] {
			return
		}
		visited[state] = true
		c := cell{ground, state}
		to := x.cells[c]
		if to == nil {
			to = &way{bytes: bytes[:used]}
			x.cells[c] = to
			x.order = append(x.order, c)
			first++
		}
		if to.visits++; used < len(to.bytes) {
			to.bytes = bytes[:used]
		}
	}}
	text, err := trial(ctx, s, o)
	if err != nil {
		return err
	}
	if x.out.Worlds++; text != "" {
		x.out.Failures = append(x.out.Failures, ExploreFailure{x.out.Worlds, s, text})
	} else if first > 0 {
		x.lead = append(x.lead, leading{ground, bytes, first})
	}
	if x.cfg.Told != nil {
		x.cfg.Told(x.out.Worlds, len(x.cells), len(x.out.Failures))
	}
	return nil
}

// trial runs a scenario, and returns what failed; a panic is a failure.
func trial(ctx context.Context, s scenario.Scenario, o sim.Options) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprintf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	r, err := sim.Run(ctx, s, o)
	if err != nil {
		return "", err
	}
	return r.Failure(), nil
}

// result is what came of all, with those schedules that came first to the most states.
func (x *explorer) result(grounds []scenario.Scenario) *Explored {
	x.out.States = len(x.cells)
	all := x.lead
	slices.SortStableFunc(all, func(a, b leading) int { return b.first - a.first })
	if x.cfg.Most > 0 {
		all = all[:min(len(all), x.cfg.Most)]
	}
	for _, p := range all {
		s := grounds[p.ground]
		s.Seed, s.Schedule = 1, hex.EncodeToString(p.bytes)
		x.out.Corpus = append(x.out.Corpus, s)
	}
	return x.out
}
