package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/ballotdir"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/box"
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
	comment := c.Flags().String("comment", "", "words for everyone to read, up to 1024 bytes")
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		id, err := motionID(args[0])
		if err != nil {
			return err
		}
		if len(*comment) > votes.MaxComment {
			return fmt.Errorf("%w: a comment has at most %d bytes, not %d", errUsage, votes.MaxComment, len(*comment))
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		r, err := s.Client.Vote(ctx, id, word, *comment)
		if err != nil {
			return err
		}
		if s.Format == show.JSON {
			return s.Printer.Motion(&aweighv1.MotionResponse{Header: r.Header, Motion: r.Motion})
		}
		switch {
		case r.Late:
			fmt.Fprintf(a.out, "the motion is closed: %s; the ballot will be recorded as late, and changes nothing\n", show.Line(r.Motion.Fate))
		case r.Outcome == "repeated":
			fmt.Fprintln(a.out, "said already")
		default:
			fmt.Fprintln(a.out, "OK  the ballot is kept, and counts once a block has recorded it")
		}
		_, err = fmt.Fprintln(a.out, show.Progress(r.Motion))
		return err
	})
}

func (a *app) ballotImport() *cobra.Command {
	c := &cobra.Command{
		Use: "import FILE...", Short: "Hand in ballots that were signed elsewhere", Args: cobra.MinimumNArgs(1),
		Long: "Gives the ballots of files to the node that answers, anchor or not, which keeps them and\n" +
			"passes them on. A file holds one ballot or many; - reads standard input. To do so\n" +
			"again changes nothing. The exit code is 4 if ballots were refused.",
		Example: "  aweigh ballot import alice.ballot bob.ballot\n  cat *.ballot | aweigh ballot import -",
	}
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		var done aweighv1.HandInResponse
		for _, name := range args {
			if err := a.handInFile(ctx, s, name, &done); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		if err := s.Printer.HandedIn(&done); err != nil {
			return err
		}
		return refusedBallots(&done)
	})
}

// errRefused is wrapped when ballots were refused.
var errRefused = errors.New("ballots were refused")

func refusedBallots(r *aweighv1.HandInResponse) error {
	if n := len(r.Refused); n > 0 {
		return errQuiet{fmt.Errorf("%w: %d", errRefused, n)}
	}
	return nil
}

func (a *app) handInFile(ctx context.Context, s *session, name string, done *aweighv1.HandInResponse) error {
	in := a.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	return s.handIn(ctx, box.ReadFile(filepath.Base(name), in, votes.BundleLimits{}), done)
}

// handInAtOnce bounds the bytes of ballots in one request.
const handInAtOnce = 512 << 10

// handIn gives all ballots of a file to the node, some at a time.
func (s *session) handIn(ctx context.Context, from interface {
	Next() (votes.MotionBallot, error)
}, done *aweighv1.HandInResponse) error {
	var bundle []byte
	before := uint64(0)
	n := uint64(0)
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
		done.Added += r.Added
		done.Repeated += r.Repeated
		done.Equivocated += r.Equivocated
		done.Late += r.Late
		for _, x := range r.Refused {
			x.Ballot += before
			done.Refused = append(done.Refused, x)
		}
		bundle, before = nil, n
		return nil
	}
	for {
		b, err := from.Next()
		if err == io.EOF {
			return flush()
		}
		if err != nil {
			return errors.Join(flush(), err)
		}
		if bundle = votes.AppendMotionBallots(bundle, b); len(bundle) >= handInAtOnce {
			n++
			if err := flush(); err != nil {
				return err
			}
			continue
		}
		n++
	}
}

func (a *app) ballotReconcile() *cobra.Command {
	c := &cobra.Command{
		Use: "reconcile PEER", Short: "Bring the boxes of two nodes together by way of this machine", Args: cobra.ExactArgs(1),
		Long: "Gives the node that answers the ballots that the node at the address PEER has, and the\n" +
			"other way. Nodes that reach each other do this by themselves; this is for those that\n" +
			"do not, where this machine reaches both. --dry-run only tells what would move.",
		Example: "  aweigh ballot reconcile 10.0.0.7:7400 --dry-run",
	}
	dry := c.Flags().Bool("dry-run", false, "tell what would move, and move nothing")
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		peer, err := client.Dial(args[0])
		if err != nil {
			return err
		}
		defer peer.Close()
		other := &session{Client: peer, Printer: s.Printer, timeout: s.timeout}
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
		var given, taken aweighv1.HandInResponse
		if err := move(ctx, s, other, give, &given); err != nil {
			return err
		}
		if err := move(ctx, other, s, take, &taken); err != nil {
			return err
		}
		if s.Format == show.JSON {
			return s.Printer.JSON(map[string]uint64{"given": given.Added, "taken": taken.Added, "refused_there": uint64(len(given.Refused)), "refused_here": uint64(len(taken.Refused))})
		}
		fmt.Fprintf(a.out, "%d ballots given, %d taken\n", given.Added, taken.Added)
		for _, r := range []*aweighv1.HandInResponse{&given, &taken} {
			if len(r.Refused) > 0 {
				if err := s.Printer.HandedIn(r); err != nil {
					return err
				}
			}
		}
		return errors.Join(refusedBallots(&given), refusedBallots(&taken))
	})
}

func (a *app) wouldMove(s *session, here, there, give, take int) error {
	if s.Format == show.JSON {
		return s.Printer.JSON(map[string]int{"here": here, "there": there, "would_give": give, "would_take": take})
	}
	_, err := fmt.Fprintf(a.out, "here %d ballots, there %d: %d would go there, %d would come here\n", here, there, give, take)
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
func move(ctx context.Context, from, to *session, ids [][]byte, done *aweighv1.HandInResponse) error {
	for some := range slices.Chunk(ids, wantedAtOnce) {
		err := from.Client.Ballots(ctx, some, func(bundle []byte) error {
			return to.handIn(ctx, votes.NewMotionBallotReader(bytes.NewReader(bundle), votes.BundleLimits{}), done)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *app) ballotSync() *cobra.Command {
	c := &cobra.Command{
		Use: "sync --via DIR", Short: "Exchange ballots with other nodes through a directory", Args: cobra.NoArgs,
		Long: "Hands in what files in a directory hold (a stick, a shared drive, a mounted bucket), and\n" +
			"writes there what the node has and the files have not. Run it on each side, in any\n" +
			"order, as often as you like: it adds, and takes nothing away.",
		Example: "  aweigh ballot sync --via /media/stick",
	}
	via := c.Flags().String("via", "", "the directory")
	return a.asking(c, func(ctx context.Context, s *session, _ []string) error {
		if *via == "" {
			return fmt.Errorf("%w: --via names the directory", errUsage)
		}
		if _, err := os.Stat(*via); err != nil { // it is not mounted, perhaps
			return err
		}
		var taken aweighv1.HandInResponse
		there := make(map[string]bool)
		var damaged error
		names, err := ballotdir.Files(*via)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := s.takeFile(ctx, *via, name, there, &taken); err != nil {
				damaged = errors.Join(damaged, err) // the others may be whole
			}
		}
		given, err := s.writeMissing(ctx, *via, there)
		if err != nil {
			return err
		}
		if s.Format == show.JSON {
			return s.Printer.JSON(map[string]uint64{"taken": taken.Added, "known": taken.Repeated, "late": taken.Late, "refused": uint64(len(taken.Refused)), "written": uint64(given)})
		}
		if err := s.Printer.HandedIn(&taken); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "%d written to %s\n", given, *via)
		return errors.Join(damaged, refusedBallots(&taken))
	})
}

// takeFile hands in the ballots of one file, and notes which they are.
func (s *session) takeFile(ctx context.Context, dir, name string, there map[string]bool, done *aweighv1.HandInResponse) error {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	defer f.Close()
	r := &noting{FileReader: box.ReadFile(name, f, votes.BundleLimits{}), there: there}
	if err := s.handIn(ctx, r, done); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// noting notes the identities of the ballots that it reads.
type noting struct {
	*box.FileReader
	there map[string]bool
}

func (n *noting) Next() (votes.MotionBallot, error) {
	b, err := n.FileReader.Next()
	if err == nil {
		id := b.ID()
		n.there[string(id[:])] = true
	}
	return b, err
}

// writeMissing writes the ballots of the node that no file has.
func (s *session) writeMissing(ctx context.Context, dir string, there map[string]bool) (n int, err error) {
	all, err := inventory(ctx, s)
	if err != nil {
		return 0, err
	}
	missing := slices.DeleteFunc(all, func(id []byte) bool { return there[string(id)] })
	for some := range slices.Chunk(missing, wantedAtOnce) {
		var bundle []byte
		err := s.Client.Ballots(ctx, some, func(b []byte) error {
			bundle = append(bundle, b...)
			return nil
		})
		if err != nil {
			return n, err
		}
		if len(bundle) == 0 {
			continue
		}
		if err := ballotdir.Write(dir, box.FileOf(bundle)); err != nil {
			return n, err
		}
		n += len(some)
	}
	return n, nil
}
