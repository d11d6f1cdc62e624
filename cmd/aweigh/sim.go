package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// simHelp is what all simulations have in common.
const simHelp = "What is run is a scenario: a FILE of YAML or JSON, the NAME of one of the library\n" +
	"(aweigh sim scenarios), or a SEED, from which a whole world is drawn. --set changes\n" +
	"one value of it, like --set faults.loss=5% or --set 'cast[0].count=2'; null takes\n" +
	"out what is there."

const simCodes = "Exit codes: 0 all held, or broke as expected; 1 something broke, did not come right, differs,\n" +
	"or missed what the scenario demands (expect, shows), or another error; 2 the command\n" +
	"line or a scenario makes no sense; 130 a signal interrupted it."

func (a *app) sim() *cobra.Command {
	c := &cobra.Command{
		Use: "sim", Short: "Simulate networks under attack", Args: cobra.NoArgs,
		Long: "Runs whole networks of real nodes in virtual time, with anchors that lie, links that\n" +
			"lose, and disks that break, and checks that all promises hold. A run depends on\n" +
			"its scenario and the version of this program alone, so that it can be repeated.\n\n" + simHelp + "\n\n" + simCodes,
		Example: "  aweigh sim run\n  aweigh sim scenarios\n  aweigh sim run everything --seed 7 --nodes 40\n" +
			"  aweigh sim sweep --seeds 500\n  aweigh sim report",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.PersistentFlags().BoolP("quiet", "q", false, "print no progress")
	for _, sub := range []*cobra.Command{
		a.simRun(), a.simScenarios(), a.simShow(), a.simSweep(), a.simExplore(), a.simReplay(), a.simShrink(), a.simDiff(), a.simReport(),
	} {
		do := sub.RunE
		sub.RunE = func(cmd *cobra.Command, args []string) error {
			a.started = true
			limitMemory()
			return do(cmd, args)
		}
		c.AddCommand(sub)
	}
	return c
}

// limitMemory makes garbage collection rare, and more frequent where networks are
// large.
func limitMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(2 << 30)
	}
}

// from1 refuses numbers on the command line that are less than 1, of the flags named.
func from1(f *pflag.FlagSet, names ...string) error {
	for _, name := range names {
		var n uint64
		if _, err := fmt.Sscan(f.Lookup(name).Value.String(), &n); err != nil || n < 1 {
			return fmt.Errorf("%w: --%s is a number from 1 on, not %s", errUsage, name, f.Lookup(name).Value)
		}
	}
	return nil
}
