package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// under gives a command others below it.
func (a *app) under(c *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	for _, sub := range subs {
		do := sub.RunE
		sub.RunE = func(cmd *cobra.Command, args []string) error {
			a.started = true
			if err := checkFlags(cmd); err != nil {
				return err
			}
			return do(cmd, args)
		}
		c.AddCommand(sub)
	}
	c.Args = unknown
	if c.RunE == nil {
		c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	return c
}

// unknown refuses an unknown subcommand, and names similar ones.
func unknown(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q for %q", args[0], c.CommandPath())
	c.SuggestionsMinimumDistance = 2 // letters that are wrong
	if like := c.SuggestionsFor(args[0]); len(like) > 0 {
		text += "\n\nDid you mean this?\n  " + strings.Join(like, "\n  ")
	}
	return fmt.Errorf("%w: %s", errUsage, text)
}

// anchorHelp states how anchors are named.
const anchorHelp = "NAME is an anchor's name, its ID, or the start of its ID."

func (a *app) trust() *cobra.Command {
	c := &cobra.Command{
		Use: "trust", Short: "Show how the anchors stand, and why", Args: cobra.NoArgs,
		Long: "Shows every anchor's score (parts per million), its weight, the score's change\n" +
			"from the last epoch's start to this one's, and its weight if the epoch ended\n" +
			"now. A * marks the anchor of the node that answers.",
		Example: "  aweigh trust\n  aweigh trust explain oslo\n  aweigh trust verify\n  aweigh trust replay --data-dir ./backup",
	}
	a.askingIn(c, func(ctx context.Context, s *session, _ []string) error {
		ctx, cancel := s.limited(ctx)
		defer cancel()
		r, err := s.Client.Trust(ctx)
		if err != nil {
			return err
		}
		return s.Printer.Trust(r)
	})
	return a.under(c, a.trustExplain(), a.trustVerify(), a.trustReplay())
}

func (a *app) trustExplain() *cobra.Command {
	c := &cobra.Command{
		Use: "explain NAME", Short: "List what moved an anchor's trust", Args: cobra.ExactArgs(1),
		Long: "Lists every change of an anchor's score and blame, newest first: the block that carries the\n" +
			"evidence, and the arithmetic. With --trusted, the node's history must\n" +
			"contain that roster. " + anchorHelp,
		Example: "  aweigh trust explain oslo\n  aweigh trust explain 4bf5122f -o json",
	}
	limit := c.Flags().Int64("limit", 100, "at most so many changes")
	a.trustingFlags(c)
	save := c.Flags().String("proof", "", "write the proof that barred the anchor to this file, for \"aweigh verify\"")
	return a.askingIn(c, func(ctx context.Context, s *session, args []string) error {
		ctx, cancel := s.limited(ctx)
		defer cancel()
		if a.trusts.roster != "" {
			if err := a.sameHistory(ctx, s); err != nil {
				return err
			}
		}
		r, err := s.Client.Trust(ctx)
		if err != nil {
			return err
		}
		who, err := anchorNamed(r, args[0])
		if err != nil {
			return err
		}
		x, err := s.Client.Explain(ctx, &aweighv1.ExplainRequest{Anchor: who.Id, Limit: *limit})
		if err != nil {
			return err
		}
		if *save != "" {
			file, err := reserveNew(*save)
			if err != nil {
				return err
			}
			defer file.release()
			p, err := s.faultProof(ctx, who, x)
			if err != nil {
				return err
			}
			if err := file.write(p.Encode()); err != nil {
				return err
			}
		}
		if s.Format == show.Table && !r.Header.GetLinearizable() {
			fmt.Fprintln(a.err, show.Told(r.Header))
		}
		motions, err := s.Client.Motions(ctx, true)
		if err != nil { // then reasons name decisions
			motions = new(aweighv1.MotionsResponse)
		}
		s.inFull(ctx, x, motions.Motions)
		return s.Printer.Explain(who, x, show.NamesOf(motions.Motions, r))
	})
}

// sameHistory checks that the node's history contains the roster that is trusted.
func (a *app) sameHistory(ctx context.Context, s *session) error {
	id, err := s.networkOf(ctx, s.network)
	if err != nil {
		return err
	}
	head, err := s.head(ctx, id, 0, false)
	if err != nil {
		return err
	}
	return a.trusts.check(head.Ancestry.Root())
}

// faultProof collects the evidence that an anchor lied.
func (s *session) faultProof(ctx context.Context, who *aweighv1.Standing, x *aweighv1.ExplainResponse) (*scope.FaultProof, error) {
	p := new(scope.FaultProof)
	var err error
	for _, c := range x.Changes {
		if len(c.Fault) > 0 {
			if p.Proof, err = votes.DecodeEquivocation(c.Fault); err != nil {
				return nil, err
			}
			break
		}
	}
	if p.Proof.First.Anchor.IsZero() {
		return nil, fmt.Errorf("%w: no proof against %s is on record here", errAbsent, who.Name)
	}
	if p.Genesis, err = s.Client.Genesis(ctx); err != nil {
		return nil, err
	}
	first, err := p.Genesis.Epoch()
	if err != nil {
		return nil, err
	}
	if _, err := s.Client.FollowEpochs(ctx, first, func(h scope.Handover, e *scope.Epoch) {
		if e.Number <= p.Proof.First.Domain.Epoch {
			p.Handovers = append(p.Handovers, h)
		}
	}); err != nil {
		return nil, err
	}
	_, _, err = p.Verify(p.Genesis.Hash())
	return p, err
}

// anchorNamed finds the anchor that people mean by a name, an ID, or the start of one.
func anchorNamed(r *aweighv1.TrustResponse, text string) (*aweighv1.Standing, error) {
	var found []*aweighv1.Standing
	for _, x := range r.Anchors {
		if x.Name == text || hex.EncodeToString(x.Id) == strings.ToLower(text) {
			found = append(found, x)
		}
	}
	if len(found) == 0 && len(text) >= 4 {
		for _, x := range r.Anchors {
			if strings.HasPrefix(hex.EncodeToString(x.Id), strings.ToLower(text)) {
				found = append(found, x)
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, fmt.Errorf("%w: no anchor is called %q; \"aweigh anchor ls\" lists them", errAbsent, text)
	}
	return nil, fmt.Errorf("%w: %d anchors are called %q; give the ID of one, as \"aweigh anchor ls\" shows it", errUsage, len(found), text)
}
