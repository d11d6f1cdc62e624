package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/sim"
)

func (a *app) simShrink() *cobra.Command {
	c := &cobra.Command{
		Use: "shrink FILE|NAME|SEED", Short: "Make a failing scenario small", Args: cobra.ExactArgs(1),
		Long: "Takes out of a scenario that fails whatever it fails without, in the same way: liars,\n" +
			"faults, nodes, requests and time; and writes what is left as YAML. A scenario that is\n" +
			"expected to break something is made small as well. One that does not fail makes no\n" +
			"sense here. Interrupted, it writes the smallest so far.\n\n" + simHelp + "\n\n" + simCodes,
		Example:           "  aweigh sim shrink 17 --out small.yaml\n  aweigh sim run small.yaml",
		ValidArgsFunction: completeScenario,
	}
	ch := setFlag(c, "one value of the scenario")
	out := c.Flags().String("out", "", "write to this file (default standard output)")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := ch.scenario(args[0])
		if err != nil {
			return err
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
		small, err := a.shrink(cmd, s, args[0])
		if err != nil {
			return err
		}
		if cmd.Context().Err() != nil {
			defer fmt.Fprintln(a.err, "aweigh: stopped before the end: it may shrink further")
		}
		text := annotated(context.WithoutCancel(cmd.Context()), small, ch.command("shrink", args[0]))
		if file != nil {
			return file.write(text)
		}
		_, err = a.out.Write(text)
		return err
	}
	return c
}

// shrink makes a scenario small, and tells how far it is. Interrupted, it is
// content with the smallest so far.
func (a *app) shrink(c *cobra.Command, s sim.Scenario, name string) (sim.Scenario, error) {
	told := a.meter(c)
	if _, err := world(c.Context(), s, sim.Options{Progress: told.run}); errors.Is(err, sim.ErrScenario) {
		return s, refused(name, err)
	}
	small, err := sim.Shrink(c.Context(), s, sim.Fails, func(tried int, best sim.Scenario) {
		told.tell(func() string {
			full := best.WithDefaults()
			return fmt.Sprintf("%d tried: %d anchors, %d roles, %d timed faults, %d writes, %s are left", tried,
				full.Network.Anchors, len(full.Cast), len(full.Faults.Timed), full.Load.Writes, full.Stop)
		})
	})
	told.stay()
	switch {
	case errors.Is(err, sim.ErrPasses):
		why := "it does not fail"
		if len(s.Expect) > 0 {
			why = "it breaks nothing that it expects"
		}
		return s, fmt.Errorf("%w: there is nothing to shrink in %s: %s", errUsage, name, why)
	case err != nil && !errors.Is(err, context.Canceled):
		return s, err
	}
	return small, nil
}

// annotated is a failing scenario as YAML, after comments that say how it fails
// and where it comes from.
func annotated(ctx context.Context, s sim.Scenario, command string) []byte {
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
