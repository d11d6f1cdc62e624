package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/scope"
)

// decideAbove proposes or approves a decision about a scope below another, and tells what became of it; await
// waits for that once all here have approved.
func (a *app) decideAbove(ctx context.Context, s *session, above *aweighv1.Scope, d scope.Decision, once func() (*aweighv1.Once, error), here bool, await func(context.Context) error) error {
	in := *s
	in.Client = s.Client.In(inScope(above))
	if here {
		if err := in.signsHere(ctx, d); err != nil {
			return err
		}
		if err := a.approveHere(ctx, s, inScope(above), d, once); err != nil {
			return err
		}
		return await(ctx)
	}
	limited, cancel := s.limited(ctx)
	defer cancel()
	r, err := in.Client.Trust(limited)
	if err != nil {
		return err
	}
	flag := ""
	if len(above.Prefix) > 0 {
		flag = " --scope " + shellWord(inScope(above))
	}
	return in.govern(limited, r, d, once, "next: at other anchors:   aweigh scope approve "+d.ID().Short()+flag+
		"\n   or, against it, there: aweigh ballot reject "+d.ID().Short()+flag)
}

// signsHere shows what all anchors that answer are to sign.
func (s *session) signsHere(ctx context.Context, d scope.Decision) error {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	r, err := s.Client.Trust(ctx)
	if err == nil {
		_, err = s.signs(ctx, r, d, true)
	}
	return err
}

// hereFlag adds the wish to have all anchors on this machine approve.
func hereFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("here", false, "let all anchors on this machine approve; with --api, those at its addresses")
}

// approveHere has all anchors that answer approve.
func (a *app) approveHere(ctx context.Context, s *session, in string, d scope.Decision, once func() (*aweighv1.Once, error)) (err error) {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	approved, enough := 0, ""
	var failed []error
	addresses := slices.Clone(s.Client.Addresses())
	slices.Sort(addresses)
	for _, address := range slices.Compact(addresses) {
		c, err := client.Dial(address)
		if err != nil {
			return err
		}
		o, err := once()
		var g *aweighv1.GovernResponse
		if err == nil {
			g, err = c.In(in).Govern(ctx, d, o)
		}
		if err = errors.Join(err, c.Close()); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", address, err))
		} else {
			approved++
		}
		if err := fate(g); err != nil {
			return fmt.Errorf("%w: %s", errNotCarried, show.Missing(g.Proposal, nil))
		}
		if p := g.GetProposal(); p.GetCarried() > 0 || err == nil && p.GetWeight() >= p.GetNeeded() {
			enough = ", which is enough"
			break // what comes after is another proposal
		}
	}
	if approved == 0 {
		return errors.Join(failed...)
	}
	fmt.Fprintf(a.err, "approved by %s on this machine%s\n", show.Count(approved, "anchor"), enough)
	return nil
}

// awaitScope waits until a scope has decided something; a node that does not hold it knows no more than
// that it was founded.
func (s *session) awaitScope(ctx context.Context, prefix []byte) error {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	for {
		all, err := s.Client.Scopes(ctx)
		if err != nil {
			return err
		}
		for _, x := range all {
			if bytes.Equal(x.Prefix, prefix) && (x.Height > 0 || !x.Held) {
				return s.Printer.Scope(x, parentOf(all, x))
			}
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the scope has decided nothing yet: %w; \"aweigh anchor ls\" shows what its approval still takes, \"aweigh scope ls\" whether its anchors are there", ctx.Err())
		}
	}
}
