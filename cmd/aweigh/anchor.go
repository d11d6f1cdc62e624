package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/internal/wysiwys"
	"github.com/aweigh/aweigh/scope"
)

func (a *app) anchor() *cobra.Command {
	c := &cobra.Command{
		Use: "anchor", Short: "Admit, retire, evict, attest and readmit anchors", Args: cobra.NoArgs,
		Long: "Changes the anchors of a scope. A decision is carried once anchors whose weight finalizes have\n" +
			"approved it, and takes effect with the next epoch. Each anchor approves at its own\n" +
			"node, which signs with the anchor's key for its own user and for clients that api-admins names.\n\n" +
			"A decision that is not carried within 7 days lapses.",
		Example: "  aweigh anchor apply --sponsor oslo      # at the node that wants to be an anchor\n" +
			"  aweigh anchor ls                        # anywhere\n" +
			"  aweigh anchor admit vaasa               # at oslo, and at as many others as it takes\n" +
			"  aweigh anchor evict riga -m \"gone\"",
	}
	return a.under(c, a.anchorLs(), a.anchorApply(), a.anchorAdmit(), a.anchorRetire(), a.anchorEvict(), a.anchorAttest(), a.anchorReadmit())
}

func (a *app) anchorLs() *cobra.Command {
	c := &cobra.Command{
		Use: "ls", Short: "List anchors and open decisions", Args: cobra.NoArgs,
		Long: "Lists the anchors, and the open decisions, with their approvals and the approval still missing.",
	}
	return a.askingIn(c, func(ctx context.Context, s *session, _ []string) error {
		ctx, cancel := s.limited(ctx)
		defer cancel()
		r, err := s.Client.Trust(ctx)
		if err != nil {
			return err
		}
		return s.Printer.Anchors(r)
	})
}

func (a *app) anchorApply() *cobra.Command {
	c := &cobra.Command{
		Use: "apply --sponsor NAME", Short: "Ask to become an anchor", Args: cobra.NoArgs,
		Long: "Asks the anchors to admit the node that answers, on the surety of one of them, the\n" +
			"sponsor. A node without an anchor key makes one and keeps it (anchor.key). The\n" +
			"sponsor must approve, and others until their weight finalizes. The node need not be\n" +
			"started again: it votes from the epoch on in which it has a seat, and weighs after\n" +
			"its probation.",
		Example: "  aweigh anchor apply --sponsor oslo\n  aweigh anchor apply --sponsor oslo --name vaasa -m \"as agreed in March\"",
	}
	sponsor := c.Flags().String("sponsor", "", "the anchor that stands surety: its name, ID, or the start of that")
	name := c.Flags().String("name", "", "name of the new anchor (default: that of the node)")
	once := onceFlags(c)
	return a.askingIn(c, func(ctx context.Context, s *session, _ []string) error {
		if *sponsor == "" {
			return fmt.Errorf("%w: --sponsor names the anchor that stands surety for this one", errUsage)
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		r, err := s.Client.Trust(ctx)
		if err != nil {
			return err
		}
		who, err := anchorNamed(r, *sponsor)
		if err != nil {
			return err
		}
		for _, x := range r.Anchors {
			if x.Self {
				return fmt.Errorf("%w: the node that answers is an anchor already, %s; name the applicant with --api", errState, show.Line(x.Name))
			}
		}
		req := &aweighv1.ApplyRequest{Sponsor: who.Id, Name: *name}
		if req.Once, err = once(); err != nil {
			return err
		}
		asked, err := s.Client.Application(ctx, who.Id, *name)
		if err != nil {
			return err
		}
		req.Application = asked.Proposal.GetDecision()
		if err := s.mayApply(asked, who.Id, *name); err != nil {
			return err
		}
		g, err := s.Client.Apply(ctx, req)
		if err != nil {
			return err
		}
		at := show.Line(who.Name) + ", and then at other anchors"
		if g.Proposal.GetSponsored() {
			at = "other anchors"
		}
		return s.Printer.Governed(g, r, fmt.Sprintf("next: at %s:  aweigh anchor admit %s%s", at, show.Word(g.Proposal.GetName()), s.flagIn()))
	})
}

// mayApply shows an application in full, on standard error, before the node signs it, whatever
// the format of the answer.
func (s *session) mayApply(asked *aweighv1.GovernResponse, sponsor []byte, name string) error {
	d, shown, err := wysiwys.Decision(asked.Proposal.GetDecision(), nil)
	if err != nil {
		return err
	}
	if d.Kind != scope.Admit || !bytes.Equal(d.Sponsor[:], sponsor) || name != "" && d.Anchor.Name != name {
		return fmt.Errorf("%w: the node would sign another application than was asked for", wysiwys.ErrHidden)
	}
	return show.Printer{Out: s.told, Format: show.Table}.ToSign("the application, which "+nodeOf(asked.Header)+" signs", shown)
}

func (a *app) anchorAdmit() *cobra.Command {
	c := &cobra.Command{
		Use: "admit NAME", Short: "Approve an application", Args: cobra.ExactArgs(1),
		Long: "Approves, with the key of the anchor that answers, or with --here of all on this machine,\n" +
			"that another becomes an anchor.\n" +
			"NAME is that of the applicant, its ID, the decision's ID, or the start of one. The\n" +
			"sponsor loses trust if the new anchor is ever proven to lie.",
		Example: "  aweigh anchor admit vaasa",
	}
	return a.approving(c, "admit", "at other anchors:  aweigh anchor admit ")
}

// approving makes a command that approves an open decision of a kind.
func (a *app) approving(c *cobra.Command, kind, next string) *cobra.Command {
	once, here := onceFlags(c), hereFlag(c)
	return a.askingIn(c, func(ctx context.Context, s *session, args []string) error {
		ctx, cancel := s.limited(ctx)
		defer cancel()
		r, err := s.Client.Trust(ctx)
		if err != nil {
			return err
		}
		x, err := s.proposalNamed(r, args[0], kind)
		if err != nil {
			return s.closed(ctx, args[0], err)
		}
		d, err := decisionOf(x)
		if err != nil {
			return err
		}
		if *here {
			return a.decideHere(ctx, s, d, once, "next: "+next+show.Word(args[0]))
		}
		return s.govern(ctx, r, d, once, "next: "+next+show.Word(args[0]))
	})
}

// govern shows a decision, proposes or approves it, and prints the outcome.
func (s *session) govern(ctx context.Context, r *aweighv1.TrustResponse, d scope.Decision, once func() (*aweighv1.Once, error), next string) error {
	if _, err := s.signs(ctx, r, d, false); err != nil {
		return err
	}
	o, err := once()
	if err != nil {
		return err
	}
	g, err := s.Client.Govern(ctx, d, o)
	if err != nil {
		return err
	}
	if err := s.Printer.Governed(g, r, next+s.flagIn()); err != nil {
		return err
	}
	return fate(g)
}

// flagIn is the flag for a scope that is not the root, to add to a command that is advised.
func (s *session) flagIn() string {
	if s.in == "" {
		return ""
	}
	return " --scope " + show.Word(s.in)
}

// proposalNamed finds an open decision of one of some kinds, by its ID, the ID or name of its
// anchor, or the start of an ID.
func (s *session) proposalNamed(r *aweighv1.TrustResponse, text string, kinds ...string) (*aweighv1.Proposal, error) {
	var found []*aweighv1.Proposal
	starts := func(id []byte) bool {
		return len(text) >= 4 && strings.HasPrefix(hex.EncodeToString(id), strings.ToLower(text))
	}
	for _, x := range r.Proposals {
		if slices.Contains(kinds, x.Kind) && (x.Name == text && text != "" || starts(x.Id) || starts(x.Subject) || starts(x.Motion)) {
			found = append(found, x)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("%w: %d open decisions fit %q; give the ID of one, as \"aweigh anchor ls%s\" shows it", errUsage, len(found), text, s.flagIn())
	}
	return nil, fmt.Errorf("%w: no open decision (%s) fits %q; \"aweigh anchor ls%s\" lists them", errAbsent, strings.Join(kinds, " or "), text, s.flagIn())
}

func (a *app) anchorRetire() *cobra.Command {
	c := &cobra.Command{
		Use: "retire", Short: "Retire this node's anchor", Args: cobra.NoArgs,
		Long: "Takes the anchor of the node that answers out of the roster, with the next epoch. It\n" +
			"needs no approval. The node goes on as an observer, and its score is kept.",
		Example: "  aweigh anchor retire --yes -m \"the machine is sold\"",
	}
	yes := c.Flags().Bool("yes", false, "do it; without --yes, only print what would follow")
	once := onceFlags(c)
	return a.askingIn(c, func(ctx context.Context, s *session, _ []string) error {
		ctx, cancel := s.limited(ctx)
		defer cancel()
		r, err := s.Client.Trust(ctx)
		if err != nil {
			return err
		}
		var self *aweighv1.Standing
		for _, x := range r.Anchors {
			if x.Self {
				self = x
			}
		}
		if self == nil {
			return fmt.Errorf("%w: the node that answers is not an anchor; give --api of the one to retire", errUsage)
		}
		if !*yes {
			return fmt.Errorf("%w: %s would leave with weight %d of %d; to do it, add --yes", errUnconfirmed, self.Name, self.Weight, r.TotalWeight)
		}
		return s.govern(ctx, r, scope.Decision{Kind: scope.Retire, Subject: aweigh.AnchorID(self.Id)}, once, "")
	})
}

func (a *app) anchorEvict() *cobra.Command {
	c := &cobra.Command{
		Use: "evict NAME --because TEXT", Short: "Propose or approve that an anchor leaves", Args: cobra.ExactArgs(1),
		Long: "Proposes, or approves if it is proposed already, that an anchor leaves the roster with\n" +
			"the next epoch: one that is gone for good, or not wanted any more. Its score is kept.\n" +
			"One that lied is barred without this. " + anchorHelp,
		Example: "  aweigh anchor evict riga --because \"no word since May\"",
	}
	once := onceFlags(c)
	return a.askingIn(c, func(ctx context.Context, s *session, args []string) error {
		if !c.Flags().Changed("because") {
			return fmt.Errorf("%w: give the reason with --because, for the other anchors that must approve it and for the record", errUsage)
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		r, err := s.Client.Trust(ctx)
		if err != nil {
			return err
		}
		who, err := anchorNamed(r, args[0])
		if err != nil {
			return err
		}
		for _, x := range r.Anchors {
			if x.Self && bytes.Equal(x.Id, who.Id) {
				return fmt.Errorf("%w: this is the anchor that answers; retire it with \"aweigh anchor retire\"", errUsage)
			}
		}
		return s.govern(ctx, r, scope.Decision{Kind: scope.Evict, Subject: aweigh.AnchorID(who.Id)}, once,
			fmt.Sprintf("next: at other anchors:  aweigh anchor evict %s --because %s", show.Word(args[0]), show.Word(c.Flag("because").Value.String())))
	})
}
