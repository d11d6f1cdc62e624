package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/sim/sweep"
)

func (a *app) simDiff() *cobra.Command {
	c := &cobra.Command{
		Use: "diff A B", Short: "Show where two traces part", Args: cobra.ExactArgs(2),
		Long: "Compares two traces, line by line, until they part. A and B are files that --trace\n" +
			"wrote, or scenarios (a FILE that ends in .yaml, .yml or .json, a NAME, or a SEED), which\n" +
			"are run. A scenario against itself must be equal.\n\n" + simCodes,
		Example: "  aweigh sim diff before.txt after.txt\n  aweigh sim diff 7 7\n  aweigh sim diff mine.yaml before.txt",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			return completeScenario(cmd, args[min(1, len(args)):], prefix)
		},
	}
	ch := setFlag(c, "one value of the scenarios that are run")
	lines := c.Flags().Int("context", 5, "how many lines to show before, and of each")
	output := outputFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		format, err := formatOf(*output, false)
		if err != nil {
			return err
		}
		if err := from1(c.Flags(), "context"); err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(cmd.Context())
		defer cancel()
		var traces [2]io.ReadCloser
		for i, arg := range args {
			if traces[i], err = openTrace(ctx, arg, ch); err != nil {
				return err
			}
			defer traces[i].Close()
		}
		d, err := sweep.DiffTraces(traces[0], traces[1], *lines)
		switch {
		case cmd.Context().Err() != nil:
			return errors.New("stopped before the end")
		case err != nil:
			return refused(args[0]+" or "+args[1], err)
		}
		if err := (show.Printer{Out: a.out, Format: format}).Diff(d, args[0], args[1]); err != nil {
			return err
		}
		if !d.Equal {
			return fmt.Errorf("the traces part at line %d", d.Line)
		}
		return nil
	}
	return c
}

// openTrace is the readable trace that an argument stands for, of a file or as it
// comes.
func openTrace(ctx context.Context, arg string, ch *changes) (io.ReadCloser, error) {
	isScenario := slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(arg))
	if !isScenario && !isSeed.MatchString(arg) && isFile(arg) {
		f, err := os.Open(arg)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errUsage, err)
		}
		return f, nil
	}
	s, err := ch.scenario(arg)
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	go func() {
		buffered := bufio.NewWriterSize(w, 1<<16)
		_, err := world(ctx, s, sim.Options{Trace: buffered})
		w.CloseWithError(errors.Join(err, buffered.Flush()))
	}()
	return r, nil
}
