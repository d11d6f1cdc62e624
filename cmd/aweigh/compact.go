package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

func (a *app) compact() *cobra.Command {
	c := &cobra.Command{
		Use: "compact REVISION", Short: "Drop the content of old revisions", Args: cobra.ExactArgs(1),
		Long: "Drops content that a newer one had replaced before REVISION, in the scope that --scope\n" +
			"names; without it, in all scopes that the node holds, whose revisions go by one\n" +
			"clock. Nodes with --prune then drop the blocks that brought it, but for the newest.\n" +
			"Lineage is never dropped. The exit code is 3 if they are compacted so far already.",
		Example: "  aweigh compact 1000",
	}
	once := onceFlags(c)
	defer func() {
		c.Flags().Lookup("scope").Usage = "compact this scope alone: its prefix, or how its ID begins (default: all that the node holds)"
	}()
	return a.askingIn(c, func(ctx context.Context, s *session, args []string) error {
		revision, err := strconv.ParseInt(args[0], 10, 64)
		if err != nil || revision < 1 {
			return fmt.Errorf("%w: a revision is a number from 1 on, not %q", errUsage, args[0])
		}
		req := &aweighv1.CompactRequest{Revision: revision}
		if req.Once, err = once(); err != nil {
			return err
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		resp, err := s.Client.Compact(ctx, req)
		if err != nil && s.in == "" {
			return s.futureOf(ctx, []byte("/"), err)
		}
		if err != nil {
			return s.revisionsOf(ctx, s.in, err)
		}
		if err := s.Printer.Compacted(resp, req.Revision); err != nil || s.in != "" {
			return err
		}
		scopes, err := s.Client.Scopes(ctx)
		for _, x := range scopes {
			if err == nil && !x.Held {
				fmt.Fprintf(a.err, "aweigh: not in %s, which this node does not hold: ask one that does\n", scopeCalled(x.Prefix))
			}
		}
		return err
	})
}
