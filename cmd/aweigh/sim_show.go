package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/sim/scenario"
)

func (a *app) simScenarios() *cobra.Command {
	c := &cobra.Command{
		Use: "scenarios", Short: "List the scenarios that come with this program", Args: cobra.NoArgs,
		Long:    "Lists the library: scenarios with a name, to run, to read, and to start from.",
		Example: "  aweigh sim scenarios\n  aweigh sim show default >mine.yaml",
	}
	output := outputFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		format, err := formatOf(*output, false)
		if err != nil {
			return err
		}
		return show.Printer{Out: a.out, Format: format}.Scenarios(scenario.Library())
	}
	return c
}

func (a *app) simShow() *cobra.Command {
	c := &cobra.Command{
		Use: "show [NAME|SEED]", Short: "Write a scenario as YAML", Args: cobra.MaximumNArgs(1),
		Long: "Writes a scenario of the library with its comments, to be changed and run; or the world\n" +
			"that is drawn from a SEED.",
		Example:           "  aweigh sim show default >mine.yaml\n  aweigh sim run mine.yaml\n  aweigh sim show 17",
		ValidArgsFunction: completeScenario,
	}
	seed := c.Flags().Uint64("seed", 0, "of the drawn world to write")
	c.RunE = func(_ *cobra.Command, args []string) (err error) {
		var source []byte
		switch named := c.Flags().Changed("seed"); {
		case named == (len(args) == 1):
			return fmt.Errorf("%w: give the scenario by one of NAME, SEED and --seed", errUsage)
		case named:
			if err := from1(c.Flags(), "seed"); err != nil {
				return err
			}
			source = scenario.Draw(*seed).Encode()
		case isSeed.MatchString(args[0]):
			s, err := drawn(args[0])
			if err != nil {
				return err
			}
			source = s.Encode()
		default:
			if source, err = scenario.LibrarySource(args[0]); err != nil {
				return fmt.Errorf("%w: %s", errUsage, reason(err))
			}
		}
		_, err = a.out.Write(source)
		return err
	}
	return c
}
