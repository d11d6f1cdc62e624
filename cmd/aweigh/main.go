// Command aweigh is all of Aweigh in one program: it runs nodes and test
// networks, and sends requests to them. "aweigh help" lists the commands.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run()) }

// run runs the program as the shell called it.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return (&app{in: os.Stdin, out: os.Stdout, err: os.Stderr}).run(ctx, os.Args[1:])
}

// app is the program with the outside world that it talks to.
type app struct {
	in       io.Reader
	out, err io.Writer
	started  bool // the command line was understood
	trusts   trusting
	exposed  []string // files of secrets of which a warning was printed
}

func (a *app) run(ctx context.Context, args []string) int {
	a.in = &input{ctx: ctx, from: a.in, err: a.err}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	command, err := root.ExecuteContextC(ctx)
	code := exitCode(err, a.started)
	if code == exitBusy && undecided(command, err) != nil {
		code = exitUndecided
	}
	if ctx.Err() != nil && err != nil && errors.Is(err, context.Canceled) {
		switch {
		case endless[command.CommandPath()]:
			return exitOK // a signal is how it ends
		case code == exitError || code == exitUsage:
			fmt.Fprintln(a.err, "aweigh: interrupted before it was done")
			return exitInterrupted
		}
	}
	if err != nil {
		if !errors.As(err, new(errQuiet)) {
			fmt.Fprintf(a.err, "aweigh: %s\n", about(command, message(err), err))
		}
	}
	switch {
	case code != exitUsage || a.started && !usageHelps(err):
	case a.started || !command.HasParent():
		fmt.Fprintln(a.err, `Run "aweigh help" or add --help to a command for how to use it.`)
	default: // words or flags that it does not take
		fmt.Fprintf(a.err, "Usage: %s; with --help it prints more.\n", command.UseLine())
	}
	return code
}

// endless are the commands that run until a signal ends them.
var endless = map[string]bool{
	"aweigh node": true, "aweigh devnet": true, "aweigh watch": true, "aweigh audit tail": true, "aweigh light": true, "aweigh tiles": true,
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "aweigh",
		Short: "A registry that anchors govern by weighed votes",
		Long: "Aweigh is a peer-to-peer registry. A change is committed when anchors of enough\n" +
			"weight have signed for it, and everything can be proven afterwards.\n\n" +
			"Start with:  aweigh devnet\n\n" +
			"After -- nothing is a flag, so that a value may start with a dash:  aweigh put -- /key -1\n\n" + exitHelp,
		Version:       version(),
		SilenceErrors: true, SilenceUsage: true,
	}
	root.SetVersionTemplate(versionLine())
	root.SetFlagErrorFunc(flagMeant)
	root.AddGroup(
		&cobra.Group{ID: "run", Title: "Run:"},
		&cobra.Group{ID: "keys", Title: "Read and write:"},
		&cobra.Group{ID: "know", Title: "Know and verify:"},
		&cobra.Group{ID: "govern", Title: "Govern:"},
		&cobra.Group{ID: "sim", Title: "Simulate:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			do := c.RunE
			c.RunE = func(cmd *cobra.Command, args []string) error {
				a.started = true
				if err := checkFlags(cmd); err != nil {
					return err
				}
				return do(cmd, args)
			}
			root.AddCommand(c)
		}
	}
	add("run", a.devnet(), a.node(), a.light(), a.init(), a.invite(), a.join(), a.backup(), a.restore())
	add("keys", a.put(), a.get(), a.do(), a.del(), a.ls(), a.watch(), a.txn(), a.compact(), a.alias(), a.fork(), a.merge(), a.rollback())
	add("know", a.status(), a.whoami(), a.login(), a.logout(), a.resolveCommand(), a.doctor(), a.history(), a.uid(), a.why(),
		a.verify(), a.checkpoint(), a.tiles(), a.auditCommand(), a.bench(), a.version())
	add("govern", a.motion(), a.island(), a.ballotCommand(), a.voter(), a.anchor(), a.trust(), a.policy(), a.auth(), a.tokenCommand(),
		a.scopeCommand(), a.usersCommand())
	add("sim", a.sim())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			help := c.Run
			c.Args, c.Run, c.RunE = nil, nil, func(cmd *cobra.Command, args []string) error {
				if found, rest, err := root.Find(args); err != nil || found == nil || len(rest) > 0 && found.HasSubCommands() {
					return fmt.Errorf("%w: help knows no command %q", errUsage, strings.Join(args, " "))
				}
				help(cmd, args)
				return nil
			}
		case "completion":
			a.under(c)
		}
	}
	root.SuggestionsMinimumDistance = 2
	return root
}
