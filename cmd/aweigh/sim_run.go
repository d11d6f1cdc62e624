package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/sim/report"
	"github.com/aweigh/aweigh/sim/scenario"
)

func (a *app) simRun() *cobra.Command {
	c := &cobra.Command{
		Use: "run [FILE|NAME|SEED]", Short: "Run a scenario, and write a report", Args: cobra.MaximumNArgs(1),
		Long: "Runs a scenario, by default the one named \"default\", shows a verdict for every\n" +
			"invariant, and writes a report to open in a browser.\n\n" + simHelp + "\n\n" + simCodes,
		Example: "  aweigh sim run\n  aweigh sim run everything --seed 42 --nodes 40\n" +
			"  aweigh sim run mine.yaml --set faults.loss=20% --set stop=30s --report mine.html\n  aweigh sim run flood --no-report -o json",
		ValidArgsFunction: completeScenario,
	}
	ch := setFlag(c, "one value of the scenario")
	f := c.Flags()
	f.Uint64("seed", 0, "of all that is drawn (default that of the scenario)")
	f.Int("nodes", 0, "how many anchors (default those of the scenario)")
	reportFile := f.String("report", "", "where to write the report (default aweigh-sim-NAME-SEED.html)")
	noReport := f.Bool("no-report", false, "write no report")
	trace := f.String("trace", "", "also write all that happens to this file, one line per event; - for standard output")
	output := outputFlag(c)
	c.MarkFlagsMutuallyExclusive("report", "no-report")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		format, err := simFormat(*output)
		if err != nil {
			return err
		}
		arg := "default"
		if len(args) == 1 {
			arg = args[0]
		}
		p := playing{format: format, trace: *trace, again: ch.command("run", arg), name: arg}
		if p.scenario, err = ch.scenario(arg); err != nil {
			return err
		}
		if !*noReport {
			if p.report = *reportFile; p.report == "" {
				p.report = reportName(p.scenario)
			}
		}
		return a.play(cmd, p)
	}
	return c
}

// simFormat reads the format of a run's verdicts.
func simFormat(text string) (show.Format, error) {
	f, err := formatOf(text, false)
	if err != nil && text == "yaml" {
		err = fmt.Errorf("%w; \"aweigh sim show NAME\" writes a scenario as YAML", err)
	}
	return f, err
}

// unfit matches characters that are left out of the name of a file.
var unfit = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// reportName is the default name of a report.
func reportName(s scenario.Scenario) string {
	return fmt.Sprintf("aweigh-sim-%s-%d.html", unfit.ReplaceAllString(s.Name, "-"), max(1, s.Seed))
}

func (a *app) simReplay() *cobra.Command {
	c := &cobra.Command{
		Use: "replay FILE|NAME|SEED", Short: "Run a scenario again, and trace it", Args: cobra.RangeArgs(1, 2),
		Long: "Runs a scenario, or the world drawn from a seed, as \"aweigh sim sweep\" did. With --trace\n" +
			"it writes all that happens, one line per event: to standard output, and the verdicts to\n" +
			"standard error, or to a file that is named after --trace.\n\n" + simHelp + "\n\n" + simCodes,
		Example: "  aweigh sim replay 17\n  aweigh sim replay 17 --trace | less\n  aweigh sim replay mine.yaml --trace mine.txt\n" +
			"  aweigh sim replay 17 --set faults.loss=0.1",
		ValidArgsFunction: completeScenario,
	}
	ch := setFlag(c, "one value of the scenario")
	trace := c.Flags().String("trace", "", "trace to a FILE, or to standard output if none is named")
	c.Flags().Lookup("trace").NoOptDefVal = "-"
	output := outputFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		format, err := simFormat(*output)
		if err != nil {
			return err
		}
		if len(args) == 2 {
			if *trace != "-" {
				return fmt.Errorf("%w: one scenario is replayed, not %q too", errUsage, args[1])
			}
			*trace = args[1]
		}
		p := playing{format: format, trace: *trace, again: ch.command("replay", args[0]), name: args[0]}
		if p.scenario, err = ch.scenario(args[0]); err != nil {
			return err
		}
		return a.play(cmd, p)
	}
	return c
}

// playing is a run with all that it leaves.
type playing struct {
	scenario scenario.Scenario
	name     string // as given
	again    string // the command that repeats it
	format   show.Format
	report   string // a file; empty: none
	trace    string // a file, or - for standard output; empty: none
}

// play runs a scenario. It fails if the run did.
func (a *app) play(c *cobra.Command, p playing) error {
	if err := apart(p.name, p.trace, p.report); err != nil {
		return err
	}
	var o sim.Options
	var file *reserved
	if p.report != "" {
		var err error
		if file, err = reserve(p.report); err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
		defer file.release()
		o.Marks = marks
	}
	t, err := a.tracer(p.trace)
	if err != nil {
		return err
	}
	if t != nil {
		o.Trace = t
	}
	told, began := a.meter(c), time.Now()
	o.Progress = told.run
	r, err := world(c.Context(), p.scenario, o)
	told.stay()
	if traced := t.close(); traced != nil && err == nil {
		err = fmt.Errorf("the trace: %w", traced)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("stopped before the end: %w", errSignal)
	case err != nil:
		return refused(p.name, err)
	}
	done := show.Simulation{Result: r, Wall: time.Since(began), Report: p.report, Again: p.again}
	if file != nil {
		var html bytes.Buffer
		info := report.Info{Command: p.again, Version: version(), Wall: done.Wall, Date: today()}
		if err := errors.Join(report.Run(&html, r, info), file.write(html.Bytes())); err != nil {
			return err
		}
	}
	printer := show.Printer{Out: a.out, Format: p.format}
	if p.trace == "-" {
		printer.Out = a.err
	}
	if err := printer.Simulation(done); err != nil {
		return err
	}
	if r.Failed() {
		return errors.New(r.Failure())
	}
	return nil
}

// marks bounds the moments kept for the picture of a run.
const marks = 20_000

// world runs a scenario. A panic is an error with its stack.
func world(ctx context.Context, s scenario.Scenario, o sim.Options) (r *sim.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return sim.Run(ctx, s, o)
}

// tracer takes a readable trace.
type tracer struct {
	*bufio.Writer
	file io.Closer // nil for standard output
}

// tracer opens a file, or standard output if it is -; nil if no trace is wanted.
func (a *app) tracer(path string) (*tracer, error) {
	switch path {
	case "":
		return nil, nil
	case "-":
		return &tracer{Writer: bufio.NewWriterSize(a.out, 1<<16)}, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	return &tracer{bufio.NewWriterSize(f, 1<<16), f}, nil
}

func (t *tracer) close() error {
	if t == nil {
		return nil
	}
	err := t.Flush()
	if t.file != nil {
		err = errors.Join(err, t.file.Close())
	}
	return err
}
