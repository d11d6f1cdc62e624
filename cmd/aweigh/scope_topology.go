package main

import (
	"context"

	"github.com/spf13/cobra"
)

func (a *app) scopeTopology() *cobra.Command {
	c := &cobra.Command{
		Use: "topology", Short: "Show where changes go, and which prefix is to become a scope of its own", Args: cobra.NoArgs,
		Long: "Shows which prefixes of a scope change most in the present epoch, by the blocks, and which of\n" +
			"them would become a scope of its own: one that takes many changes a second, for some epochs in\n" +
			"a row, so that the others no longer wait for it. It also tells why that does not happen yet, or\n" +
			"at all. What the hand-over itself would refuse, such as names of one object that would be parted,\n" +
			"\"aweigh scope create PREFIX --dry-run\" tells.\n\n" +
			"By default a scope advises alone. With \"aweigh policy set --split act\" it does it by itself, at\n" +
			"the end of an epoch: the new scope has the same policy, anchors and trust, and its prefix is\n" +
			"visible to all users of the network. The rate is the mean of an epoch. With off it counts\n" +
			"nothing. Reads are on no block, and do not count. \"aweigh scope ls\" shows the scopes.",
		Example: "  aweigh scope topology\n  aweigh scope topology --scope /tenants/ -o json\n" +
			"  aweigh policy set --split act,rate=500,epochs=3",
	}
	return a.askingIn(c, func(ctx context.Context, s *session, _ []string) error {
		ctx, cancel := s.limited(ctx)
		defer cancel()
		r, err := s.Client.Topology(ctx)
		if err != nil {
			return err
		}
		return s.Printer.Topology(r)
	})
}
