package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/box"
)

func (a *app) ballotImport() *cobra.Command {
	c := &cobra.Command{
		Use: "import FILE...", Short: "Hand in ballots that were signed elsewhere", Args: cobra.MinimumNArgs(1),
		Long: "Gives the ballots of files to the node that answers, anchor or not, which keeps them and\n" +
			"passes them on. A file holds one ballot or many; - reads standard input. To do so\n" +
			"again changes nothing. Of a ballot that contradicts another of the same voter, the voter,\n" +
			"the motion and both votes are named.\n\n" +
			"The exit code is 7 if a file or a ballot is invalid (damaged, forged, of another\n" +
			"network, or of a key that may not vote), and 4 if ballots were refused for another\n" +
			"reason; valid ballots are handed in all the same.",
		Example: "  aweigh ballot import alice.ballot bob.ballot\n  cat *.ballot | aweigh ballot import -",
	}
	return a.askingIn(c, func(ctx context.Context, s *session, args []string) error {
		var done show.HandedIn
		var damaged error
		for _, name := range args {
			bad, err := a.handInFile(ctx, s, name, &done)
			if bad != nil {
				damaged = errors.Join(damaged, fmt.Errorf("%s: %w", name, bad)) // the others may be whole
			}
			if err != nil {
				return errors.Join(damaged, err)
			}
		}
		if done.Empty() && damaged != nil {
			return damaged
		}
		if err := s.Printer.HandedIn(&done); err != nil {
			return err
		}
		return errors.Join(damaged, refusedBallots(&done))
	})
}

var (
	// errRefused is wrapped when ballots were refused that hold elsewhere, or at
	// another time.
	errRefused = errors.New("ballots were refused")
	// errEmpty is wrapped where a file of ballots holds none.
	errEmpty = fmt.Errorf("%w: it holds no ballot", votes.ErrMalformed)
	// errUnsound is wrapped when ballots were refused that hold nowhere.
	errUnsound = errors.New("ballots that do not hold were refused")
)

// refusedBallots is the error of those that were refused, which were listed.
func refusedBallots(r *show.HandedIn) error {
	unsound := 0
	for _, x := range r.Refused {
		if x.Unsound {
			unsound++
		}
	}
	switch n := len(r.Refused); {
	case unsound > 0:
		return fmt.Errorf("%w: %d of %d refused ones", errUnsound, unsound, n)
	case n > 0:
		return fmt.Errorf("%w: %d", errRefused, n)
	}
	return nil
}

// handInFile hands in the ballots of a file. Errors in the file are kept apart from
// the node's.
func (a *app) handInFile(ctx context.Context, s *session, name string, done *show.HandedIn) (damaged, err error) {
	in := a.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return err, nil
		}
		defer f.Close()
		in = f
	}
	bytes := bufio.NewReader(in)
	if _, err := bytes.Peek(1); err == io.EOF {
		return errEmpty, nil
	}
	before := *done
	damaged, err = s.handIn(ctx, name, box.ReadFile(filepath.Base(name), bytes, votes.BallotFileLimits{}), done)
	if damaged == nil || name == "-" || done.Count() > before.Count() {
		return damaged, err
	}
	raw, readErr := a.read(name, scope.MaxProofBytes)
	if readErr != nil {
		return damaged, err
	}
	return noBallot(name, raw, damaged), err
}

// noBallot is the error of a file in which not even one ballot can be read.
func noBallot(name string, raw []byte, err error) error {
	if other := kindOf(name, raw); other != "" {
		return fmt.Errorf("%w: this is no ballot: %s", votes.ErrMalformed, other)
	}
	return fmt.Errorf("this is no ballot, or it is damaged or cut off: %w", err)
}

// handInAtOnce bounds the bytes of ballots in one request.
const handInAtOnce = 512 << 10

// handIn gives all ballots of a file to the node, some at a time. An error in the
// file, whose ballots before it are handed in, is kept apart from the node's.
func (s *session) handIn(ctx context.Context, file string, from interface {
	Next() (votes.MotionBallot, error)
}, done *show.HandedIn) (damaged, err error) {
	var bundle []byte
	before, n := uint64(0), uint64(0)
	flush := func() error {
		if len(bundle) == 0 {
			return nil
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		r, err := s.Client.HandIn(ctx, bundle)
		if err != nil {
			return err
		}
		for _, x := range r.Refused {
			x.Ballot, x.Why = x.Ballot+before, forPeople(x.Why)
		}
		for _, x := range r.Contrary {
			x.Ballot += before
		}
		done.Add(file, r)
		bundle, before = nil, n
		return nil
	}
	for {
		b, err := from.Next()
		if err == io.EOF {
			return nil, flush()
		}
		if err != nil {
			return err, flush()
		}
		bundle = votes.AppendMotionBallots(bundle, b)
		if n++; len(bundle) >= handInAtOnce {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
}
