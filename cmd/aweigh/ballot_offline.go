package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// ballotCommand is all that is done with ballots on motions.
func (a *app) ballotCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "ballot", Short: "Vote on motions, with or without a network", Args: cobra.NoArgs,
		Long: "A ballot approves or rejects a motion (see aweigh motion). Anchors vote at their own\n" +
			"node; approvers sign on whatever machine holds their key, and the ballots come back as\n" +
			"files, by any road and in any order. inspect, sign and show need nothing but files.",
		Example: "  aweigh ballot approve 4bf5122f --comment \"as discussed\"\n\n" +
			"  aweigh ballot inspect m.motion --network 3f1a…      # on a machine without a network\n" +
			"  aweigh ballot sign m.motion --network 3f1a… --choice approve --key alice.key >m.ballot\n" +
			"  aweigh ballot import m.ballot                       # back at any node",
	}
	return a.under(c, append(a.ballotOnline(), a.ballotInspect(), a.ballotSign(), a.ballotShow())...)
}

const motionFileHelp = "FILE is the output of \"aweigh motion export\"; - stands for standard input. Give the network's\n" +
	"identity from a source that you trust: without --network, the file only shows that it\n" +
	"holds in the network that it names.\n"

func (a *app) ballotInspect() *cobra.Command {
	c := &cobra.Command{
		Use: "inspect FILE", Short: "Verify a motion's file and show what it would change", Args: cobra.ExactArgs(1),
		Long: "Verifies the file of a motion from the network's identity alone, and shows what the\n" +
			"motion would change, its author and reason, the rule that carries it, its voters and its\n" +
			"deadline. It does not know whether the motion is still open.\n\n" + motionFileHelp,
		Example: "  aweigh ballot inspect m.motion --network 3f1a…",
	}
	network := a.networkFlag(c)
	output := outputFlag(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		format, err := formatOf(*output, false)
		if err != nil {
			return err
		}
		r, pinned, err := a.motionFile(args[0], *network)
		if err != nil {
			return err
		}
		p := show.Printer{Out: a.out, Format: format}
		if err := p.Inspection(r, pinned, aweigh.InstantOf(time.Now())); err != nil || format == show.JSON {
			return err
		}
		_, err = fmt.Fprintf(a.out, "\n%s\n", compared(r, pinned))
		return err
	}
	return c
}

// networkFlag adds --network, and the flags of a roster that is trusted.
func (a *app) networkFlag(c *cobra.Command) *string {
	a.trustingFlags(c)
	return c.Flags().String("network", "", "identity of the network, 64 hexadecimal digits")
}

// compared reports what a verified file is worth.
func compared(r *scope.MotionReport, pinned bool) string {
	if pinned {
		return fmt.Sprintf("verified here for network %s", r.Network)
	}
	return fmt.Sprintf("consistent with itself, for network %s: compare this identity with one from a source\nthat you trust, or give that with --network; any author can make a file for a network of its own", r.Network)
}

// motionFile reads and verifies the file of a motion. pinned reports that its network
// was compared with the named one.
func (a *app) motionFile(name, network string) (r *scope.MotionReport, pinned bool, err error) {
	var id aweigh.NetworkID
	if pinned = network != ""; pinned {
		if id, err = networkOf(network); err != nil {
			return nil, false, err
		}
	}
	raw, err := a.read(name, scope.MaxProofBytes)
	if err != nil {
		return nil, false, err
	}
	if len(raw) == 0 {
		return nil, false, fmt.Errorf("%w: %s is empty", scope.ErrProof, name)
	}
	proof, err := scope.DecodeMotionProof(raw)
	if err != nil {
		if other := kindOf(name, raw); other != "" {
			return nil, false, fmt.Errorf("%w: this takes the file of a motion, and %s", errOtherKind, other)
		}
		return nil, false, fmt.Errorf("%s: this is not a file of a motion, or it is damaged or cut off: %w", name, err)
	}
	if claimed := proof.Ancestry.Genesis.Network(); !pinned {
		id = claimed
	} else if claimed != id {
		return nil, false, otherNetwork(name, claimed, id)
	}
	report, err := proof.Verify(id)
	if err == nil {
		err = a.trusts.check(proof.Ancestry.Root())
	}
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", name, err)
	}
	return &report, pinned, nil
}

// read reads a file, or standard input, of at most so many bytes.
func (a *app) read(name string, most int64) ([]byte, error) {
	in := a.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	raw, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && int64(len(raw)) > most {
		err = fmt.Errorf("%s: %w: it has more than %d bytes", name, errLarge, most)
	}
	return raw, err
}

func (a *app) ballotShow() *cobra.Command {
	c := &cobra.Command{
		Use: "show FILE...", Short: "Show the ballots in files, and verify them", Args: cobra.MinimumNArgs(1),
		Long: "Shows the ballots of files, of which each may hold many. With the file of their motion\n" +
			"it verifies that the signers may vote and the signatures are theirs, and prints what they\n" +
			"would amount to. The exit code is 7 if one is invalid, or is on another motion and so\n" +
			"could not be verified.",
		Example: "  aweigh ballot show m.ballot\n  aweigh ballot show *.ballot --motion m.motion --network 3f1a…",
	}
	motion := c.Flags().String("motion", "", "file of the motion that they are about")
	network := a.networkFlag(c)
	output := outputFlag(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		format, err := formatOf(*output, false)
		if err != nil {
			return err
		}
		if *network != "" && *motion == "" {
			return fmt.Errorf("%w: --network is for the file that --motion names", errUsage)
		}
		var r *scope.MotionReport
		pinned := false
		if *motion != "" {
			if r, pinned, err = a.motionFile(*motion, *network); err != nil {
				return err
			}
		}
		s := showing{Printer: show.Printer{Out: a.out, Format: format}}
		if r != nil {
			if err := s.about(r); err != nil {
				return err
			}
		}
		var broken error
		for _, name := range args {
			raw, err := a.read(name, votes.DefaultBallotFileLimits.Bytes)
			if err != nil {
				return err
			}
			if err := s.file(name, raw); err != nil {
				broken = errors.Join(broken, fmt.Errorf("%s: %w", name, err))
			}
		}
		if len(s.all) == 0 && broken != nil {
			return broken
		}
		if err := s.write(); err != nil {
			return err
		}
		if r != nil && format == show.Table {
			fmt.Fprintln(a.out, compared(r, pinned))
		}
		return errors.Join(broken, s.refused, s.others())
	}
	return c
}

// showing collects ballots to show.
type showing struct {
	show.Printer
	motion     *scope.Motion // nil: no motion to verify them with
	network    aweigh.NetworkID
	scope      aweigh.ScopeID
	keys       votes.KeySet
	electorate votes.Electorate
	all        []show.Shown
	good       []votes.CheckedMotionBallot
	refused    error // the first that does not hold
	other      int   // how many are on other motions
}

// errOtherMotion means that a ballot was not verified for want of its motion's file.
var errOtherMotion = errors.New("ballots on other motions than that of --motion are not verified; give the file of theirs")

func (s *showing) others() error {
	if s.other == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d of %d", errOtherMotion, s.other, len(s.all))
}

func (s *showing) about(r *scope.MotionReport) (err error) {
	s.motion, s.network, s.scope = &r.Motion, r.Network, r.Mutation.Scope
	if s.keys, err = r.Motion.Keys(); err == nil {
		s.electorate, err = r.Motion.Electorate()
	}
	return err
}

// file reads the ballots of one file.
func (s *showing) file(name string, raw []byte) error {
	r := votes.NewMotionBallotReader(bytes.NewReader(raw), votes.BallotFileLimits{})
	n := 0
	for {
		b, err := r.Next()
		if errors.Is(err, io.EOF) && n == 0 && len(raw) == 0 {
			return fmt.Errorf("%w: it is empty", votes.ErrMalformed)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil && n == 0 {
			return noBallot(name, raw, err)
		}
		if err != nil {
			return err
		}
		n++
		s.add(name, b)
	}
}

func (s *showing) add(file string, b votes.MotionBallot) {
	x := show.Shown{MotionBallot: b, File: file}
	switch {
	case s.motion == nil:
	case b.Motion != s.motion.ID() && b.Admissible(s.network, s.scope) == nil:
		x.Other = true
		s.other++
	default:
		x.Checked = true
		checked, err := votes.CheckMotionBallot(b, s.network, s.scope, s.keys, nil)
		if err == nil {
			s.good = append(s.good, checked)
			x.Name = s.motion.NameOf(b.Voter)
			x.Weight, _ = s.electorate.Of(b.Voter)
			break
		}
		if x.Err = errors.New(forPeople(err.Error())); s.refused == nil {
			s.refused = fmt.Errorf("%s: %w", file, err)
		}
	}
	s.all = append(s.all, x)
}

func (s *showing) write() error {
	if s.motion == nil {
		return s.Ballots(s.all, nil, nil)
	}
	t := votes.CountMotion(s.electorate, s.motion.Rule, s.good)
	return s.Ballots(s.all, s.motion, &t)
}
