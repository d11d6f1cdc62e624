package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/scope"
)

func (a *app) scopeRevoke() *cobra.Command {
	c := &cobra.Command{
		Use: "revoke PREFIX", Short: "Propose new anchors for a scope that was delegated", Args: cobra.ExactArgs(1),
		Long: "Proposes, with the key of the anchor that answers, that the scope of PREFIX gets other\n" +
			"anchors, and another policy if one is given. The scope above decides. After the notice\n" +
			"with which it was founded, the anchors that it has now hand over: keys, history and\n" +
			"identity stay as they are, and clients notice nothing. A scope can be revoked if the\n" +
			"policy above had a children.notice when it was founded; \"aweigh scope show\" prints that.\n\n" +
			"Anchors that cannot decide any more cannot hand over either.",
		Example: "  aweigh scope revoke /site/lab/ --anchors node1,node2,node3\n" +
			"  aweigh scope revoke /site/lab/ --template standard --here",
	}
	anchors := c.Flags().StringSlice("anchors", nil, "its anchors: names or IDs of anchors of scopes above (default: all of the scope above)")
	template := c.Flags().String("template", "", "policy to start from: "+strings.Join(templateNames(), ", ")+" (default: the one in force there)")
	choices(c, "template", templateNames()...)
	file := c.Flags().String("policy", "", "file with other values of the policy, in the form of \"aweigh policy show\"")
	here := hereFlag(c)
	once := onceFlags(c)
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		limited, cancel := s.limited(ctx)
		defer cancel()
		all, x, above, err := s.revocable(limited, args[0])
		if err != nil {
			return err
		}
		if x.Folds || x.Closed {
			return fmt.Errorf("%w: it is ordered that %s goes back to the scope above, and that cannot be taken back", errState, show.Key(x.Prefix))
		}
		child := &scope.Child{Prefix: x.Prefix, Name: x.Name}
		if child.Anchors, err = s.knownAnchors(limited, all, above, *anchors); err != nil {
			return err
		}
		if child.Policy, err = s.policyOfScope(limited, x, *template, *file); err != nil {
			return err
		}
		if err := child.Check(); err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
		if x.FailuresLeft < 0 && x.Held {
			fmt.Fprintf(a.err, "aweigh: warning: too few anchors of %s are there to decide; it is handed over once they can\n", show.Key(x.Prefix))
		}
		if x.YieldsNs > 0 {
			fmt.Fprintf(a.err, "aweigh: warning: this replaces the order that %s govern it, and its notice begins anew\n", strings.Join(x.Successors, ", "))
		}
		a.warnAway(limited, s, above, child.Anchors)
		d := scope.Decision{Kind: scope.Revoke, Child: child}
		return a.decideAbove(ctx, s, above, d, once, *here, func(ctx context.Context) error { return s.awaitOrder(ctx, x) })
	})
}

// revocable is the scope of a prefix that can be taken back or given others to govern it, and the one above, of all
// that the node knows.
func (s *session) revocable(ctx context.Context, name string) (all []*aweighv1.Scope, x, above *aweighv1.Scope, err error) {
	prefix, err := prefixOf(name)
	if err != nil {
		return nil, nil, nil, err
	}
	if all, err = s.Client.Scopes(ctx); err != nil {
		return nil, nil, nil, err
	}
	x, above, err = revocableOf(all, prefix)
	return all, x, above, err
}

func revocableOf(all []*aweighv1.Scope, prefix []byte) (x, above *aweighv1.Scope, err error) {
	for _, s := range all {
		if bytes.Equal(s.Prefix, prefix) || bytes.Equal(s.Prefix, append(bytes.Clone(prefix), '/')) {
			x = s
		}
	}
	if x == nil && string(prefix) == "/" {
		x = deciding(all, nil, false)
	}
	switch {
	case x == nil:
		if in := deciding(all, prefix, false); in != nil && len(in.Prefix) > 0 {
			return nil, nil, fmt.Errorf("%w: %s is a key of the scope of %s; give that prefix", errUsage, show.Key(prefix), show.Key(in.Prefix))
		}
		return nil, nil, fmt.Errorf("%w: no scope of %s is known here; \"aweigh scope ls\" shows those that are", errAbsent, show.Key(prefix))
	case len(x.Prefix) == 0:
		return nil, nil, fmt.Errorf("%w: no scope is above the root scope; \"aweigh anchor\" and \"aweigh policy\" change its government", errState)
	case x.NoticeNs == 0:
		return nil, nil, fmt.Errorf("%w: the scope of %s was founded for good: the policy above had no children.notice then, and its own anchors alone change its government", errState, show.Key(x.Prefix))
	}
	if above = parentOf(all, x); above == nil {
		return nil, nil, fmt.Errorf("%w: this node knows nothing of the scope above %s; ask one that holds it", errAbsent, show.Key(x.Prefix))
	}
	return x, above, nil
}

// policyOfScope is the new policy of a scope: a template's or the one in force, with what a file changes. A template
// keeps the authors in force, if they are known.
func (s *session) policyOfScope(ctx context.Context, x *aweighv1.Scope, template, file string) (p scope.Policy, err error) {
	in := *s
	in.Client = s.Client.In(inScope(x))
	_, p, err = in.policy(ctx)
	if template != "" {
		authors, known := p.Authors, err == nil
		if p, err = policyOfTemplate(template, x.Prefix); err == nil && known {
			p.Authors = authors
		}
	}
	if err == nil && file != "" {
		p, err = policyFrom(file, p)
	}
	if err != nil {
		return p, err
	}
	if err := p.Check(); err != nil {
		return p, fmt.Errorf("%w: %w", policytext.ErrSyntax, err)
	}
	return p, nil
}

// awaitOrder waits until the scope above has given an order about a scope, or that is obeyed already.
func (s *session) awaitOrder(ctx context.Context, before *aweighv1.Scope) error {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	for {
		all, err := s.Client.Scopes(ctx)
		if err != nil {
			return err
		}
		for _, x := range all {
			if bytes.Equal(x.Id, before.Id) && (x.YieldsNs != before.YieldsNs || x.Epoch != before.Epoch) {
				return s.Printer.Scope(x, parentOf(all, x))
			}
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the scope above has ordered nothing yet: %w; \"aweigh anchor ls\" shows what its approval still takes", ctx.Err())
		}
	}
}
