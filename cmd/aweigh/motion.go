package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/scope"
)

func (a *app) motion() *cobra.Command {
	c := &cobra.Command{
		Use: "motion", Short: "Show what waits for approval", Args: cobra.NoArgs,
		Long: "A write that the scope's policy puts under approval opens a motion instead of applying.\n" +
			"It applies once ballots of enough weight have approved it, within its window; the\n" +
			"ballots may be signed anywhere, also without a network (see aweigh ballot).\n\n" +
			"MOTION is the ID of one, or that of the open decision that it is about, or the first 8\n" +
			"digits of either, or more. To show and watch take decisions that are closed, too.",
		Example: "  aweigh motion ls\n  aweigh motion show 4bf5122f\n  aweigh motion watch 4bf5122f",
	}
	return a.under(c, a.motionLs(), a.motionShow(), a.motionWatch(), a.motionExport(), a.motionWithdraw())
}

// motionID reads the ID of a motion, or the start of one.
func motionID(text string) ([]byte, error) {
	id, err := hex.DecodeString(strings.ToLower(text[:len(text)&^1]))
	if err != nil || len(id) < 4 || len(id) > 32 {
		return nil, fmt.Errorf("%w: %q is not a motion: give its ID, or the first 8 digits of it or more; \"aweigh motion ls\" shows them", errUsage, text)
	}
	return id, nil
}

// motionNamed finds the motion that people mean: by its ID, by that of the open decision
// that it is about, or by the start of one.
func (s *session) motionNamed(ctx context.Context, text string) (*aweighv1.MotionResponse, error) {
	id, err := motionID(text)
	if err != nil {
		return nil, err
	}
	r, err := s.Client.Motion(ctx, id)
	if !errors.Is(err, client.ErrNotFound) {
		return r, err
	}
	if s.in != "" {
		if r, elsewhere := s.all.Motion(ctx, id); elsewhere == nil {
			return nil, fmt.Errorf("%w: motion %x is one of %s, not of that which --scope names", errElsewhere, r.Motion.Id[:4], scopeCalled(r.Motion.ScopePrefix))
		}
	}
	open, listErr := s.Client.Motions(ctx, false)
	if listErr != nil {
		return nil, listErr
	}
	var found []*aweighv1.Motion
	for _, x := range open.Motions {
		if len(x.Decision) > 0 && bytes.HasPrefix(x.Decision, id) {
			found = append(found, x)
		}
	}
	switch len(found) {
	case 0:
		return nil, err
	case 1:
		return s.Client.Motion(ctx, found[0].Id)
	}
	var names []string
	for _, x := range found {
		names = append(names, fmt.Sprintf("%x of %s", x.Id[:4], scopeCalled(x.ScopePrefix)))
	}
	return nil, fmt.Errorf("%w: several open decisions begin like %q: give the ID of one of the motions: %s", errUsage, text, strings.Join(names, ", "))
}

// motionOnRecord does so for commands that only show: it finds closed motions by their
// decisions, too.
func (s *session) motionOnRecord(ctx context.Context, text string) (*aweighv1.MotionResponse, error) {
	r, err := s.motionNamed(ctx, text)
	if !errors.Is(err, client.ErrNotFound) {
		return r, err
	}
	id, _ := motionID(text)
	all, listErr := s.Client.Motions(ctx, true)
	if listErr != nil {
		return nil, listErr
	}
	var found []*aweighv1.Motion
	for _, x := range all.Motions {
		if len(x.Decision) > 0 && bytes.HasPrefix(x.Decision, id) {
			found = append(found, x)
		}
	}
	if len(found) == 0 {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b *aweighv1.Motion) int { return cmp.Compare(b.OpenedNs, a.OpenedNs) })
	var others []string
	for _, x := range found[1:] { // of other scopes too: a decision's ID does not tell its scope
		others = append(others, fmt.Sprintf("%x (%s)", x.Id[:4], show.Line(x.Fate)))
		if !bytes.Equal(x.Decision, found[0].Decision) {
			return nil, fmt.Errorf("%w: several decisions begin like %q; give more of the ID, which \"aweigh motion ls --all\" shows", errUsage, text)
		}
	}
	if len(others) > 0 {
		fmt.Fprintf(s.told, "decision %x was proposed %d times: this is motion %x, the newest; before it: %s\n", found[0].Decision[:4], len(found), found[0].Id[:4], strings.Join(others, ", "))
	}
	return s.Client.Motion(ctx, found[0].Id)
}

func (a *app) motionLs() *cobra.Command {
	c := &cobra.Command{
		Use: "ls", Short: "List motions", Args: cobra.NoArgs,
		Long: "Lists the motions that are open, the most urgent first, with what each still needs, or\n" +
			"\"would be void\" if it could not be carried as things stand (\"aweigh motion show\" tells why).\n" +
			"In the tally, approvals stand on the left, rejections on the right, and the bar marks\n" +
			"the weight that carries.\n\n" +
			"The list has the motions of all scopes that the node holds, with a column SCOPE if one\n" +
			"is of a scope below the root; --scope lists those of one scope.\n\n" +
			"Without a quorum, a write opens no motion. --waiting lists the writes that wait at the node\n" +
			"and would open one. Their ballots can be signed, and count once a block opens the motion:\n" +
			"aweigh motion show, motion export, ballot approve and ballot import take their IDs, too.",
	}
	all := c.Flags().Bool("all", false, "those that are closed, too, as far as they are on record")
	waiting := c.Flags().Bool("waiting", false, "those, too, that no block has opened yet, because there is no quorum: as they\n"+
		"would open by the state of the node that answers")
	c.MarkFlagsMutuallyExclusive("all", "waiting")
	return a.askingOfMotions(c, func(ctx context.Context, s *session, _ []string) error {
		ctx, cancel := s.limited(ctx)
		defer cancel()
		list := func(ctx context.Context) (*aweighv1.MotionsResponse, error) { return s.Client.Motions(ctx, *all) }
		if *waiting {
			list = s.Client.Waiting
		}
		r, err := list(ctx)
		if err != nil {
			return err
		}
		return s.Printer.Motions(r)
	})
}

func (a *app) motionShow() *cobra.Command {
	c := &cobra.Command{
		Use: "show MOTION", Short: "Show one motion in full", Args: cobra.ExactArgs(1),
		Long: "Shows what a motion would change, its voters with their weights, and the votes:\n" +
			"recorded in which block, waiting for one, early or late.",
		Example: "  aweigh motion show 4bf5122f",
	}
	return a.askingOfMotions(c, func(ctx context.Context, s *session, args []string) error {
		ctx, cancel := s.limited(ctx)
		defer cancel()
		r, err := s.motionOnRecord(ctx, args[0])
		if err != nil {
			return err
		}
		var inForce, own *scope.Policy
		if d := show.DecisionOf(r.Motion); d != nil {
			p, err := s.policyOver(ctx, r.Motion)
			if err != nil {
				return err
			}
			inForce, own = p, s.ownPolicy(ctx, d)
		}
		return s.Printer.MotionUnder(r, inForce, own)
	})
}

// motionWatchUse tells the command from "aweigh watch", whose output can be values alone.
const motionWatchUse = "watch MOTION"

func (a *app) motionWatch() *cobra.Command {
	c := &cobra.Command{
		Use: motionWatchUse, Short: "Follow a motion until it is closed", Args: cobra.ExactArgs(1),
		Long: "Prints the state of a motion whenever it changes. The exit code is 0 if it is carried\n" +
			"in the end, and 4 if not: rejected, expired, withdrawn, superseded or void. With\n" +
			"--timeout it ends after that, and the exit code is 10 if the motion is open still. With\n" +
			"-o json, one object on a line for each change.",
	}
	return watched(a.askingOfMotions(c, func(ctx context.Context, s *session, args []string) error {
		limited, cancel := s.limited(ctx)
		defer cancel()
		r, err := s.motionOnRecord(limited, args[0])
		if err != nil {
			return err
		}
		return a.follow(s.following(limited), s, r.Motion.Id, s.Printer.MotionLine)
	}))
}

// errNotCarried is wrapped when a motion closed without being carried.
var errNotCarried = errors.New("the motion was not carried; nothing changed")

// follow prints the state of a motion until it is closed: in JSON by each, or only its end if each is
// nil.
func (a *app) follow(ctx context.Context, s *session, id []byte, each func(*aweighv1.MotionResponse) error) error {
	var last *aweighv1.MotionResponse
	doomed := false
	err := s.WatchMotion(ctx, id, func(r *aweighv1.MotionResponse) error {
		switch last = r; {
		case s.Format == show.Table:
			fmt.Fprintln(a.err, show.Line(show.Progress(r.Motion)))
			if !doomed && r.Motion.Doomed != "" {
				doomed = true
				fmt.Fprintln(a.err, show.DoomedUntil(r.Motion))
			}
		case each != nil:
			return each(r)
		}
		return nil
	})
	if last == nil || err != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return err
	}
	if each != nil {
		return a.closedAs(s, last)
	}
	return a.ended(s, last)
}

// ended shows a closed motion and its ending.
func (a *app) ended(s *session, last *aweighv1.MotionResponse) error {
	if s.Format == show.JSON {
		if err := s.Printer.Motion(last); err != nil {
			return err
		}
	}
	return a.closedAs(s, last)
}

// closedAs reports how a motion ended.
func (a *app) closedAs(s *session, last *aweighv1.MotionResponse) error {
	switch m := last.Motion; m.Fate {
	case "carried", "effective":
		if s.Format == show.Table {
			fmt.Fprintf(a.out, "OK  carried in block %d, revision %d\n", m.ClosedHeight, m.Revision)
		}
		return nil
	case "waiting", "open", "approved":
		state := m.Fate + " still"
		if m.Doomed != "" {
			state += ", but as things stand it would be void: " + m.Doomed
		}
		return fmt.Errorf("%w: motion %x is %s; to go on following it: aweigh motion watch %x",
			client.ErrPending, m.Id[:4], state, m.Id[:4])
	default:
		return fmt.Errorf("%w: %s", errNotCarried, show.Progress(m))
	}
}

// pended reports a write that waits for approval, or follows its motion. Other errors pass.
func (a *app) pended(ctx context.Context, s *session, err error, wait waits) error {
	var p *client.Pending
	if !errors.As(err, &p) {
		a.hintDraft(ctx, s, err)
		return err
	}
	r, motionErr := s.Client.Motion(ctx, p.Motion)
	if motionErr != nil && wait != waitsAlways {
		return err
	}
	second := motionErr == nil && r.Motion.StepUp && r.Motion.ClosedHeight == 0
	if wait == waitsAlways || wait == waitsForSecond && second {
		switch {
		case second:
			show.Printer{Out: s.told, Format: show.Table}.Asked(r)
		case s.Format == show.Table:
			fmt.Fprintf(a.err, "motion %x waits for approval; Ctrl-C ends this and changes nothing, and to follow it again: aweigh motion watch %x\n", p.Motion, p.Motion[:4])
		}
		err := a.follow(s.following(ctx), s, p.Motion, nil)
		if errors.Is(err, context.Canceled) {
			return fmt.Errorf("%w: motion %x stays open, and applies once it is approved; to follow it: aweigh motion watch %x", errSignal, p.Motion[:4], p.Motion[:4])
		}
		return err
	}
	if r.Motion.ClosedHeight > 0 { // it is a repetition
		return a.ended(s, r)
	}
	if err := s.Printer.Pending(r); err != nil {
		return err
	}
	return errQuiet{client.ErrPending}
}

// hintDraft prints how to vote on the motion that an undecided write will open, if it takes approval. It warns of a
// write with --pending that would open none.
func (a *app) hintDraft(ctx context.Context, s *session, err error) {
	var u *client.Undecided
	if s.Format.OfValues() || !errors.As(err, &u) || len(u.Mutation) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // the time of the write may be over
	defer cancel()
	switch r, err := s.Client.Draft(ctx, u.Mutation); {
	case err == nil && r.Motion.Fate == "waiting":
		if s.opens = true; s.Format != show.Table {
			return
		}
		fmt.Fprintf(a.err, "it takes approval: when a block can be made, motion %x opens. To see it and to vote on it before: "+
			"aweigh motion show %x; aweigh motion export %x --write m.motion\n", u.Mutation[:4], u.Mutation[:4], u.Mutation[:4])
	case errors.Is(err, client.ErrNotFound) && u.Once.GetPatient() && s.Format == show.Table:
		fmt.Fprintln(a.err, "it would open no motion, as the node has the scope: no approval of the policy covers it, or it would fail; with --pending it then never applies")
	}
}

// errQuiet is an error that was printed already, for its exit code alone.
type errQuiet struct{ error }

// Unwrap gives the error.
func (e errQuiet) Unwrap() error { return e.error }

func (a *app) motionExport() *cobra.Command {
	c := &cobra.Command{
		Use: "export MOTION", Short: "Write a motion to a file for voters without a network", Args: cobra.ExactArgs(1),
		Long: "Writes a proof of the motion to standard output, or to the file of --write: what it\n" +
			"would change, its author, the rule and the voters. With the network's identity, it can be\n" +
			"verified without a network, see aweigh ballot inspect and sign.",
		Example: "  aweigh motion export 4bf5122f >m.motion",
	}
	write := c.Flags().String("write", "", "a file, and not standard output")
	defer func() { c.Flags().Lookup("output").Usage = "with --write: table, or json for what was written" }()
	return a.askingOfMotions(c, func(ctx context.Context, s *session, args []string) error {
		if *write == "" {
			if err := s.plain("a motion's file goes to standard output as it is, or with --write FILE to a file"); err != nil {
				return err
			}
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		r, err := s.motionNamed(ctx, args[0])
		if err != nil {
			return err
		}
		p, err := s.Client.ExportMotion(ctx, r.Motion.Id)
		if err != nil {
			return err
		}
		switch {
		case *write == "" && isTerminal(a.out):
			return fmt.Errorf("%w: a motion's file is not for the screen; give --write FILE, or send it on: >m.motion", errUsage)
		case *write == "":
			_, err = a.out.Write(p.Encode())
			return err
		}
		if err := writeNew(*write, p.Encode(), 0o644); err != nil {
			return err
		}
		if s.Format == show.JSON {
			return s.Printer.JSON(struct {
				File   string `json:"file"`
				Bytes  int    `json:"bytes"`
				Motion string `json:"motion"`
			}{*write, len(p.Encode()), hex.EncodeToString(r.Motion.Id)})
		}
		fmt.Fprintf(a.err, "%s: %s; next, on any machine:  aweigh ballot inspect %s --network …\n", show.Line(*write), show.Count(len(p.Encode()), "byte"), show.Word(*write))
		return nil
	})
}

func (a *app) motionWithdraw() *cobra.Command {
	c := &cobra.Command{
		Use: "withdraw MOTION", Short: "End a motion that this node, or a key, proposed", Args: cobra.ExactArgs(1),
		Long: "Ends a motion without a decision. Only its author can: the node through which the\n" +
			"write came, or the key that signed it (--as).",
	}
	as := a.asFlags(c)
	once := onceFlags(c)
	return a.askingOfMotions(c, func(ctx context.Context, s *session, args []string) error {
		o, err := once()
		if err != nil {
			return err
		}
		if err := as.unlock(ctx); err != nil {
			return err
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		r, err := s.motionNamed(ctx, args[0])
		if err != nil {
			return err
		}
		if as.given() {
			err = as.withdraw(ctx, s, r.Motion, o)
		} else {
			_, err = s.Client.Withdraw(ctx, r.Motion.Id, o)
		}
		if err != nil {
			return err
		}
		if r, err = s.Client.Motion(ctx, r.Motion.Id); err != nil {
			return err
		}
		return s.Printer.Motion(r)
	})
}
