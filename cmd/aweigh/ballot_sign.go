package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/internal/signer"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// signing is what "ballot sign" was asked.
type signing struct {
	*app
	network, choice, comment, key, program, out string
	passphraseFile                              string
}

func (a *app) ballotSign() *cobra.Command {
	c := &cobra.Command{
		Use: "sign FILE", Short: "Sign a ballot on a motion, without a network", Args: cobra.ExactArgs(1),
		Long: "Verifies the file of a motion, shows on standard error what it would change, and signs a\n" +
			"ballot with the key of a file or by a program. The ballot goes to standard output, or to\n" +
			"a file with --write. The signature covers the comment's hash; the comment travels along\n" +
			"and is kept in the history.\n\n" + motionFileHelp + "\n" +
			"This command keeps no record of earlier signatures. To approve and to reject one motion with\n" +
			"one key proves a lie as soon as both ballots meet: neither counts, and an anchor loses\n" +
			"all trust. The same ballot again is harmless.\n\n" +
			"--signer names a program of your own. It is called with the word \"public\" to write the\n" +
			"public key as scheme:base64url, and with \"sign\" to read the message on its standard\n" +
			"input and write the bare signature. No shell reads the command line. The result is\n" +
			"verified.",
		Example: "  aweigh ballot sign m.motion --network 3f1a… --choice approve --key alice.key >m.ballot\n" +
			"  aweigh ballot sign m.motion --choice reject --comment \"not on a Friday\" --signer \"./card --slot 2\" --write m.ballot",
	}
	s := &signing{app: a}
	network := a.networkFlag(c)
	f := c.Flags()
	f.StringVar(&s.choice, "choice", "", "approve or reject")
	f.StringVarP(&s.comment, "comment", "m", "", "why, in at most 1024 bytes")
	f.StringVar(&s.key, "key", "", keyNames+",\nor a node's anchor.key")
	f.StringVar(&s.program, "signer", "", "program that signs, with its arguments")
	f.StringVar(&s.out, "write", "-", "write the ballot to this file, which must not be there")
	from := passphraseFlag(c)
	output := f.StringP("output", "o", "table", "table or json: with --write, the format in which to print what was signed")
	choices(c, "choice", votes.Approve.String(), votes.Reject.String())
	choices(c, "output", "table", "json")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		format, err := formatOf(*output, false)
		if err != nil {
			return err
		}
		s.network, s.passphraseFile = *network, *from
		return s.run(cmd.Context(), args[0], format)
	}
	return c
}

func (s *signing) run(ctx context.Context, file string, format show.Format) error {
	choice, err := s.check(file, format)
	if err != nil {
		return err
	}
	r, pinned, err := s.motionFile(file, s.network)
	if err != nil {
		return err
	}
	now := aweigh.InstantOf(time.Now())
	told := show.Printer{Out: s.err, Format: show.Table}
	if err := told.Inspection(r, pinned, now); err != nil {
		return err
	}
	fmt.Fprintf(s.err, "\n%s\n\n", compared(r, pinned))
	s.warn(r, now)
	with, err := s.signer(ctx)
	if err != nil {
		return err
	}
	voter := with.Public().ID()
	e, err := r.Motion.Electorate()
	if err != nil {
		return err
	}
	weight, may := e.Of(voter)
	if !may {
		return fmt.Errorf("%w: key %s may not vote on this motion. These may: %s", errUsage, voter.Short(), mayVote(&r.Motion))
	}
	vote := votes.MotionVote{Network: r.Network, Scope: r.Mutation.Scope, Motion: r.Motion.ID(), Choice: choice}
	b, err := votes.SignMotionBallotOffline(with, vote, s.comment)
	if err != nil {
		return err
	}
	name := r.Motion.NameOf(voter)
	if s.out == "-" {
		if _, err := s.app.out.Write(b.Encode()); err != nil {
			return err
		}
		return told.Signed(&b, name, weight, "FILE")
	}
	if err := writeNew(s.out, b.Encode(), 0o644); err != nil {
		return err
	}
	return show.Printer{Out: s.app.out, Format: format}.Signed(&b, name, weight, s.out)
}

// check refuses what makes no sense before anything is read or asked.
func (s *signing) check(file string, format show.Format) (votes.Choice, error) {
	if s.choice == "" {
		return 0, fmt.Errorf("%w: give your vote, with --choice approve or --choice reject", errUsage)
	}
	choice, err := votes.ParseChoice(s.choice)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w: --choice: %w", errUsage, err)
	case (s.key == "") == (s.program == ""):
		return 0, fmt.Errorf("%w: name what signs: either --key FILE or --signer PROGRAM", errUsage)
	case s.program != "" && s.passphraseFile != "":
		return 0, fmt.Errorf("%w: --passphrase-file is for --key; a program asks by itself", errUsage)
	case file == "-" && s.passphraseFile == "-":
		return 0, fmt.Errorf("%w: the motion and the passphrase cannot both come from standard input", errUsage)
	case len(s.comment) > votes.MaxComment || !utf8.ValidString(s.comment):
		return 0, fmt.Errorf("%w: --comment is UTF-8 text of at most %d bytes", errUsage, votes.MaxComment)
	case s.out == "-" && format == show.JSON:
		return 0, fmt.Errorf("%w: the ballot goes to standard output, so there is no room for JSON; give --write FILE", errUsage)
	case s.out == "-" && isTerminal(s.app.out):
		return 0, fmt.Errorf("%w: a ballot is not text for a terminal; add >FILE, or --write FILE", errUsage)
	}
	return choice, nil
}

// isTerminal reports whether output goes to a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&fs.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// warn prints doubts about the time, and facts that are not proven.
func (s *signing) warn(r *scope.MotionReport, now aweigh.Instant) {
	if r.Bare {
		fmt.Fprintln(s.err, "aweigh: no block after the one that ordered the motion was final when this file was written: the ballot\nis on the mutation above, which is proven; the state when the motion opened, and the approvals that it needs, are\nnot.")
	}
	if r.Draft {
		s.warnDraft(r, now)
		return
	}
	switch mo := &r.Motion; {
	case mo.Deadline <= now:
		fmt.Fprintln(s.err, "aweigh: by the clock of this machine the motion's deadline has passed. If that is so, this\nballot will be recorded as late and change nothing; it is signed all the same.")
	case now < mo.Opened:
		fmt.Fprintln(s.err, "aweigh: by the clock of this machine the motion is not open yet; look at the clock.")
	}
}

// warnDraft prints what is open about a motion that no block has opened.
func (s *signing) warnDraft(r *scope.MotionReport, now aweigh.Instant) {
	fmt.Fprintln(s.err, "aweigh: no block had opened this motion when the file was written. The ballot is on the mutation above, and counts\nonce a block opens it, if the policy of then lets this key vote.")
	if r.Mutation.ValidUntil <= now {
		fmt.Fprintln(s.err, "aweigh: by the clock of this machine, it is too late for a block to open it. If that is so, this ballot will\nnever count; it is signed all the same.")
	}
}

func (s *signing) signer(ctx context.Context) (votes.Signer, error) {
	if s.program != "" {
		return signer.Open(ctx, s.program, s.err)
	}
	key, secured, err := s.openKey(ctx, s.key, s.passphraseFile)
	if err != nil {
		return nil, err
	}
	if !secured {
		fmt.Fprintf(s.err, "aweigh: %s is in plain text: any reader of the file can vote in its name\n", show.Line(s.key))
	}
	return key, nil
}

// mayVote names the voters.
func mayVote(mo *scope.Motion) string {
	var all []string
	for i := range mo.Voters {
		v := &mo.Voters[i]
		all = append(all, fmt.Sprintf("%s (%s)", v.Name, v.Key.ID().Short()))
	}
	return strings.Join(all, ", ")
}
