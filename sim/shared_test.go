package sim

import (
	"context"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aweigh/aweigh/internal/testheap"
	"github.com/aweigh/aweigh/sim/scenario"
)

// TestMain lets the heap grow, as the program's own runs may: worlds are small and make much garbage.
func TestMain(m *testing.M) {
	testheap.Roomy()
	os.Exit(m.Run())
}

// runs are the results of scenarios, by their text without goals; started is how many there are, of which
// mostShared at most stay in memory.
var (
	runs    sync.Map
	started atomic.Int64
)

const mostShared = 2000

// shared is Run, but runs a scenario once for all tests: a run is a function of its scenario
// (TestSameScenarioSameTrace).
func shared(ctx context.Context, s scenario.Scenario, _ Options) (*Result, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if started.Load() >= mostShared {
		return withLies(ctx, s)
	}
	s.Seed = max(1, s.Seed) // as Run takes it
	shows := s.Shows
	s.Shows = nil
	once, _ := runs.LoadOrStore(string(s.Encode()), sync.OnceValues(func() (*Result, error) {
		started.Add(1)
		return withLies(context.Background(), s)
	}))
	r, err := once.(func() (*Result, error))()
	if err != nil {
		return nil, err
	}
	mine := *r
	mine.Scenario.Shows = shows
	return &mine, nil
}

// withLies is Run, with marks of lies alone, and of the library's default alone.
func withLies(ctx context.Context, s scenario.Scenario) (*Result, error) {
	var o Options
	if s.Name == "default" {
		o.Marks = 1 << 20
	}
	r, err := Run(ctx, s, o)
	if err == nil {
		r.Marks = slices.Clone(slices.DeleteFunc(r.Marks, func(m Mark) bool { return m.Kind != "lie" }))
	}
	return r, err
}

func mustRun(t *testing.T, s scenario.Scenario) *Result {
	t.Helper()
	r, err := shared(t.Context(), s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
