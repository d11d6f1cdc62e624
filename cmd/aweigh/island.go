package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/show"
)

// errProvisional is wrapped where an island decided, and no scope.
var errProvisional = errors.New("provisional")

// provisionalFlag lets an island decide, or be read. It cannot go with other flags.
func provisionalFlag(c *cobra.Command, about string, not ...string) *bool {
	f := c.Flags().Bool("provisional", false, about)
	for _, other := range not {
		c.MarkFlagsMutuallyExclusive("provisional", other)
	}
	return f
}

// unlessProvisional refuses the nonce of a write that waits for approval alone: no island takes one.
func unlessProvisional(provisional *bool, once func() (*aweighv1.Once, error)) func() (*aweighv1.Once, error) {
	return func() (*aweighv1.Once, error) {
		o, err := once()
		if err == nil && *provisional && o.Patient {
			return nil, fmt.Errorf("%w: --provisional does not go with the --nonce of a write with --pending: that one waits for approval, "+
				"and an island asks for none; leave one of them out", errUsage)
		}
		return o, err
	}
}

const (
	decidesProvisionally = "without a quorum, have an island of anchors decide, if the policy has a partition for KEY; the exit\n" +
		"code is 13: it is no decision of the scope yet"
	readsProvisionally = "without a quorum, read what an island of anchors decided"
)

// provisional says on standard error that an island answered, and returns the error that gives the exit code of writes.
func (a *app) provisional(h *aweighv1.Header, f show.Format) error {
	i := h.GetIsland()
	if i == nil {
		return nil
	}
	if f != show.JSON {
		fmt.Fprintf(a.err, "aweigh: provisional: island %s decides, of %s (weight %d of %d); the scope takes it once it has a quorum, unless the key was changed there: see aweigh island ls\n",
			hex.EncodeToString(i.Id[:min(4, len(i.Id))]), strings.Join(i.Members, ", "), i.Weight, i.Total)
	}
	return errQuiet{errProvisional}
}

func (a *app) island() *cobra.Command {
	c := &cobra.Command{
		Use: "island", Short: "See what anchors decided without a quorum", Args: cobra.NoArgs,
		Long: "An island is anchors that reach each other, but no quorum, and decide provisionally on the\n" +
			"keys of a partition of the policy (aweigh policy show): with put, del and txn, and with get\n" +
			"and ls, --provisional. When the scope has a quorum again, it takes the changes of keys that\n" +
			"it did not change itself meanwhile, and opens motions about the others.",
		Example: "  aweigh put /ship/log \"day 3\" --provisional\n  aweigh island ls\n  aweigh island show 3f2a1b90",
	}
	ls := &cobra.Command{
		Use: "ls", Short: "List islands", Args: cobra.NoArgs,
		Long: "Lists the islands of which the node's anchor is a member, and those that the scope has on\n" +
			"record: how many of their mutations stand, and how many were set aside.",
		Example: "  aweigh island ls\n  aweigh island ls --scope /org/",
	}
	showOne := &cobra.Command{
		Use: "show ISLAND", Short: "Show an island, and what was set aside", Args: cobra.ExactArgs(1),
		Long: "Shows an island, named by the beginning of its identity in hex, and the keys whose changes\n" +
			"did not stand, with the reasons, and the motions about them (aweigh motion show MOTION).",
		Example: "  aweigh island show 3f2a1b90",
	}
	return a.under(c,
		a.askingIn(ls, func(ctx context.Context, s *session, _ []string) error {
			ctx, cancel := s.limited(ctx)
			defer cancel()
			r, err := s.Client.Islands(ctx, &aweighv1.IslandsRequest{Linearizable: true})
			if err != nil {
				return err
			}
			return s.Printer.Islands(r)
		}),
		a.askingIn(showOne, func(ctx context.Context, s *session, args []string) error {
			ctx, cancel := s.limited(ctx)
			defer cancel()
			r, err := s.Client.Islands(ctx, &aweighv1.IslandsRequest{Id: args[0], Linearizable: true})
			switch {
			case err != nil:
				return err
			case len(r.Islands) == 0:
				return fmt.Errorf("%w: no island begins with %q; see aweigh island ls", errAbsent, args[0])
			case len(r.Islands) > 1:
				return fmt.Errorf("%w: several islands begin with %q", errUsage, args[0])
			}
			return s.Printer.Island(r.Header, r.Islands[0])
		}),
	)
}
