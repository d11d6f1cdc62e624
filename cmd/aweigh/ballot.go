package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
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
		Use: word + " MOTION", Short: strings.ToUpper(word[:1]) + word[1:] + " a motion, as the anchor that answers or with a key", Args: cobra.ExactArgs(1),
		Long: "Signs a ballot with the key of the anchor that answers, on whose machine this must run; or,\n" +
			"with --key, with that of a file, as an approver that the policy names, and hands it in at any\n" +
			"node. What is signed is shown first. Before a passphrase is asked for, read it. With --key,\n" +
			"the node proves what it shows; without a proof, the command says so.\n" +
			"A ballot cannot be taken back: two that contradict each other prove a lie, and cost\n" +
			"the anchor its trust.",
		Example: "  aweigh ballot " + word + " 4bf5122f --comment \"as discussed\"\n  aweigh ballot " + word + " 4bf5122f --key bob.key",
	}
	comment := c.Flags().StringP("comment", "m", "", "public words, up to 1024 bytes")
	key := c.Flags().String("key", "", "vote with the voter's key and not the anchor's: "+keyNames)
	from := passphraseFlag(c)
	network := a.networkFlag(c)
	c.Flags().Lookup("network").Usage = "with --key, identity of the network, 64 hexadecimal digits: sign only what is proven for it"
	anyway := c.Flags().Bool("anyway", false, "sign though the motion is closed, or would be void as things stand")
	return a.askingOfMotions(c, func(ctx context.Context, s *session, args []string) error {
		if len(*comment) > votes.MaxComment {
			return fmt.Errorf("%w: a comment has at most %d bytes, not %d", errUsage, votes.MaxComment, len(*comment))
		}
		if *key == "" && *from != "" {
			return fmt.Errorf("%w: --passphrase-file is for --key", errUsage)
		}
		limited, cancel := s.limited(ctx)
		defer cancel()
		m, err := s.motionOnRecord(limited, args[0])
		if err != nil {
			return err
		}
		if err := votable(m.Motion); err != nil && !*anyway {
			return fmt.Errorf("%w; --anyway signs a ballot all the same", err)
		}
		if *key != "" {
			return a.voteWith(ctx, s, m, choice, *comment, *key, *from, *network)
		}
		if err := uncontradicted(m, word); err != nil {
			return err
		}
		if *network != "" || a.trusts.roster != "" {
			return fmt.Errorf("%w: --network and --trusted are for --key; an anchor votes by what its own node states", errUsage)
		}
		if err := s.mayVote(limited, m.Motion, word, &vouched{header: m.Header, own: true}); err != nil {
			return err
		}
		r, err := s.Client.Vote(limited, m.Motion.Id, word, *comment)
		if errors.Is(err, client.ErrInvalid) && m.Motion.StepUp {
			return fmt.Errorf("%w. A step-up asks no anchors. These may vote, with --key FILE: %s", err, strings.Join(votersOf(m), ", "))
		}
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
		case r.Motion.Fate == "waiting":
			fmt.Fprintln(a.out, "OK  the ballot is kept, and counts once a block has opened the motion")
		case r.Motion.Fate != "open": // a block has recorded it
			fmt.Fprintln(a.out, "OK  the ballot is recorded")
		default:
			fmt.Fprintln(a.out, "OK  the ballot is kept, and counts once a block has recorded it")
		}
		_, err = fmt.Fprintln(a.out, show.Progress(r.Motion))
		return err
	})
}

// votersOf returns who may vote on a motion, in words.
func votersOf(m *aweighv1.MotionResponse) (names []string) {
	for _, v := range m.Motion.Voters {
		names = append(names, fmt.Sprintf("%s (%x)", show.Line(v.Name), v.Id[:min(4, len(v.Id))]))
	}
	return names
}

// voterFor is the voter on a motion that has a key. It refuses a key that may not vote on it, or that has said the
// opposite.
func voterFor(m *aweighv1.MotionResponse, id aweigh.Hash, choice votes.Choice) (*aweighv1.Voter, error) {
	i := slices.IndexFunc(m.Motion.Voters, func(v *aweighv1.Voter) bool { return bytes.Equal(v.Id, id[:]) })
	if i < 0 {
		return nil, fmt.Errorf("%w: key %s may not vote on this motion. These may: %s", errUsage, id.Short(), strings.Join(votersOf(m), ", "))
	}
	for _, b := range m.Motion.Voters[i].Ballots {
		if b.Choice == choice.Other().String() {
			return nil, fmt.Errorf("%w: this key has said %s on motion %x, and cannot take it back: two ballots that contradict each other count on neither side",
				errContrary, show.Line(b.Choice), m.Motion.Id[:4])
		}
	}
	return m.Motion.Voters[i], nil
}

// voteWith signs a ballot with a voter's key, and hands it in at the node that answers.
func (a *app) voteWith(ctx context.Context, s *session, m *aweighv1.MotionResponse, choice votes.Choice, comment, file, passphraseFile, network string) error {
	if len(m.Header.GetNetwork()) != len(aweigh.Hash{}) || len(m.Motion.Scope) != len(aweigh.Hash{}) || len(m.Motion.Id) != len(aweigh.Hash{}) {
		return fmt.Errorf("%w: the node returned no identity of the motion", errAbsent)
	}
	public, known, err := a.publicOfSigner(ctx, file)
	if err == nil && known { // before the motion is shown, in vain
		_, err = voterFor(m, public.ID(), choice)
	}
	if err != nil {
		return err
	}
	v, err := a.vouch(ctx, s, m, network)
	if err != nil {
		return err
	}
	if err := s.mayVote(ctx, m.Motion, choice.String(), v); err != nil {
		return err
	}
	key, _, err := a.openKey(ctx, file, passphraseFile)
	if err != nil {
		return err
	}
	voter, err := voterFor(m, key.Public().ID(), choice)
	if err != nil {
		return err
	}
	b, err := votes.SignMotionBallot(key, votes.MotionVote{
		Network: aweigh.NetworkID(m.Header.Network), Scope: aweigh.ScopeID(m.Motion.Scope), Motion: votes.MotionID(m.Motion.Id), Choice: choice,
	}, comment)
	if err != nil {
		return err
	}
	ctx, cancel := s.limited(ctx) // a passphrase takes its time
	defer cancel()
	r, err := s.Client.HandIn(ctx, votes.AppendMotionBallots(nil, b))
	if err != nil {
		return err
	}
	for _, x := range r.Refused {
		return fmt.Errorf("%w: %s", errRefused, forPeople(x.Why))
	}
	if m, err = s.Client.Motion(ctx, m.Motion.Id); err != nil {
		return err
	}
	if s.Format == show.JSON {
		return s.Printer.Motion(m)
	}
	what := "OK  the ballot of " + show.Line(voter.Name)
	switch {
	case r.Late > 0:
		what += " will be recorded as late, without effect: the motion is decided"
	case r.Repeated > 0:
		what += " is there already; nothing changed"
	case m.Motion.Fate == "waiting":
		what += " is kept, and counts once a block has opened the motion"
	case m.Motion.Fate != "open":
		what += " is recorded"
	default:
		what += " is kept, and counts once a block has recorded it"
	}
	_, err = fmt.Fprintf(a.out, "%s\n%s\n", what, show.Progress(m.Motion))
	return err
}
