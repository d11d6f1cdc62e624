package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/scope"
)

func (a *app) scopeFold() *cobra.Command {
	c := &cobra.Command{
		Use: "fold PREFIX", Short: "Propose to take a scope that was delegated back", Args: cobra.ExactArgs(1),
		Long: "Proposes, with the key of the anchor that answers, that the scope of PREFIX goes back to\n" +
			"the scope above, which decides about this. After the notice with which it was founded,\n" +
			"the scope closes, and its keys go home with what names them, with their leases and\n" +
			"identities; requests for them wait meanwhile, about as long as an epoch takes to end.\n" +
			"Each key is written there once more as it is, so that its revision is a new one. What\n" +
			"is open for approval below becomes void. PREFIX can be delegated again later. The order\n" +
			"cannot be taken back.\n\n" +
			"With a notice of up to 5 seconds the command waits until the keys are home; with a longer\n" +
			"one it says from when on they go. \"aweigh scope show PREFIX\" tells how it stands.\n\n" +
			"A scope can be folded if the policy above had a children.notice when it was founded,\n" +
			"or if it split off by itself; \"aweigh scope show\" prints that. It holds at most 50,000\n" +
			"keys and 32 MiB, and has delegated nothing.",
		Example: "  aweigh scope fold /site/lab/\n" +
			"  aweigh scope fold /site/lab/ --here",
	}
	here := hereFlag(c)
	once := onceFlags(c)
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		limited, cancel := s.limited(ctx)
		defer cancel()
		_, x, above, err := s.revocable(limited, args[0])
		switch {
		case err != nil:
			return err
		case x.Folds || x.Closed:
			return fmt.Errorf("%w: it is ordered already that %s goes back to the scope above", errState, show.Key(x.Prefix))
		case x.Held && x.Delegated > 0:
			return fmt.Errorf("%w: the scope of %s has delegated %s: fold the scopes below it first; \"aweigh scope ls\" shows them",
				errState, show.Key(x.Prefix), show.Count(int64(x.Delegated), "prefix"))
		}
		if x.FailuresLeft < 0 && x.Held {
			fmt.Fprintf(a.err, "aweigh: warning: too few anchors of %s are there to decide; it goes back once they can\n", show.Key(x.Prefix))
		}
		d := scope.Folding(x.Prefix)
		return a.decideAbove(ctx, s, above, d, once, *here, func(ctx context.Context) error { return s.awaitHome(ctx, x) })
	})
}

// awaitHome waits until the scope above has ordered that a scope goes back, and if the notice is short, until the keys
// are there.
func (s *session) awaitHome(ctx context.Context, before *aweighv1.Scope) error {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	const short = 5 * time.Second
	for {
		all, err := s.Client.Scopes(ctx)
		if err != nil {
			return err
		}
		var now *aweighv1.Scope
		for _, x := range all {
			if bytes.Equal(x.Id, before.Id) {
				now = x
			}
		}
		switch {
		case now == nil && s.Printer.Format == show.JSON:
			return s.Printer.JSON(struct {
				Prefix string `json:"prefix"`
				Home   bool   `json:"home"`
			}{string(before.Prefix), true})
		case now == nil:
			_, err := fmt.Fprintf(s.told, "the keys of %s are those of the scope above again\n", show.Key(before.Prefix))
			return err
		case now.Folds && time.Duration(now.NoticeNs) > short:
			if err := s.Printer.Scope(now, parentOf(all, now)); err != nil {
				return err
			}
			at := time.Unix(0, now.YieldsNs).UTC().Format(time.RFC3339)
			_, err := fmt.Fprintf(s.told, "ordered: %s goes home from %s on\n", show.Key(before.Prefix), at)
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			if now.Folds || now.Closed {
				return fmt.Errorf("it is ordered, and the keys are not home yet: %w; \"aweigh scope show %s\" says how it stands", ctx.Err(), show.Word(string(before.Prefix)))
			}
			return fmt.Errorf("the scope above has ordered nothing yet: %w; \"aweigh anchor ls\" shows what its approval still takes", ctx.Err())
		}
	}
}
