package edge

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"
	"testing/synctest"

	"github.com/aweigh/aweigh/internal/testheap"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/sim/sweep"
)

var (
	from     = flag.Uint64("from", 1, "the first seed")
	worlds   = flag.Int("worlds", 0, "how many worlds, instead of as many as the size of the tests asks for")
	trace    = flag.Bool("trace", false, "print what the nodes log")
	progress = flag.Bool("progress", false, "print a line of JSON after each world, and end with the first that fails")
)

// TestMain leaves standard output to the progress alone, if that is asked for.
func TestMain(m *testing.M) {
	testheap.Roomy()
	flag.Parse()
	if *progress {
		told, os.Stdout = os.Stdout, os.Stderr
	}
	m.Run()
}

var told io.Writer = io.Discard

// TestWorlds runs worlds, from a seed on.
func TestWorlds(t *testing.T) {
	from, worlds := *from, *worlds
	if worlds == 0 {
		worlds = testshort.Cases(1, 2, 6)
		if testing.Short() {
			from = 2 // it is over soonest
		}
	}
	for i := range worlds {
		if *progress && t.Failed() {
			return
		}
		seed := from + uint64(i)
		line := sweep.Progress{Done: uint64(i + 1), Of: uint64(worlds)}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := slog.New(slog.DiscardHandler)
				if *trace {
					log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
				}
				r := run(seed, log)
				t.Logf("%+v %v", r.Plan, r.Counts)
				for _, f := range r.Failures {
					t.Errorf("%s: %s", f.What, f.Text)
					line.Failure = &sweep.Failure{Seed: seed, Text: f.Text, Breach: &sim.Breach{Invariant: f.What, Text: f.Text}}
				}
				if t.Failed() {
					t.Logf("to repeat it: go test ./test/edge -run TestWorlds -from %d -worlds 1 -count 10", seed)
				}
			})
		})
		_ = json.NewEncoder(told).Encode(line)
	}
}
