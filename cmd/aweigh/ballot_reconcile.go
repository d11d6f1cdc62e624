package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/votes"
)

func (a *app) ballotReconcile() *cobra.Command {
	c := &cobra.Command{
		Use: "reconcile PEER", Short: "Bring the boxes of two nodes together by way of this machine", Args: cobra.ExactArgs(1),
		Long: "Gives the node that answers the ballots that the node at the address PEER has, and the\n" +
			"other way. Nodes that reach each other do this by themselves; this is for those that\n" +
			"do not, where this machine reaches both. --dry-run only prints what would move.",
		Example: "  aweigh ballot reconcile 10.0.0.7:7177 --dry-run",
	}
	dry := c.Flags().Bool("dry-run", false, "print what would move, and move nothing")
	return a.askingIn(c, func(ctx context.Context, s *session, args []string) error {
		peer, err := client.DialAs(s.reach, args[0])
		if err != nil {
			return err
		}
		defer peer.Close()
		other := &session{Client: peer, Printer: s.Printer, timeout: s.timeout}
		if err := sameNetwork(ctx, s, other, args[0]); err != nil {
			return err
		}
		here, err := inventory(ctx, s)
		if err != nil {
			return err
		}
		there, err := inventory(ctx, other)
		if err != nil {
			return err
		}
		give, take := minus(here, there), minus(there, here)
		if *dry {
			return a.wouldMove(s, len(here), len(there), len(give), len(take))
		}
		var given, taken show.HandedIn
		if err := move(ctx, s, other, give, &given); err != nil {
			return err
		}
		if err := move(ctx, other, s, take, &taken); err != nil {
			return err
		}
		if err := a.moved(s, args[0], &given, &taken); err != nil {
			return err
		}
		return errors.Join(refusedBallots(&given), refusedBallots(&taken))
	})
}

// sameNetwork makes sure that two nodes are of one network: otherwise each would refuse
// whatever the other has.
func sameNetwork(ctx context.Context, s, other *session, address string) error {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	here, err := s.Client.Status(ctx)
	if err != nil {
		return err
	}
	there, err := other.Client.Status(ctx)
	if err != nil {
		return err
	}
	if a, b := here.Header.GetNetwork(), there.Header.GetNetwork(); !bytes.Equal(a, b) {
		return fmt.Errorf("%w: the node at %s is of the network %s, %x, and the one that answers of %s, %x; see aweigh status --api %s",
			errUsage, address, show.Line(there.NetworkName), b, show.Line(here.NetworkName), a, show.Word(address))
	}
	return nil
}

// moved prints what went from one node to the other, and what was refused.
func (a *app) moved(s *session, peer string, given, taken *show.HandedIn) error {
	if s.Format == show.JSON {
		return s.Printer.JSON(map[string]uint64{"given": given.Added, "taken": taken.Added, "refused_there": uint64(len(given.Refused)), "refused_here": uint64(len(taken.Refused))})
	}
	fmt.Fprintf(a.out, "%s given, %d taken\n", show.Count(given.Added, "ballot"), taken.Added)
	for _, side := range []struct {
		name string
		done *show.HandedIn
	}{{peer, given}, {"the node that answers", taken}} {
		if len(side.done.Refused)+len(side.done.Contrary) == 0 {
			continue
		}
		fmt.Fprintf(a.out, "%s refused %d, and %d contradict another of the same voter:\n", side.name, len(side.done.Refused), len(side.done.Contrary))
		if err := s.Printer.Listed(side.done); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) wouldMove(s *session, here, there, give, take int) error {
	if s.Format == show.JSON {
		return s.Printer.JSON(map[string]int{"here": here, "there": there, "would_give": give, "would_take": take})
	}
	_, err := fmt.Fprintf(a.out, "here %s, there %d: %d would go there, %d would come here\n", show.Count(here, "ballot"), there, give, take)
	return err
}

// inventory is the identities of all ballots of a node, in order.
func inventory(ctx context.Context, s *session) (ids [][]byte, err error) {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	names, err := s.Client.Inventory(ctx)
	return slices.Collect(slices.Chunk(names, 32)), err
}

// minus is the identities that are in one order and not in the other.
func minus(from, what [][]byte) (rest [][]byte) {
	for _, id := range from {
		if _, ok := slices.BinarySearchFunc(what, id, bytes.Compare); !ok {
			rest = append(rest, id)
		}
	}
	return rest
}

// wantedAtOnce bounds the ballots asked for by name in one request.
const wantedAtOnce = 2000

// move gives ballots of one node to another.
func move(ctx context.Context, from, to *session, ids [][]byte, done *show.HandedIn) error {
	for some := range slices.Chunk(ids, wantedAtOnce) {
		err := from.Client.Ballots(ctx, some, func(bundle []byte) error {
			damaged, err := to.handIn(ctx, "", votes.NewMotionBallotReader(bytes.NewReader(bundle), votes.BallotFileLimits{}), done)
			return errors.Join(damaged, err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
