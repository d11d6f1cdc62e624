package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/home"
	"github.com/aweigh/aweigh/internal/replay"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store/diskstore"
)

func (a *app) trustVerify() *cobra.Command {
	c := &cobra.Command{
		Use: "verify", Short: "Verify the newest roster from the network's identity", Args: cobra.NoArgs,
		Long: "Asks a node for the handovers from the genesis to its newest roster, and verifies them here:\n" +
			"one certificate for each epoch, each by the roster before. The node and its store need not be\n" +
			"trusted, but it can keep newer epochs back, and the keys of a quorum of anchors that\n" +
			"left are enough to sign another history from then on. So give the network's identity and a recent\n" +
			"roster from sources that you trust: at a node of yours, this prints the value for --trusted.",
		Example: "  aweigh trust verify --network 3f1a…\n  aweigh trust verify --network 3f1a… --trusted 12:9c56…",
	}
	network := c.Flags().String("network", "", "identity of the network (default: that of the one that runs here)")
	a.trustingFlags(c)
	return a.askingIn(c, func(ctx context.Context, s *session, _ []string) error {
		if !c.Flags().Changed("network") {
			*network = s.network
		}
		var id aweigh.NetworkID
		if *network != "" {
			var err error
			if id, err = networkOf(*network); err != nil {
				return err
			}
		}
		limited, cancel := s.limited(ctx)
		defer cancel()
		if s.in != "" {
			return a.verifyBelow(limited, s, *network)
		}
		g, err := s.Client.Genesis(limited)
		if err != nil {
			return err
		}
		if g.Descent != nil {
			return fmt.Errorf("%w: the node returned another scope, %s", scope.ErrProof, g.Hash())
		}
		if *network != "" && g.Hash() != id {
			return fmt.Errorf("%w: the node's genesis is that of network %s", scope.ErrProof, g.Hash())
		}
		first, err := g.Epoch()
		if err != nil {
			return err
		}
		trusted, pinned, err := a.trusts.pin()
		if err == nil && !pinned {
			err = a.trusts.young(g)
		}
		if err == nil && pinned {
			err = trusted.Is(first)
		}
		if err != nil {
			return err
		}
		began, told, count := time.Now(), time.Now(), 0
		var other error
		newest, err := s.Client.FollowEpochs(ctx, first, func(_ scope.Handover, e *scope.Epoch) {
			count++
			if pinned && other == nil {
				other = trusted.Is(e)
			}
			if time.Since(told) > time.Second {
				told = time.Now()
				fmt.Fprintf(a.err, "verified epoch %d\n", e.Number)
			}
		})
		if err == nil {
			err = other
		}
		if err == nil && pinned && newest.Number < trusted.Epoch {
			err = fmt.Errorf("%w: the node's newest epoch is %d, and the trusted roster is of epoch %d: it keeps newer ones back, or is behind", scope.ErrProof, newest.Number, trusted.Epoch)
		}
		if err != nil {
			return err
		}
		return s.Printer.Roster(g, newest, count, time.Since(began), *network != "", a.trusts.roster)
	})
}

// verifyBelow verifies the roster of a scope below the root, from the network's identity.
func (a *app) verifyBelow(ctx context.Context, s *session, network string) error {
	id, err := s.networkOf(ctx, network)
	if err != nil {
		return err
	}
	began := time.Now()
	head, err := s.head(ctx, id, 0, false)
	if err == nil {
		err = a.trusts.check(head.Ancestry.Root())
	}
	if err != nil {
		return err
	}
	return s.Printer.Roster(head.Genesis, head.Epoch, head.Handovers, time.Since(began), network != "", a.trusts.roster)
}

func (a *app) trustReplay() *cobra.Command {
	c := &cobra.Command{
		Use: "replay", Short: "Compute all rosters again from the blocks alone", Args: cobra.NoArgs,
		Long: "Executes every block of the root scope in a data directory again, from the genesis on, in\n" +
			"a store of its own, and compares: every certificate that ended an epoch, every next\n" +
			"roster, every change of trust, the ledger and the state. It needs no network and trusts\n" +
			"nothing but the genesis. The node must not run; of one that does, replay a backup.\n\n" +
			"It ends with code 7 if anything differs.",
		Example: "  aweigh backup --data-dir /var/lib/aweigh ./copy && aweigh trust replay --data-dir ./copy",
	}
	dir := c.Flags().String("data-dir", stateDir("node"), "the node's directory, or a backup")
	network := c.Flags().String("network", "", "identity that the network must have, 64 hexadecimal digits")
	temp := c.Flags().String("temp-dir", "", "where to compute, which takes as much room as the state (default: the system's)")
	output := outputFlag(c)
	c.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		format, err := formatOf(*output, false)
		if err != nil {
			return err
		}
		d := home.Dir(*dir)
		if *network != "" {
			id, err := networkOf(*network)
			if err != nil {
				return err
			}
			g, err := d.ReadGenesis()
			if err != nil {
				return err
			}
			if g.Hash() != id {
				return fmt.Errorf("%w: the directory holds network %s", replay.ErrMismatch, g.Hash())
			}
		}
		if _, err := os.Stat(d.Store()); err != nil {
			return fmt.Errorf("no node, and no backup of one, in %s: %w", d, err)
		}
		from, err := diskstore.Open(d.Store(), diskstore.Options{ReadOnly: true})
		if errors.Is(err, diskstore.ErrLocked) {
			return fmt.Errorf("%w: stop the node, or replay a backup of it (\"aweigh backup\")", err)
		}
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, from.Close()) }()
		work, err := os.MkdirTemp(*temp, "aweigh-replay-")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
		into, err := diskstore.Open(work, diskstore.Options{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, into.Close()) }()
		began, told := time.Now(), time.Now()
		report, err := replay.Run(from, into, func(done, all aweigh.Height) error {
			if time.Since(told) > time.Second {
				told = time.Now()
				fmt.Fprintf(a.err, "block %d of %d\n", done, all)
			}
			return cmd.Context().Err()
		})
		if err != nil {
			return err
		}
		return show.Printer{Out: a.out, Format: format}.Replay(report, time.Since(began))
	}
	return c
}
