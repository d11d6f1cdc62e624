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
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

func (a *app) anchorAttest() *cobra.Command {
	c := &cobra.Command{
		Use: "attest NAME --score N --reason TEXT", Short: "Propose or approve a score for an anchor", Args: cobra.ExactArgs(1),
		Long: "Proposes that an anchor has another score with the next epoch, for a reason that the chain\n" +
			"cannot show: 1 to 1000000, of which \"aweigh trust\" shows the present one. The reason is for the\n" +
			"anchors that must approve it, and for the record. Without --score and --reason, approves\n" +
			"what is proposed about the anchor already. Weights follow scores step by step, within the\n" +
			"limits of the policy. " + anchorHelp,
		Example: "  aweigh anchor attest riga --score 400000 --reason \"its new machine was audited in May\"\n  aweigh anchor attest riga",
	}
	score := c.Flags().Uint32("score", 0, "from 1 to 1000000; full trust is 1000000")
	reason := c.Flags().String("reason", "", "why, in up to 512 bytes")
	once := onceFlags(c)
	return a.askingIn(c, func(ctx context.Context, s *session, args []string) error {
		scored, because := c.Flags().Changed("score"), c.Flags().Changed("reason")
		switch {
		case scored != because:
			return fmt.Errorf("%w: a score is attested with --score and --reason; without both, what is proposed already is approved", errUsage)
		case scored && (*score == 0 || *score > uint32(trust.MaxScore)):
			return fmt.Errorf("%w: --score is from 1 to %d; to take an anchor out, evict it", errUsage, trust.MaxScore)
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		r, err := s.Client.Trust(ctx)
		if err != nil {
			return err
		}
		next := "next: at other anchors:  aweigh anchor attest "
		if !scored {
			x, err := s.proposalNamed(r, args[0], "attest")
			if err != nil {
				return s.closed(ctx, args[0], err)
			}
			d, err := decisionOf(x)
			if err != nil {
				return err
			}
			return s.govern(ctx, r, d, once, next+d.ID().Short())
		}
		who, err := anchorNamed(r, args[0])
		if err != nil {
			return err
		}
		if who.Standing == "barred" {
			return fmt.Errorf("%w: %s is barred, and has no score; readmit it first, with \"aweigh anchor readmit %s%s\"", errState, show.Line(who.Name), show.Word(args[0]), s.flagIn())
		}
		d := scope.Decision{Kind: scope.Attest, Subject: aweigh.AnchorID(who.Id), Score: trust.Score(*score), Reason: *reason}
		if err := d.Check(); err != nil {
			return fmt.Errorf("%w: --reason: %w", errUsage, err)
		}
		return s.govern(ctx, r, d, once, next+d.ID().Short())
	})
}

func (a *app) anchorReadmit() *cobra.Command {
	c := &cobra.Command{
		Use: "readmit NAME", Short: "Propose or approve that a barred anchor, or a void approver, returns", Args: cobra.ExactArgs(1),
		Long: "Proposes, or approves if it is proposed already, that the bar of an anchor that was proven to\n" +
			"lie is lifted. It has a seat from the next epoch on, starts with the score of a new anchor, and\n" +
			"weighs after its probation. It keeps its key, so make sure first that only one\n" +
			"process uses that key. Its sponsor answers until 64 epochs (trust.surety_epochs) after its\n" +
			"admission, which a readmission is not; for a lie after that, no sponsor loses anything.\n\n" +
			"If another anchor proposed a readmission under the same name with another key or peer, the\n" +
			"command refuses it: give the ID of the decision to approve that one.\n\n" +
			"An approver of the policy that approved and rejected one motion is void: it is no voter on\n" +
			"motions that open later. Its name or its key's ID in place of NAME makes it a voter\n" +
			"again. \"aweigh anchor ls\" lists such approvers. " + anchorHelp,
		Example: "  aweigh anchor readmit riga -m \"its second process is gone\"",
	}
	once := onceFlags(c)
	return a.askingIn(c, func(ctx context.Context, s *session, args []string) error {
		ctx, cancel := s.limited(ctx)
		defer cancel()
		r, err := s.Client.Trust(ctx)
		if err != nil {
			return err
		}
		d, err := s.readmits(r, args[0])
		if err != nil {
			return err
		}
		return s.govern(ctx, r, d, once, "next: at other anchors:  aweigh anchor readmit "+d.ID().Short())
	})
}

// readmits is the decision that NAME stands for: the open one with that ID, or the readmission of the anchor or the
// approver that this network knows by the name. If another one is open under the same name, its proposer may have put
// another key or peer into it, so only its ID names it.
func (s *session) readmits(r *aweighv1.TrustResponse, name string) (d scope.Decision, err error) {
	known := slices.ContainsFunc(r.Anchors, func(a *aweighv1.Standing) bool { return a.Name == name })
	var byID, alike []*aweighv1.Proposal
	starts := func(id []byte) bool {
		return !known && len(name) >= 4 && strings.HasPrefix(hex.EncodeToString(id), strings.ToLower(name))
	}
	for _, x := range r.Proposals {
		switch {
		case x.Kind != "readmit":
		case starts(x.Id) || starts(x.Motion):
			byID = append(byID, x)
		case x.Name == name:
			alike = append(alike, x)
		}
	}
	switch {
	case len(byID) == 1:
		return decisionOf(byID[0])
	case len(byID) > 1:
		return d, fmt.Errorf("%w: %d open decisions fit %q; give more of the ID of one", errUsage, len(byID), name)
	}
	if d, err = s.readmission(r, name); err != nil && len(alike) == 0 {
		return d, err
	}
	var others []string
	for _, x := range alike {
		if err == nil && bytes.Equal(x.Id, idOf(&d)) {
			return d, nil
		}
		o, err := decisionOf(x)
		if err != nil {
			return d, err
		}
		others = append(others, fmt.Sprintf("%x: %s", x.Id, saysReadmit(&o)))
	}
	switch {
	case len(others) == 0:
		return d, nil
	case err != nil:
		return d, fmt.Errorf("%w; open under that name is %s; to approve it, give its ID", err, strings.Join(others, "; "))
	}
	return d, fmt.Errorf("%w: under the name %s another readmission is open than that of the anchor or approver of this network (%s): %s; "+
		"to approve that one, give its ID; otherwise reject it (aweigh ballot reject)", errState, show.Line(name), saysReadmit(&d), strings.Join(others, "; "))
}

func idOf(d *scope.Decision) []byte {
	id := d.ID()
	return id[:]
}

// saysReadmit is all that a decision to readmit says.
func saysReadmit(d *scope.Decision) string {
	if d.Anchor == nil {
		return fmt.Sprintf("of the approver %x", d.Subject)
	}
	return fmt.Sprintf("of %s with the key %s and the peer %s", show.Line(d.Anchor.Name), d.Anchor.Key, show.Line(d.Anchor.Peer))
}

// voidIn are the keys of the approvers that are void.
func voidIn(r *aweighv1.TrustResponse) (keys []aweigh.Hash) {
	for _, v := range r.Void {
		if len(v.Id) == len(aweigh.Hash{}) {
			keys = append(keys, aweigh.Hash(v.Id))
		}
	}
	return keys
}

// inFull asks for the motions that attested a score in full, because lists have no reasons.
func (s *session) inFull(ctx context.Context, x *aweighv1.ExplainResponse, motions []*aweighv1.Motion) {
	for _, c := range x.Changes {
		at := slices.IndexFunc(motions, func(m *aweighv1.Motion) bool {
			return c.Kind == trust.Attested.String() && len(c.Proof) > 0 && bytes.Equal(m.Decision, c.Proof)
		})
		if at < 0 {
			continue
		}
		if m, err := s.Client.Motion(ctx, motions[at].Id); err == nil {
			motions[at] = m.Motion
		}
	}
}

// readmission is the decision to lift the bar of an anchor, which it names as the last roster that had it did; or to
// make an approver that is void a voter again.
func (s *session) readmission(r *aweighv1.TrustResponse, name string) (d scope.Decision, err error) {
	for _, v := range r.Void {
		if v.Name == name || len(name) >= 4 && strings.HasPrefix(hex.EncodeToString(v.Id), strings.ToLower(name)) {
			d = scope.Decision{Kind: scope.Readmit}
			copy(d.Subject[:], v.Id)
			return d, d.Check()
		}
	}
	who, err := anchorNamed(r, name)
	if err != nil {
		return d, err
	}
	if who.Standing != "barred" {
		return d, fmt.Errorf("%w: %s is not barred (%s), so there is no bar to lift", errState, show.Line(who.Name), show.Line(who.Standing))
	}
	if who.Key == "" {
		return d, fmt.Errorf("%w: the node that answers does not hold the roster with the key of %s; ask a node that has older blocks, with --api", errState, show.Line(who.Name))
	}
	key, err := votes.ParsePublicKey(who.Key)
	if err != nil {
		return d, err
	}
	d = scope.Decision{Kind: scope.Readmit, Subject: aweigh.AnchorID(who.Id), Anchor: &scope.Anchor{Name: who.Name, Key: key, Peer: who.Peer}}
	return d, d.Check()
}
