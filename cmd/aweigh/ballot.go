package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/votes"
)

// ballotOnline are the commands on ballots that talk to a node.
func (a *app) ballotOnline() []*cobra.Command {
	return []*cobra.Command{a.ballotVote(votes.Approve), a.ballotVote(votes.Reject), a.ballotImport(), a.ballotReconcile(), a.ballotSync()}
}

func (a *app) ballotVote(choice votes.Choice) *cobra.Command {
	word := choice.String()
	c := &cobra.Command{
		Use: word + " MOTION", Short: strings.ToUpper(word[:1]) + word[1:] + " a motion as the anchor that answers", Args: cobra.ExactArgs(1),
		Long: "Signs a ballot with the key of the anchor that answers, on whose machine this must run.\n" +
			"A ballot cannot be taken back: two that contradict each other prove a lie, and cost\n" +
			"the anchor its trust.",
		Example: "  aweigh ballot " + word + " 4bf5122f --comment \"as discussed\"",
	}
	comment := c.Flags().String("comment", "", "public words, up to 1024 bytes")
	anyway := c.Flags().Bool("anyway", false, "sign though the motion is closed, or would be void as things stand")
	return a.askingOfMotions(c, func(ctx context.Context, s *session, args []string) error {
		if len(*comment) > votes.MaxComment {
			return fmt.Errorf("%w: a comment has at most %d bytes, not %d", errUsage, votes.MaxComment, len(*comment))
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		m, err := s.motionOnRecord(ctx, args[0])
		if err != nil {
			return err
		}
		if err := votable(m.Motion); err != nil && !*anyway {
			return fmt.Errorf("%w; --anyway signs a ballot all the same", err)
		}
		if err := uncontradicted(m, word); err != nil {
			return err
		}
		if err := s.mayVote(ctx, m.Motion, word); err != nil {
			return err
		}
		r, err := s.Client.Vote(ctx, m.Motion.Id, word, *comment)
		if err != nil {
			return err
		}
		if s.Format == show.JSON {
			return s.Printer.Motion(&aweighv1.MotionResponse{Header: r.Header, Motion: r.Motion})
		}
		switch {
		case r.Late:
			fmt.Fprintf(a.out, "the motion is decided: %s; the ballot will be recorded as late, without effect\n",
				show.Line(r.Motion.Fate))
		case r.Outcome == "repeated":
			fmt.Fprintln(a.out, "the ballot is there already; nothing changed")
		case r.Motion.Fate != "open": // a block has recorded it
			fmt.Fprintln(a.out, "OK  the ballot is recorded")
		default:
			fmt.Fprintln(a.out, "OK  the ballot is kept, and counts once a block has recorded it")
		}
		_, err = fmt.Fprintln(a.out, show.Progress(r.Motion))
		return err
	})
}
