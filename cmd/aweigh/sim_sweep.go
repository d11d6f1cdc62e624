package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/sim/scenario"
	"github.com/aweigh/aweigh/sim/sweep"
)

func (a *app) simSweep() *cobra.Command {
	c := &cobra.Command{
		Use: "sweep", Short: "Run many worlds, each drawn from a seed", Args: cobra.NoArgs,
		Long: "Draws a whole world from each seed, with its liars, faults, links and load, and runs\n" +
			"them. Failures are printed as they come, with the command that repeats each. Large sweeps\n" +
			"also fail if they never reached one of the goals that worlds are drawn for. Interrupted, it\n" +
			"shows the results so far.\n\n" + simCodes,
		Example: "  aweigh sim sweep\n  aweigh sim sweep --seeds 100000 --from 2001 --max-failures 0\n" +
			"  aweigh sim sweep --seeds 50 --twice -j 1 -o json\n  aweigh sim sweep --set faults.loss=20%",
	}
	ch := setFlag(c, "one value of each drawn world")
	var cfg sweep.Config
	f := c.Flags()
	f.Uint64Var(&cfg.Seeds, "seeds", 2000, "how many worlds")
	f.Uint64Var(&cfg.From, "from", 1, "the first seed")
	f.IntVarP(&cfg.Workers, "jobs", "j", runtime.NumCPU(), "how many at the same time")
	f.BoolVar(&cfg.Twice, "twice", false, "run each world twice: both runs must be equal")
	f.IntVar(&cfg.MaxFailures, "max-failures", 10, "end after so many; 0: never")
	output := outputFlag(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		format, err := formatOf(*output, false)
		if err != nil {
			return err
		}
		if err := from1(f, "seeds", "from", "jobs"); err != nil {
			return err
		}
		if cfg.MaxFailures < 0 {
			return fmt.Errorf("%w: --max-failures is a number from 0 on, not %d", errUsage, cfg.MaxFailures)
		}
		return a.sweep(cmd, cfg, ch, format)
	}
	return c
}

// sweep runs worlds, prints progress, and shows the result.
func (a *app) sweep(c *cobra.Command, cfg sweep.Config, ch *changes, format show.Format) error {
	ctx, stop := context.WithCancelCause(c.Context())
	defer stop(nil)
	cfg.Run = func(ctx context.Context, s scenario.Scenario, o sim.Options) (*sim.Result, error) {
		name := fmt.Sprintf("seed %d", s.Seed)
		s, err := ch.apply(s, name)
		if err != nil && len(ch.sets) > 0 {
			stop(fmt.Errorf("with --set: %w", err)) // no failure of the world: nothing else would come of the others
			return nil, err
		}
		return sim.Run(ctx, s, o)
	}
	replay := func(seed uint64) string { return ch.command("replay", strconv.FormatUint(seed, 10)) }
	told, began := a.meter(c), time.Now()
	cfg.Progress = func(p sweep.Progress) {
		if p.Failure != nil {
			_ = show.Printer{Out: told.stay()}.Failure(*p.Failure, replay(p.Failure.Seed))
		}
		told.tell(func() string {
			return fmt.Sprintf("%s of %s worlds  %.1f per second  %s",
				show.Grouped(p.Done), show.Grouped(p.Of), float64(p.Done)/time.Since(began).Seconds(), show.Count(p.Failures, "failure"))
		})
	}
	if os.Getenv("GOGC") == "" { // worlds are small and short-lived: a seventh of the time goes to their garbage
		debug.SetGCPercent(400)
	}
	r, err := sweep.Run(ctx, cfg)
	told.stay()
	if cause := context.Cause(ctx); cause != nil && c.Context().Err() == nil {
		return cause
	}
	done := show.Sweep{Result: r, Wall: time.Since(began), Replay: replay}
	if err := (show.Printer{Out: a.out, Format: format}).Sweep(done); err != nil {
		return err
	}
	switch missing := r.Missing(); {
	case len(r.Failures) > 0:
		return fmt.Errorf("%d of %s failed", len(r.Failures), show.Count(r.Worlds, "world"))
	case err != nil:
		err := fmt.Errorf("stopped after %d of %d worlds; to go on, add --from %d --seeds %d", r.Worlds, r.Seeds, r.Next, r.From+r.Seeds-r.Next)
		if c.Context().Err() != nil {
			err = fmt.Errorf("%w: %w", errSignal, err)
		}
		return err
	case len(missing) > 0:
		return fmt.Errorf("nothing broke, but these goals were never reached: %s; sweep more seeds", strings.Join(missing, ", "))
	}
	return nil
}
