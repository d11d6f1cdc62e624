package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/sim/report"
	"github.com/aweigh/aweigh/sim/scenario"
)

func (a *app) simReport() *cobra.Command {
	c := &cobra.Command{
		Use: "report", Short: "Run many scenarios, and write a report on all", Args: cobra.NoArgs,
		Long: "Measures how long finality takes and what it costs by the size of the network and its\n" +
			"links, the remaining pace as more anchors lie and more frames are lost, and looks closely at\n" +
			"one failure, made small. Writes one file to open in a browser, after a minute or two.\n\n" + simCodes,
		Example: "  aweigh sim report\n  aweigh sim report --quick --out quick.html\n  aweigh sim report --seeds 20 --failure mine.yaml",
	}
	f := c.Flags()
	out := f.String("out", "aweigh-sim-report.html", "where to write it")
	seeds := f.Int("seeds", 4, "how many worlds for each point")
	jobs := f.IntP("jobs", "j", runtime.NumCPU(), "how many worlds at the same time")
	quick := f.Bool("quick", false, "small networks, and few points")
	failure := f.String("failure", "over-fork", "FILE, NAME or SEED of a scenario that breaks something, to look at closely")
	if err := c.RegisterFlagCompletionFunc("failure", completeScenario); err != nil {
		panic(err)
	}
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := from1(f, "seeds", "jobs"); err != nil {
			return err
		}
		s, err := readScenario(*failure)
		if err != nil {
			return err
		}
		plan := report.Plan{Seeds: *seeds, Workers: *jobs, Failure: &s}
		words := []string{"report"}
		if *quick {
			words = append(words, "--quick")
			plan.Sizes, plan.Loss = []int{4, 7, 13}, []scenario.Share{0, scenario.Whole / 5, scenario.Whole * 2 / 5}
			plan.Models, plan.Attacks = []string{"uniform", "regions"}, []string{"mute", "equivocate"}
			if !f.Changed("seeds") {
				plan.Seeds = 1
			}
		}
		if f.Changed("seeds") {
			words = append(words, "--seeds", strconv.Itoa(*seeds))
		}
		if f.Changed("failure") {
			words = append(words, "--failure", *failure)
		}
		plan.Info = report.Info{Command: shell(words...), Version: version(), Date: today()}
		return a.study(cmd, plan, *failure, *out)
	}
	return c
}

// study makes the failure of a plan small, runs the plan, and writes the report.
func (a *app) study(c *cobra.Command, plan report.Plan, failure, out string) error {
	file, err := reserve(out)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	defer file.release()
	began := time.Now()
	small, err := a.shrink(c, *plan.Failure, failure, "")
	if err != nil {
		return err
	}
	plan.Failure = &small
	told := a.meter(c)
	data, err := report.Collect(c.Context(), plan, sim.Run, func(done, of int) {
		told.tell(func() string {
			return fmt.Sprintf("%s of %s worlds", show.Grouped(uint64(done)), show.Grouped(uint64(of)))
		})
	})
	told.stay()
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("stopped before the end: %w", errSignal)
	case err != nil:
		return err
	}
	data.Wall = time.Since(began)
	var html bytes.Buffer
	if err := errors.Join(report.Study(&html, data), file.write(html.Bytes())); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(a.out, "%s worlds in %s: %s\n", show.Grouped(uint64(data.Worlds)), data.Wall.Round(time.Second/10), out); err != nil {
		return err
	}
	for _, v := range data.Tally.Within {
		if v.Broken > 0 {
			return fmt.Errorf("%s broke although no more than the budget was at fault; the report says where", v.Invariant)
		}
	}
	return nil
}

// today is the time for a report.
func today() string { return time.Now().UTC().Format("2 January 2006, 15:04 UTC") }
