package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/show"
)

func (a *app) resolveCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "resolve NAME", Short: "Show which scopes lead to a name, and what it names", Args: cobra.ExactArgs(1),
		Long: "Follows a name from the root scope to the one that decides about it, and shows what it\n" +
			"names there. Where it names nothing, the last scope is shown, and what of the name it\n" +
			"left over. It takes the word of the node that answers; \"aweigh why\" verifies.\n\n" + keyHelp,
		Example: "  aweigh resolve org@wikipedia.en/articles/42\n  aweigh resolve /registry/secrets/default/token -o json",
	}
	raw := c.Flags().Bool("raw", false, "take NAME as it is")
	serializable := c.Flags().Bool("serializable", false, "let the node answer alone, maybe with something old")
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		name, err := nameOf(args[0], *raw, reads)
		if err != nil {
			return err
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		all, err := s.Client.Scopes(ctx)
		if err != nil {
			return err
		}
		way := wayTo(all, name.Key())
		r, err := s.Client.Resolve(ctx, &aweighv1.ResolveRequest{Key: name.Key(), Version: int64(name.Version()), Serializable: *serializable})
		if err != nil && !errors.Is(err, client.ErrNotFound) {
			return err
		}
		if shown := s.Printer.Way(name.Key(), way, r); shown != nil {
			return shown
		}
		if err == nil && !r.Claims {
			return fmt.Errorf("%w: %s of %s", errUnclaimed, show.Key(r.Key), r.Uid)
		}
		return err
	})
}

// wayTo is the scopes that lead to a key, the root's first.
func wayTo(all []*aweighv1.Scope, key []byte) (way []*aweighv1.Scope) {
	for _, x := range inOrder(all) { // a longer prefix of one key stands behind a shorter one
		if bytes.HasPrefix(key, x.Prefix) {
			way = append(way, x)
		}
	}
	return way
}
