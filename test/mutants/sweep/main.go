// Command sweep runs worlds of the simulator until one fails, and prints a line of
// JSON after each. The command mutants builds it with a bug in place: it links much
// less than aweigh sim sweep, which does the same.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"os"

	"github.com/aweigh/aweigh/sim/sweep"
)

func main() {
	var cfg sweep.Config
	flag.Uint64Var(&cfg.From, "from", 1, "the first seed")
	flag.Uint64Var(&cfg.Seeds, "seeds", 100, "how many worlds")
	flag.BoolVar(&cfg.Twice, "twice", false, "run each world twice: both runs must be equal")
	flag.Parse()
	cfg.MaxFailures = 1
	out := json.NewEncoder(os.Stdout)
	cfg.Progress = func(p sweep.Progress) { _ = out.Encode(p) }
	if r, err := sweep.Run(context.Background(), cfg); err != nil || len(r.Failures) > 0 {
		os.Exit(1)
	}
}
