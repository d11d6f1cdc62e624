package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/internal/ballotdir"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/box"
)

func (a *app) ballotSync() *cobra.Command {
	c := &cobra.Command{
		Use: "sync --via DIR", Short: "Exchange ballots with other nodes through a directory", Args: cobra.NoArgs,
		Long: "Hands in the ballots of a directory's files (a stick, a shared drive, a mounted bucket),\n" +
			"and writes there the ballots that only the node has. Run it on each side, in any\n" +
			"order, as often as you like: it adds, and removes nothing. Files whose names end in\n" +
			".ballot are read, and no others. The exit code is that of \"aweigh ballot import\".",
		Example: "  aweigh ballot sync --via /media/stick",
	}
	via := c.Flags().String("via", "", "the directory")
	return a.askingIn(c, func(ctx context.Context, s *session, _ []string) error {
		if *via == "" {
			return fmt.Errorf("%w: --via names the directory", errUsage)
		}
		if _, err := os.Stat(*via); err != nil { // it is not mounted, perhaps
			return err
		}
		var taken show.HandedIn
		there := make(map[string]bool)
		damaged, err := s.takeFiles(ctx, *via, there, &taken)
		if err != nil {
			return errors.Join(damaged, err)
		}
		given, err := s.writeMissing(ctx, *via, there)
		if err != nil {
			return errors.Join(damaged, err)
		}
		if err := a.synced(s, *via, &taken, given); err != nil {
			return errors.Join(damaged, err)
		}
		return errors.Join(damaged, refusedBallots(&taken))
	})
}

// synced prints what was taken from a directory, and what was written there.
func (a *app) synced(s *session, dir string, taken *show.HandedIn, given int) error {
	if s.Format == show.JSON {
		return s.Printer.JSON(map[string]uint64{"taken": taken.Added, "known": taken.Repeated, "late": taken.Late, "equivocated": taken.Equivocated, "refused": uint64(len(taken.Refused)), "written": uint64(given)})
	}
	if err := s.Printer.HandedIn(taken); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.out, "%d written to %s\n", given, dir)
	return err
}

// takeFiles hands in the ballots of all files, and notes which they are. Errors in
// some of the files are kept apart from the node's.
func (s *session) takeFiles(ctx context.Context, dir string, there map[string]bool, done *show.HandedIn) (damaged, err error) {
	names, err := ballotdir.Files(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		bad, err := s.takeFile(ctx, dir, name, there, done)
		if bad != nil {
			damaged = errors.Join(damaged, fmt.Errorf("%s: %w", filepath.Join(dir, name), bad)) // the others may be whole
		}
		if err != nil {
			return damaged, err
		}
	}
	return damaged, nil
}

// takeFile hands in the ballots of one file, and notes which they are.
func (s *session) takeFile(ctx context.Context, dir, name string, there map[string]bool, done *show.HandedIn) (damaged, err error) {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return err, nil
	}
	defer f.Close()
	return s.handIn(ctx, name, &noting{FileReader: box.ReadFile(name, f, votes.BallotFileLimits{}), there: there}, done)
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
		limited, cancel := s.limited(ctx)
		err := s.Client.Ballots(limited, some, func(b []byte) error {
			bundle = append(bundle, b...)
			return nil
		})
		cancel()
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
