package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aweigh/aweigh/alias"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/config"
	"github.com/aweigh/aweigh/internal/running"
	"github.com/aweigh/aweigh/internal/show"
)

// session holds the connection and settings of a client command.
type session struct {
	*client.Client
	show.Printer
	told    io.Writer // standard error
	timeout time.Duration
	chosen  bool            // output was given on the command line
	form    string          // of the output, for a command with forms of its own
	bounded bool            // timeout was given on the command line: it is for following a motion, too
	until   context.Context // ends when the command is to end
	network string          // as known on this machine; empty if it is not
	reach   client.Credentials
	opens   bool           // the write that is not decided yet opens a motion
	in      string         // the scope that the command is about, as it was given; empty for the root's
	all     *client.Client // of all scopes, where Client is that of one
}

// ownForms is the annotation of a command whose output has forms of its own: their names, the default first.
const ownForms = "forms"

// asking makes a command that talks to a node. Its settings also come from the
// environment and from client.yaml in the user's configuration directory.
func (a *app) asking(c *cobra.Command, do func(ctx context.Context, s *session, args []string) error) *cobra.Command {
	settings := pflag.NewFlagSet("client", pflag.ContinueOnError)
	reachFlags(settings)
	settings.Duration("timeout", 10*time.Second, "how long to wait for an answer")
	valued := slices.Contains([]string{"put", "get", "do", "del", "watch", "txn"}, c.Name()) && c.Use != motionWatchUse
	outputs, outputHelp := []string{"table", "json"}, "table or json"
	if valued {
		outputs, outputHelp = append(outputs, "value", "raw"), "table, json, or values alone: value, with a line break after each, or raw, as they are"
	}
	if own := strings.Fields(c.Annotations[ownForms]); len(own) > 0 {
		outputs, outputHelp = own, strings.Join(own[:len(own)-1], ", ")+" or "+own[len(own)-1]
	}
	settings.StringP("output", "o", outputs[0], outputHelp)
	c.Flags().AddFlagSet(settings)
	choices(c, "output", outputs...)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := a.session(settings, valued, strings.Fields(cmd.Annotations[ownForms])...)
		if err != nil {
			return err
		}
		defer s.Close()
		s.until = cmd.Context()
		if err := s.oneNetwork(cmd.Context()); err != nil {
			return err
		}
		err = s.unread(cmd.Context(), args, do(cmd.Context(), s, args))
		if u := undecided(cmd, err); u != nil {
			err = errors.Join(err, s.Printer.Undecided(u, s.opens))
		}
		return err
	}
	return c
}

// askingIn is asking for a command that is about one scope.
func (a *app) askingIn(c *cobra.Command, do func(ctx context.Context, s *session, args []string) error) *cobra.Command {
	in := c.Flags().String("scope", "", "the scope that it is about: its prefix, or how its ID begins (default: the root scope)")
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		s.all, s.Client, s.in = s.Client, s.Client.In(*in), *in
		return do(ctx, s, args)
	})
}

// askingOfMotions is askingIn for a command on motions, which are those of all scopes where none is given.
func (a *app) askingOfMotions(c *cobra.Command, do func(ctx context.Context, s *session, args []string) error) *cobra.Command {
	c = a.askingIn(c, do)
	c.Flags().Lookup("scope").Usage = "only motions of this scope: its prefix, or how its ID begins (default: of all scopes\nthat the node holds)"
	return c
}

// session collects the connection and settings of a client command. valued reports
// whether it can show values alone; a general setting to do so has no effect on a
// command that cannot, nor on one whose output has forms of its own.
func (a *app) session(settings *pflag.FlagSet, valued bool, forms ...string) (*session, error) {
	file, err := clientFile()
	if err != nil {
		return nil, err
	}
	k, err := config.Load(settings, file)
	if err != nil {
		return nil, err
	}
	output := k.String("output")
	if show.Format(output).OfValues() && !valued && !settings.Changed("output") {
		output = string(show.Table)
	}
	form := ""
	if len(forms) > 0 {
		if form = output; !settings.Changed("output") {
			form = forms[0]
		}
		if !slices.Contains(forms, form) {
			return nil, fmt.Errorf("%w: the output is %s, not %q", errUsage, settings.Lookup("output").Usage, form)
		}
		output = string(show.Table)
	}
	format, err := formatOf(output, valued)
	if err != nil {
		return nil, ofVariable(settings, "output", err)
	}
	if k.Duration("timeout") <= 0 {
		return nil, fmt.Errorf("%w: timeout is more than 0, not %s", errUsage, k.Duration("timeout"))
	}
	s := &session{
		Printer: show.Printer{Out: a.out, Format: format, Whole: !isTerminal(a.out)}, told: a.err, timeout: k.Duration("timeout"),
		form: form, chosen: settings.Changed("output"), bounded: settings.Changed("timeout"),
	}
	addresses := k.Strings("api")
	if len(addresses) == 0 {
		found, err := running.Find()
		if err != nil {
			return nil, err
		}
		addresses, s.network = found.APIs, found.Network
	}
	if s.reach, err = reachOf(k, addresses); err != nil {
		return nil, err
	}
	for _, secret := range []string{"token-file", "key"} {
		a.warnExposed(k.String(secret))
	}
	if s.Client, err = client.DialAs(s.reach, addresses...); err != nil {
		return nil, ofVariable(settings, "api", err)
	}
	return s, nil
}

// ofVariable names in an error about a setting the variable that it comes from, if it comes from one.
func ofVariable(settings *pflag.FlagSet, name string, err error) error {
	variable := "AWEIGH_" + strings.ToUpper(name)
	if settings.Changed(name) || os.Getenv(variable) == "" {
		return err
	}
	return fmt.Errorf("%w: %s: %w", errUsage, variable, err)
}

// patienceForNetworks bounds the time in which nodes may tell their network.
const patienceForNetworks = time.Second

// oneNetwork makes sure that nodes which a list names are of one network, as far as they answer. Where the network is
// known the addresses are those of nodes that run here.
func (s *session) oneNetwork(ctx context.Context) error {
	addresses := s.Addresses()
	if s.network != "" || len(addresses) < 2 {
		return nil
	}
	networks := s.Networks(ctx, patienceForNetworks)
	first := slices.IndexFunc(networks, func(n []byte) bool { return n != nil })
	for i, n := range networks {
		if n != nil && !bytes.Equal(n, networks[first]) {
			return fmt.Errorf("%w: these are of different networks: %s of %.4x, and %s of %.4x; name nodes of one with --api",
				errUsage, addresses[first], networks[first], addresses[i], n)
		}
	}
	return nil
}

// clientFile is the settings file of client commands, if there is one.
func clientFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", nil
	}
	path := filepath.Join(dir, "aweigh", "client.yaml")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return path, nil
}

// limited is ctx with the time that an answer may take.
func (s *session) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.timeout)
}

// tellAfter is after how long a command that prints nothing meanwhile reports what it waits for.
const tellAfter = 2 * time.Second

// waitsFor reports on standard error what a command waits for, if that takes long, until the caller calls stop.
func (s *session) waitsFor(what string) (stop func() bool) {
	return time.AfterFunc(tellAfter, func() { fmt.Fprintf(s.told, "aweigh: waiting for %s\n", what) }).Stop
}

// following is how long to follow a motion, whose window may be days: until it is
// closed, unless a timeout was given. ctx is limited by that.
func (s *session) following(ctx context.Context) context.Context {
	if s.bounded {
		return ctx
	}
	return s.until
}

// keyOf is the key that an argument names, for an action as in nameOf.
func keyOf(text string, raw bool, action string) ([]byte, error) {
	n, err := newest(text, raw, action)
	return n.Key(), err
}

// newest is a name as of nameOf, without a version.
func newest(text string, raw bool, action string) (alias.Name, error) {
	n, err := nameOf(text, raw, action)
	if err == nil && n.Version() != 0 {
		err = fmt.Errorf("%w: this command takes no version; \"aweigh get\" reads .v%d", errUsage, n.Version())
	}
	return n, err
}

// onceFlags adds what makes a write repeatable.
func onceFlags(c *cobra.Command) func() (*aweighv1.Once, error) {
	nonce := c.Flags().String("nonce", "", "HEX@NANOSECONDS that an undecided write named, to repeat it safely;\nwith anything else changed, -m and --api too, it is another write")
	because := c.Flags().StringP("because", "m", "", "why; kept in the history")
	validFor := c.Flags().Duration("valid-for", 0, "how long it may wait for a quorum, within the policy's limits.valid_for (default 1m)")
	return func() (*aweighv1.Once, error) {
		if !utf8.ValidString(*because) {
			return nil, fmt.Errorf("%w: --because is not UTF-8 text: %q", errUsage, *because)
		}
		once := &aweighv1.Once{Justification: *because}
		if *validFor < 0 {
			return nil, fmt.Errorf("%w: --valid-for is more than 0, not %s", errUsage, *validFor)
		}
		if *validFor > 0 {
			once.ValidUntilNs = time.Now().Add(*validFor).UnixNano()
		}
		if *nonce == "" {
			return once, nil
		}
		repeated, err := parseNonce(*nonce)
		if err != nil {
			return nil, err
		}
		repeated.Justification = *because
		return repeated, nil
	}
}

// patientFlags is onceFlags of writes of keys, which may wait for approval alone.
func patientFlags(c *cobra.Command) func() (*aweighv1.Once, error) {
	once := onceFlags(c)
	pending := c.Flags().Duration("pending", 0, "as --valid-for, for a write that takes approval: how long it may wait for a block to open its\n"+
		"motion, within the policy's limits.pending; it fails if it takes no approval")
	c.MarkFlagsMutuallyExclusive("pending", "valid-for")
	return func() (*aweighv1.Once, error) {
		o, err := once()
		switch {
		case err != nil:
			return nil, err
		case *pending < 0:
			return nil, fmt.Errorf("%w: --pending is more than 0, not %s", errUsage, *pending)
		case *pending == 0:
			return o, nil
		case len(o.Nonce) == 0: // a repeated write has its own end
			o.ValidUntilNs = time.Now().Add(*pending).UnixNano()
		}
		o.Patient = true
		return o, nil
	}
}

// waits states whether a command follows the motion that its write opens.
type waits uint8

const (
	waitsForSecond waits = iota // where a second person decides within minutes
	waitsAlways
	waitsNever
)

// waitFlag adds the wish to wait for approval, should it take one, or not to.
func waitFlag(c *cobra.Command) func() waits {
	wait := c.Flags().Bool("wait", false, "if it opens a motion, follow that until it is closed, or for --timeout if that is given; this is the\n"+
		"default where the policy asks for a second person (step-up), unless --wait=false")
	return func() waits {
		switch {
		case *wait:
			return waitsAlways
		case c.Flags().Changed("wait"):
			return waitsNever
		}
		return waitsForSecond
	}
}
