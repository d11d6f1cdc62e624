package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/internal/show"
)

// outputFlag adds the flag for the format of what comes of a command.
func outputFlag(c *cobra.Command) *string {
	output := c.Flags().StringP("output", "o", "table", "table or json")
	choices(c, "output", "table", "json")
	c.PreRunE = func(*cobra.Command, []string) error {
		text := os.Getenv(outputVariable)
		if text == "" || c.Flags().Changed("output") {
			return nil
		}
		f, err := show.ParseFormat(text)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", errUsage, outputVariable, err)
		}
		if !f.OfValues() { // which this command does not have
			*output = string(f)
		}
		return nil
	}
	return output
}

// outputVariable has the format of all commands that are not told one.
const outputVariable = "AWEIGH_OUTPUT"

// choices registers a flag's values for the shell's completion.
func choices(c *cobra.Command, flag string, values ...string) {
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}

// formatOf reads a format; valued says whether the command has values to write
// alone.
func formatOf(text string, valued bool) (show.Format, error) {
	f, err := show.ParseFormat(text)
	switch {
	case valued:
	case err == nil && f.OfValues():
		err = errors.New("this command has no values to show; the output is table or json")
	case err != nil:
		err = fmt.Errorf("the output is table or json, not %q", text)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", errUsage, err)
	}
	return f, nil
}

// hideOutput leaves the flag out of the help of a command whose output has a form of its own.
func hideOutput(c *cobra.Command) {
	if err := c.Flags().MarkHidden("output"); err != nil {
		panic(err)
	}
}

// plain refuses an output format on the command line for commands whose output has a form of its own.
func (s *session) plain(what string) error {
	if !s.chosen {
		return nil
	}
	return fmt.Errorf("%w: %s; leave out --output", errUsage, what)
}
