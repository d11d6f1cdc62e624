package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/sim/scenario"
	"github.com/aweigh/aweigh/sim/sweep"
)

func (a *app) simExplore() *cobra.Command {
	c := &cobra.Command{
		Use: "explore", Short: "Search the schedules of small worlds", Args: cobra.NoArgs,
		Long: "Plays schedules of a few small worlds: bytes that decide which ballots, proposals and\n" +
			"offers are late, lost or sent twice, and which nodes restart. Two schedules of three go on\n" +
			"from where few have been. A schedule that breaks something is written as a scenario,\n" +
			"to be run with aweigh sim run.\n\n" + simCodes,
		Example: "  aweigh sim explore\n  aweigh sim explore --corpus sim/sweep/testdata/schedules --worlds 5000\n" +
			"  aweigh sim explore --worlds 2000 --save mine",
	}
	var cfg sweep.ExploreConfig
	f := c.Flags()
	f.IntVar(&cfg.Worlds, "worlds", 1000, "how many schedules to play")
	f.Uint64Var(&cfg.Seed, "seed", 1, "of chance")
	f.BoolVar(&cfg.Blind, "blind", false, "draw each schedule anew, to compare")
	f.IntVar(&cfg.Most, "most", 40, "how many schedules to save at most")
	corpus := f.String("corpus", "", "directory of schedules to play first")
	save := f.String("save", "", "directory to which to write the schedules that came to new states")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := from1(f, "worlds", "seed", "most"); err != nil {
			return err
		}
		var err error
		if cfg.Corpus, err = readSchedules(*corpus); err != nil {
			return err
		}
		if *save != "" { // before the work
			if err := os.MkdirAll(*save, 0o755); err != nil {
				return fmt.Errorf("%w: --save: %w", errUsage, err)
			}
		}
		return a.explore(cmd, cfg, *save)
	}
	return c
}

// explore plays schedules, prints progress, and shows the result.
func (a *app) explore(c *cobra.Command, cfg sweep.ExploreConfig, save string) error {
	told, began := a.meter(c), time.Now()
	cfg.Told = func(worlds, states, failures int) {
		told.tell(func() string {
			return fmt.Sprintf("%s worlds  %.1f per second  %s states  %s",
				show.Grouped(uint64(worlds)), float64(worlds)/time.Since(began).Seconds(), show.Grouped(uint64(states)), show.Count(failures, "failure"))
		})
	}
	r, err := sweep.Explore(c.Context(), cfg)
	told.stay()
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	for _, f := range r.Failures {
		fmt.Fprintf(a.out, "# world %d: %s\n%s\n", f.World, f.Text, f.Scenario.Encode())
	}
	fmt.Fprintf(a.out, "%s worlds came to %s states of consensus; %s\n",
		show.Grouped(uint64(r.Worlds)), show.Grouped(uint64(r.States)), show.Count(len(r.Failures), "failure"))
	if save != "" && len(r.Failures) == 0 {
		if err := writeSchedules(save, r.Corpus); err != nil {
			return err
		}
	}
	if len(r.Failures) > 0 {
		return fmt.Errorf("%d of %s failed", len(r.Failures), show.Count(r.Worlds, "world"))
	}
	return err
}

// readSchedules reads the scenarios of a directory, in the order of their names; none if there is no directory.
func readSchedules(dir string) (all []scenario.Scenario, err error) {
	if dir == "" {
		return nil, nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%w: %s holds no schedules (*.yaml)", errUsage, dir)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		s, err := scenario.Decode(raw)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", errUsage, file, err)
		}
		all = append(all, s)
	}
	return all, err
}

func writeSchedules(dir string, all []scenario.Scenario) error {
	for i, s := range all {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.yaml", i+1)), s.Encode(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
