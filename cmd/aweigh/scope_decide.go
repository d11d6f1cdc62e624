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

// decideAbove proposes or approves a decision about a scope below another, and prints the outcome; await
// waits for it once all anchors here have approved.
func (a *app) decideAbove(ctx context.Context, s *session, above *aweighv1.Scope, d scope.Decision, once func() (*aweighv1.Once, error), here bool, await func(context.Context) error) error {
	in := *s
	in.Client = s.Client.In(inScope(above))
	if here {
		if _, err := in.signsHere(ctx, d); err != nil {
			return err
		}
		if _, err := a.approveHere(ctx, s, inScope(above), d, once); err != nil {
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
		flag = " --scope " + show.Word(inScope(above))
	}
	return in.govern(limited, r, d, once, "next: at other anchors:   aweigh scope approve "+d.ID().Short()+flag+
		"\n   or, against it, there: aweigh ballot reject "+d.ID().Short()+flag)
}

// signsHere shows what all anchors that answer are to sign.
func (s *session) signsHere(ctx context.Context, d scope.Decision) (*aweighv1.TrustResponse, error) {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	r, err := s.Client.Trust(ctx)
	if err == nil {
		_, err = s.signs(ctx, r, d, true)
	}
	return r, err
}

// hereFlag adds the wish to have all anchors on this machine approve.
func hereFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("here", false, "all anchors on this machine approve; with --api, those at its addresses")
}

// approveHere has all anchors that answer approve, prints the result of each, and returns the last answer, with the
// decision's fate then as an error.
func (a *app) approveHere(ctx context.Context, s *session, in string, d scope.Decision, once func() (*aweighv1.Once, error)) (last *aweighv1.GovernResponse, err error) {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	approved, enough := 0, ""
	var failed []error
	addresses := slices.Clone(s.Client.Addresses())
	slices.Sort(addresses)
	for _, address := range slices.Compact(addresses) {
		c, err := client.DialAs(s.reach, address)
		if err != nil {
			return last, err
		}
		o, err := once()
		g, did := (*aweighv1.GovernResponse)(nil), "approved"
		if err == nil {
			g, err = c.In(in).Govern(ctx, d, o)
		}
		if errors.Is(err, client.ErrFailed) {
			if was := approvedAlready(ctx, c.In(in), d); was != nil {
				g, did, err = was, "had approved already", nil
			}
		}
		if err = errors.Join(err, c.Close()); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", address, err))
			fmt.Fprintf(a.err, "%s: did not approve: %s\n", address, show.Line(forPeople(err.Error())))
			continue
		}
		approved, last = approved+1, g
		fmt.Fprintf(a.err, "%s: %s %s\n", address, show.Line(g.Header.GetNode()), did)
		if g.GetProposal().GetFate() != "open" {
			enough = ", which is enough"
			break // what comes after is another proposal
		}
	}
	if approved == 0 {
		return last, errQuiet{errors.Join(failed...)}
	}
	if err := fate(last); err != nil {
		return last, fmt.Errorf("%w: %s", errNotCarried, show.Missing(last.Proposal, nil))
	}
	fmt.Fprintf(a.err, "approved by %s on this machine%s\n", show.Count(approved, "anchor"), enough)
	return last, nil
}

// approvedAlready is how an open decision stands that the anchor of a node has approved; nil if it has not.
func approvedAlready(ctx context.Context, c *client.Client, d scope.Decision) *aweighv1.GovernResponse {
	r, err := c.Trust(ctx)
	if err != nil {
		return nil
	}
	id := d.ID()
	for _, x := range r.Proposals {
		if bytes.Equal(x.Id, id[:]) && slices.ContainsFunc(r.Anchors, func(a *aweighv1.Standing) bool {
			return a.Self && slices.ContainsFunc(x.Approvals, func(by []byte) bool { return bytes.Equal(by, a.Id) })
		}) {
			return &aweighv1.GovernResponse{Header: r.Header, Id: x.Id, Kind: x.Kind, Proposal: x}
		}
	}
	return nil
}

// decideHere has all anchors that answer approve, and prints the outcome of the decision.
func (a *app) decideHere(ctx context.Context, s *session, d scope.Decision, once func() (*aweighv1.Once, error), next string) error {
	r, err := s.signsHere(ctx, d)
	if err != nil {
		return err
	}
	g, err := a.approveHere(ctx, s, s.in, d, once)
	if g == nil {
		return err
	}
	if err := s.Printer.Governed(g, r, next+s.flagIn()); err != nil {
		return err
	}
	return fate(g)
}

// awaitScope waits until a scope has decided something, and its anchors are connected; a node that does not hold it
// only knows that it was founded.
func (s *session) awaitScope(ctx context.Context, prefix []byte) error {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	var found, above *aweighv1.Scope // that has decided
	var until time.Time              // when its anchors' statements are waited for no more
	for {
		heard := found != nil && s.heardAll(ctx, found)
		all, err := s.Client.Scopes(ctx)
		if err != nil && found == nil {
			return err
		}
		for _, x := range all {
			if bytes.Equal(x.Prefix, prefix) && (x.Height > 0 || !x.Held) {
				found, above = x, parentOf(all, x)
			}
		}
		decides := found != nil && (err != nil || !found.Held || found.FailuresLeft >= 0)
		if decides && until.IsZero() {
			until = time.Now().Add(statementsWithin)
		}
		if decides && (err != nil || !found.Held || heard || time.Now().After(until)) {
			return s.Printer.Scope(found, above)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			if found != nil {
				return s.Printer.Scope(found, above)
			}
			return fmt.Errorf("the scope has decided nothing yet: %w; \"aweigh anchor ls\" shows what its approval still takes, \"aweigh scope ls\" whether its anchors are reachable", ctx.Err())
		}
	}
}

// statementsWithin is how long the anchors of a new scope may take to report that they sign.
const statementsWithin = 5 * time.Second

// heardAll reports whether all anchors of a scope have reported that they sign: until then fewer may fail than there
// are to spare.
func (s *session) heardAll(ctx context.Context, x *aweighv1.Scope) bool {
	r, err := s.Client.In(inScope(x)).Status(ctx)
	return err == nil && !slices.ContainsFunc(r.Anchors, func(a *aweighv1.Anchor) bool { return !a.Reachable && !a.Self })
}
