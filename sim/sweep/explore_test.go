package sweep

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/sim/scenario"
)

// TestSchedulesHold runs the schedules on record (with -short, some), which came to states of consensus that are rare,
// and a few that go on from there.
func TestSchedulesHold(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "schedules", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no schedules: %v", err)
	}
	more := testshort.Cases(4, 10, 20)
	if testing.Short() {
		files = files[:len(files)/4]
	}
	cfg := ExploreConfig{Worlds: more}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := scenario.Decode(raw)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		cfg.Corpus = append(cfg.Corpus, s)
	}
	r, err := Explore(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d worlds, %d states", r.Worlds, r.States)
	for _, f := range r.Failures {
		t.Errorf("world %d: %s\n%s", f.World, f.Text, f.Scenario.Encode())
	}
	if r.Worlds != len(files)+more || r.States < 10*len(files) {
		t.Errorf("%d worlds came to %d states alone", r.Worlds, r.States)
	}
}

func TestExplorationIsAFunctionOfItsSeed(t *testing.T) {
	var runs []*Explored
	for range 2 {
		r, err := Explore(t.Context(), ExploreConfig{Worlds: testshort.Cases(5, 12, 12), Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, r)
	}
	if !reflect.DeepEqual(runs[0], runs[1]) {
		t.Errorf("%d and %d states, %d and %d schedules", runs[0].States, runs[1].States, len(runs[0].Corpus), len(runs[1].Corpus))
	}
}
