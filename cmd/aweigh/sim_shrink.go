package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/sim/scenario"
	"github.com/aweigh/aweigh/sim/sweep"
)

func (a *app) simShrink() *cobra.Command {
	c := &cobra.Command{
		Use: "shrink FILE|NAME|SEED", Short: "Make a failing scenario small", Args: cobra.ExactArgs(1),
		Long: "Removes all parts of a failing scenario without which it fails in the same way: liars,\n" +
			"faults, nodes, requests and time; and writes the rest as YAML. A scenario that is\n" +
			"expected to break something is made small as well. A scenario that does not fail makes no\n" +
			"sense here. With --invariant, the rest breaks that invariant, first of all or as\n" +
			"expected; a smaller scenario that breaks another is not taken. Interrupted, it writes\n" +
			"the smallest so far.\n\n" + simHelp + "\n\n" + simCodes,
		Example: "  aweigh sim shrink 17 --out small.yaml\n  aweigh sim run small.yaml\n" +
			"  aweigh sim shrink over-fork --invariant certificates",
		ValidArgsFunction: completeScenario,
	}
	ch := setFlag(c, "one value of the scenario")
	out := c.Flags().String("out", "", "write to this file (default standard output)")
	invariant := c.Flags().String("invariant", "", "the invariant that the smaller scenario must break (default the one that breaks first, or that the scenario expects first)")
	choices(c, "invariant", invariants()...)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := ch.scenario(args[0])
		if err != nil {
			return err
		}
		if *invariant != "" && !slices.Contains(invariants(), *invariant) {
			return fmt.Errorf("%w: --invariant %q is unknown; known are %s", errUsage, *invariant, strings.Join(invariants(), ", "))
		}
		var file *reserved
		if *out != "" {
			if err := apart(args[0], *out); err != nil {
				return err
			}
			if file, err = reserve(*out); err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			defer file.release()
		}
		small, err := a.shrink(cmd, s, args[0], *invariant)
		if err != nil {
			return err
		}
		if cmd.Context().Err() != nil {
			defer fmt.Fprintln(a.err, "aweigh: stopped before the end: it may shrink further")
		}
		again := ch.command("shrink", args[0])
		if *invariant != "" {
			again += " --invariant " + show.Word(*invariant)
		}
		text := annotated(context.WithoutCancel(cmd.Context()), small, again)
		if file != nil {
			return file.write(text)
		}
		_, err = a.out.Write(text)
		return err
	}
	return c
}

// invariants are the names of the invariants.
func invariants() (names []string) {
	for _, i := range scenario.Invariants {
		names = append(names, i.Name)
	}
	return names
}

// shrink makes a failing scenario small, one that breaks an invariant if that is
// named, and prints progress. Interrupted, it returns the smallest so far.
func (a *app) shrink(c *cobra.Command, s scenario.Scenario, name, invariant string) (scenario.Scenario, error) {
	told := a.meter(c)
	if _, err := world(c.Context(), s, sim.Options{Progress: told.run}); errors.Is(err, scenario.ErrInvalid) {
		return s, refused(name, err)
	}
	fails := sweep.Fails
	if invariant != "" {
		s, fails = sweep.FailsBy(invariant, s)
	}
	small, err := sweep.Shrink(c.Context(), s, fails, func(tried int, best scenario.Scenario) {
		told.tell(func() string {
			full := best.WithDefaults()
			return fmt.Sprintf("%d tried: %s, %s, %s, %s, %s are left", tried, show.Count(full.Network.Anchors, "anchor"), show.Count(len(full.Roles), "role"),
				show.Count(len(full.Faults.Timed), "timed fault"), show.Count(full.Load.Writes, "write"), full.Stop)
		})
	})
	told.stay()
	switch {
	case errors.Is(err, sweep.ErrPasses):
		why := "it does not fail"
		if len(s.Expect) > 0 {
			why = "it breaks nothing that it expects"
		}
		if invariant != "" {
			why = "it does not break " + invariant
			if way, fails := sweep.Fails(c.Context(), s); fails && len(s.Expect) == 0 {
				why += " first, but fails by " + way
			}
		}
		return s, fmt.Errorf("%w: there is nothing to shrink in %s: %s", errUsage, name, why)
	case err != nil && !errors.Is(err, context.Canceled):
		return s, err
	}
	return small, nil
}

// annotated is a failing scenario as YAML, after comments that say how it fails
// and where it comes from.
func annotated(ctx context.Context, s scenario.Scenario, command string) []byte {
	r, err := world(ctx, s, sim.Options{})
	why := ""
	switch {
	case err != nil:
		why, _, _ = strings.Cut(err.Error(), "\n")
	case r.Failed():
		why = r.Failure()
	case r.Culprit() != nil:
		why = r.Culprit().String() + ", as expected"
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "# %s\n# Found by: %s\n", strings.ReplaceAll(why, "\n", " "), command)
	text.Write(s.Encode())
	return text.Bytes()
}
