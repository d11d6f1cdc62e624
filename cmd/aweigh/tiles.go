package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/tiles"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

func (a *app) tiles() *cobra.Command {
	c := &cobra.Command{
		Use: "tiles DIR", Short: "Keep the history of a scope as files for monitors and witnesses", Args: cobra.ExactArgs(1),
		Long: "Writes the history of a scope into a directory that any web server can serve, in the form\n" +
			"that monitors of transparency logs read (C2SP: tlog-tiles): the hashes in tiles, the\n" +
			"entries in bundles, and a checkpoint that the anchors signed. Run again, it adds what is\n" +
			"new. Everything is verified before it is shown: the entries by the root that the\n" +
			"checkpoint names, and the checkpoint from the network's identity.\n\n" +
			"An entry is the canonical CBOR of a change: the key, the author and for whom it acted,\n" +
			"the object, hashes of values; values never. Who reads the directory reads them all.\n\n" +
			"With --every it goes on until interrupted. The exit code is 6 if so few anchors signed\n" +
			"that all of them might lie.",
		Example: "  aweigh tiles ./history\n  aweigh tiles ./history --every 1m\n  aweigh tiles ./secrets --scope /registry/secrets/",
	}
	every := c.Flags().Duration("every", 0, "add what is new so often, until interrupted")
	network := c.Flags().String("network", "", "identity of the network (default: that of the node that runs here, or else the node's statement)")
	a.trustingFlags(c)
	return a.askingIn(c, func(ctx context.Context, s *session, args []string) error {
		if *every < 0 {
			return fmt.Errorf("%w: --every is a duration, such as 1m", errUsage)
		}
		if !c.Flags().Changed("network") {
			*network = s.network
		}
		id, err := s.networkOf(ctx, *network)
		if err != nil {
			return err
		}
		for {
			err := a.tile(ctx, s, id, args[0])
			if *every == 0 || ctx.Err() != nil {
				return err
			}
			if err != nil && !errors.Is(err, client.ErrUnreachable) && !errors.Is(err, errFew) && !errors.Is(err, tiles.ErrBusy) {
				return err
			}
			if err != nil {
				fmt.Fprintf(a.err, "aweigh: %s; it goes on in %s\n", message(err), *every)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(*every):
			}
		}
	})
}

// tile brings a directory up to the head of the history of the scope that --scope names.
func (a *app) tile(ctx context.Context, s *session, network aweigh.NetworkID, dir string) (err error) {
	head, err := a.tileHead(ctx, s, network)
	if err != nil {
		return err
	}
	d, err := tiles.Open(dir, head.Origin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	had := d.Size()
	if had > head.Head.Size {
		return fmt.Errorf("%w: %s has %d entries, and the node's history has %d", scope.ErrProof, dir, had, head.Head.Size)
	}
	if had < head.Head.Size {
		if err := added(ctx, s, d, head.Head.Size); err != nil {
			return err
		}
	}
	if err := d.Seal(head.Head, votes.Note(head.Text(), head.Cosigned)); err != nil {
		return err
	}
	return s.tiled(dir, had, head)
}

func (a *app) tileHead(ctx context.Context, s *session, network aweigh.NetworkID) (*client.Checkpoint, error) {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	defer s.waitsFor("a final block and the anchors' signatures, which take a quorum")()
	head, err := s.head(ctx, network, 0, true)
	if err == nil {
		err = a.trusts.check(head.Ancestry.Root())
	}
	return head, err
}

// errTiled ends the reading of entries.
var errTiled = errors.New("all are there")

// added adds entries until there are so many.
func added(ctx context.Context, s *session, d *tiles.Dir, to int64) error {
	err := s.Client.Tail(ctx, &aweighv1.TailRequest{SinceIndex: d.Size()}, func(p *aweighv1.TailResponse) error {
		for _, x := range p.Items {
			switch {
			case d.Size() == to:
				return errTiled
			case len(x.Entry) == 0 && x.To == d.Size(): // what is there already
				continue
			case len(x.Entry) == 0:
				return fmt.Errorf("%w: the node does not show entry %d; a caller that may read the whole scope sees it", scope.ErrDenied, d.Size())
			case x.Index != d.Size():
				return fmt.Errorf("%w: the node returned entry %d, and %d is next", scope.ErrProof, x.Index, d.Size())
			}
			if err := d.Add(x.Entry); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, errTiled) || err == nil && d.Size() == to {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%w: the node returned %d entries of %d", scope.ErrProof, d.Size(), to)
	}
	return err
}

// tiled prints what a directory has now.
func (s *session) tiled(dir string, had int64, c *client.Checkpoint) error {
	if err := s.Printer.Tiles(dir, had, c); err != nil {
		return err
	}
	return fewSigned(c)
}
