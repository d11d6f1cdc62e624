package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

func (a *app) policy() *cobra.Command {
	c := &cobra.Command{
		Use: "policy", Short: "Show and change the rules of a scope", Args: cobra.NoArgs,
		Long: "The policy says what a decision takes, how trust is earned and what it weighs. A change\n" +
			"is carried once anchors whose weight finalizes have approved the same one, and takes\n" +
			"effect with the next epoch.",
		Example: "  aweigh policy show >policy.yaml     # edit it, then\n  aweigh policy diff policy.yaml\n" +
			"  aweigh policy set policy.yaml -m \"slower epochs\"\n  aweigh policy approve 3f1a09cc      # at other anchors",
	}
	return a.under(c, a.policyShow(), a.policyDiff(), a.policySet(), a.policyAction(), a.policyApprove())
}

func (a *app) policyShow() *cobra.Command {
	c := &cobra.Command{
		Use: "show", Short: "Write the policy in force as YAML that explains itself", Args: cobra.NoArgs,
	}
	return a.askingIn(c, func(ctx context.Context, s *session, _ []string) error {
		ctx, cancel := s.limited(ctx)
		defer cancel()
		r, p, err := s.policy(ctx)
		if err != nil {
			return err
		}
		if s.Format == show.JSON {
			return s.Printer.JSON(struct {
				Header any               `json:"header"`
				Node   string            `json:"node"`
				Exact  bool              `json:"linearizable"`
				Policy string            `json:"policy"`
				Mode   string            `json:"mode"`
				Epoch  uint64            `json:"epoch"`
				Fields map[string]string `json:"fields"`
			}{show.Header(r.Header), r.Header.GetNode(), r.Header.GetLinearizable(), p.Hash().String(), p.Rules.Mode.String(), r.Header.GetEpoch(), policytext.Fields(p)})
		}
		of := ""
		if s.in != "" {
			of = " --scope " + show.Word(s.in)
		}
		_, err = fmt.Fprint(a.out, policytext.Write(p, fmt.Sprintf("Policy %s of scope %s, mode %s, in force in epoch %d.\n"+
			"%s.\n"+
			"Change what you want, leave out what stays, and propose it with: aweigh policy set FILE%s",
			p.Hash().Short(), hex.EncodeToString(r.Header.GetScope()[:4]), p.Rules.Mode, r.Header.GetEpoch(), show.Told(r.Header), of)))
		return err
	})
}

// policy is the policy in force.
func (s *session) policy(ctx context.Context) (r *aweighv1.TrustResponse, p scope.Policy, err error) {
	if r, err = s.Client.Trust(ctx); err == nil {
		p, err = inForce(r)
	}
	return r, p, err
}

func (a *app) policyDiff() *cobra.Command {
	c := &cobra.Command{
		Use: "diff [FILE|DECISION]", Short: "Show what a policy would change, and what would follow", Args: cobra.MaximumNArgs(1),
		Long: "Compares a FILE, or an open DECISION (its ID or the start of it), with the policy in\n" +
			"force: what changes, what the anchors would weigh if the epoch ended now, and how few\n" +
			"of them could then do harm. --approve, --no-approve, --mode and --group are those of \"aweigh policy set\".",
	}
	changes := changeFlags(c)
	return a.askingIn(c, func(ctx context.Context, s *session, args []string) error {
		ctx, cancel := s.limited(ctx)
		defer cancel()
		r, old, err := s.policy(ctx)
		if err != nil {
			return err
		}
		p := old
		if len(args) > 0 {
			p, err = policyFrom(args[0], old)
		} else if !changes.given() {
			return fmt.Errorf("%w: give a FILE, a DECISION, --approve, --no-approve, --mode, --group, --split or --fold", errUsage)
		}
		if errors.Is(err, fs.ErrNotExist) {
			if _, isID := motionID(args[0]); isID != nil {
				return err
			}
			x, err := s.proposalNamed(r, args[0], "policy")
			if err != nil {
				return err
			}
			fmt.Fprintln(a.err, show.Told(r.Header))
			if p, err = policyOf(x); err != nil {
				return err
			}
		} else if err != nil {
			return err
		}
		if err := changes.apply(&p); err != nil {
			return err
		}
		after, err := s.Client.TrustUnder(ctx, p)
		if err != nil {
			return err
		}
		a.warnOf(r, old, p)
		return s.Printer.PolicyDiff(policytext.Diff(old, p), r, after)
	})
}

// policyFrom reads a file of what shall change.
func policyFrom(file string, old scope.Policy) (p scope.Policy, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return p, err
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return p, fmt.Errorf("%w: %s is empty", policytext.ErrSyntax, file)
	}
	if p, err = policytext.Read(text, old); err != nil {
		return p, fmt.Errorf("%s: %w", file, err)
	}
	if err = p.Check(); err != nil {
		err = fmt.Errorf("%w: %s: %w", policytext.ErrSyntax, file, err)
	}
	return p, err
}

func policyOf(x *aweighv1.Proposal) (p scope.Policy, err error) {
	d, err := decisionOf(x)
	if err == nil && d.Policy == nil {
		err = fmt.Errorf("the node sent no policy")
	}
	if err != nil {
		return p, err
	}
	return *d.Policy, nil
}

func (a *app) policySet() *cobra.Command {
	c := &cobra.Command{
		Use: "set [SCOPE|FILE]", Short: "Propose or approve a policy", Args: cobra.MaximumNArgs(1),
		Long: "Proposes, with the key of the anchor that answers, or with --here of all on this machine, the policy of a FILE as \"aweigh\n" +
			"policy show\" writes it, or approves it if it is proposed already. It prints what would\n" +
			"follow; \"aweigh policy diff\" prints the same and proposes nothing.\n\n" +
			"SCOPE is /, the root, and need not be given; for others there is --scope.\n\n" +
			"--approve lets writes below a prefix wait for approval, or changes its conditions, and\n" +
			"--no-approve ends it. An approval is made of words:\n" + policytext.ApprovalHelp + "\n\n" +
			"--group says how many anchors weigh: " + policytext.GroupHelp + ".\n\n" +
			"--split says what the scope does about busy prefixes: " + policytext.TopologyHelp + ".\n\n" +
			"--fold says what becomes of such a scope when it is quiet again: " + policytext.FoldHelp + ".",
		Example: "  aweigh policy set policy.yaml\n" +
			"  aweigh policy set --approve 'prefix=/secrets/ threshold=3/4 min-anchors=3 window=72h'\n" +
			"  aweigh policy set --no-approve /secrets/\n" +
			"  aweigh policy set --mode fast\n  aweigh policy set --group 4..7,replace=2\n  aweigh policy set --split act,rate=500\n  aweigh policy set --fold act,quiet=24h",
	}
	changes := changeFlags(c)
	once, here := onceFlags(c), hereFlag(c)
	dry := dryFlag(c, "here", "nonce")
	return a.askingIn(c, func(ctx context.Context, s *session, args []string) error {
		ctx, cancel := s.limited(ctx)
		defer cancel()
		r, old, err := s.policy(ctx)
		if err != nil {
			return err
		}
		p := old
		switch {
		case len(args) > 0 && args[0] != "/": // the root, and only scope
			if p, err = policyFrom(args[0], old); err != nil {
				return err
			}
		case !changes.given():
			return fmt.Errorf("%w: give a FILE, --approve, --no-approve, --mode, --group, --split or --fold", errUsage)
		}
		if err := changes.apply(&p); err != nil {
			return err
		}
		if err := a.warnElsewhere(ctx, s, r, old, p); err != nil {
			return err
		}
		if *dry {
			return a.foreseeDecision(ctx, s, scope.Decision{Kind: scope.SetPolicy, Policy: &p}, policytext.Diff(old, p)...)
		}
		return a.setPolicy(ctx, s, r, old, p, once, *here)
	})
}

// warnElsewhere prints new approvals that have no effect, since another scope decides about their keys.
func (a *app) warnElsewhere(ctx context.Context, s *session, r *aweighv1.TrustResponse, old, p scope.Policy) error {
	all, err := s.Client.Scopes(ctx)
	if err != nil {
		return err
	}
	for _, x := range p.Approvals {
		by := deciding(all, x.Prefix, false)
		if x.Matter != scope.Changes && x.Matter != scope.Deletions || by == nil || bytes.Equal(by.Id, r.Header.Scope) ||
			slices.ContainsFunc(old.Approvals, func(o scope.Approval) bool { return o.Matter == x.Matter && bytes.Equal(o.Prefix, x.Prefix) }) {
			continue
		}
		fmt.Fprintf(a.err, "aweigh: warning: the scope of %s decides about %s, and its policy decides what needs approval there: --scope %s\n",
			show.Key(by.Prefix), show.Key(x.Prefix), show.Word(inScope(by)))
	}
	return nil
}

// policyChanges are changes of a policy that flags stand for: approvals to set and to drop, the mode, the group, and
// the topology.
type policyChanges struct {
	set, drop                *[]string
	mode, group, split, fold *string
}

// changeFlags adds the flags of changes of a policy.
func changeFlags(c *cobra.Command) policyChanges {
	defer choices(c, "mode", "bft", "fast")
	return policyChanges{
		mode:  c.Flags().String("mode", "", "bft or fast, from the next epoch on: in fast one round of votes decides while few are silent"),
		set:   c.Flags().StringArray("approve", nil, "a kind of change that needs approval, and whose"),
		drop:  c.Flags().StringArray("no-approve", nil, "a prefix below which no change needs approval any more"),
		group: c.Flags().String("group", "", "how many anchors weigh at a time, as in 4..7,replace=3, or off; the others are on standby"),
		split: c.Flags().String("split", "", "what is done about busy prefixes: advise, act or off, as in act,rate=1000"),
		fold:  c.Flags().String("fold", "", "what is done about such a scope that is quiet again: advise, act or off, as in act,quiet=1h"),
	}
}

func (x policyChanges) given() bool {
	return len(*x.set)+len(*x.drop) > 0 || *x.mode != "" || *x.group != "" || *x.split+*x.fold != ""
}

// apply makes the changes in a policy.
func (x policyChanges) apply(p *scope.Policy) error {
	if *x.mode != "" {
		m, err := quorum.ParseMode(*x.mode)
		if err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
		p.Rules.Mode = m
	}
	if *x.group != "" {
		g, err := policytext.ParseGroup(*x.group, p.Rules.Mode)
		if err != nil {
			return err
		}
		p.Trust.Group = g
	}
	if *x.split != "" {
		t, err := policytext.ParseTopology(p.Topology, *x.split)
		if err != nil {
			return err
		}
		p.Topology = t
	}
	if *x.fold != "" {
		t, err := policytext.ParseFold(p.Topology, *x.fold)
		if err != nil {
			return err
		}
		p.Topology = t
	}
	for _, text := range *x.set {
		a, err := policytext.ParseApproval(text)
		if err != nil {
			return err
		}
		if len(a.Prefix) > 0 && a.Prefix[0] != '/' && !strings.Contains(text, `prefix="`) {
			return fmt.Errorf("%w: a prefix starts with / or stands in quotes; give prefix=/%s", errKey, strings.Trim(string(a.Prefix), "/"))
		}
		p.Approvals = policytext.SetApproval(p.Approvals, a)
	}
	for _, prefix := range *x.drop {
		found := len(p.Approvals)
		p.Approvals = slices.DeleteFunc(slices.Clone(p.Approvals), func(a scope.Approval) bool {
			return (a.Matter == scope.Changes || a.Matter == scope.Deletions) && string(a.Prefix) == prefix
		})
		if len(p.Approvals) == found {
			return fmt.Errorf("%w: nothing below %q needs approval; \"aweigh policy show\" lists what does", errUsage, prefix)
		}
	}
	if err := p.Check(); err != nil {
		return fmt.Errorf("%w: %w", policytext.ErrSyntax, err)
	}
	return nil
}

func (a *app) policyApprove() *cobra.Command {
	c := &cobra.Command{
		Use: "approve DECISION", Short: "Approve a policy that others proposed", Args: cobra.ExactArgs(1),
		Long: "Approves, with the key of the anchor that answers, or with --here of all on this machine, an open decision on the policy:\n" +
			"its ID, or that of its motion, or the start of one, as \"aweigh anchor ls\" shows them.",
	}
	once, here := onceFlags(c), hereFlag(c)
	return a.askingIn(c, func(ctx context.Context, s *session, args []string) error {
		ctx, cancel := s.limited(ctx)
		defer cancel()
		r, old, err := s.policy(ctx)
		if err != nil {
			return err
		}
		x, err := s.proposalNamed(r, args[0], "policy")
		if err != nil {
			return s.closed(ctx, args[0], err)
		}
		p, err := policyOf(x)
		if err != nil {
			return err
		}
		return a.setPolicy(ctx, s, r, old, p, once, *here)
	})
}

// warnOf prints what is odd about a policy, of a scope with the anchors of an answer.
func (a *app) warnOf(r *aweighv1.TrustResponse, old, p scope.Policy) {
	for _, w := range append(policytext.Warnings(old, p), policytext.SharedNames(old, p, anchorNames(r))...) {
		fmt.Fprintf(a.err, "aweigh: warning: %s\n", show.Line(w))
	}
}

// setPolicy prints what a policy would change and proposes it.
func (a *app) setPolicy(ctx context.Context, s *session, r *aweighv1.TrustResponse, old, p scope.Policy, once func() (*aweighv1.Once, error), here bool) error {
	diff := policytext.Diff(old, p)
	if len(diff) == 0 {
		return fmt.Errorf("%w: this is the policy in force", errPointless)
	}
	after, err := s.Client.TrustUnder(ctx, p)
	if err != nil {
		return err
	}
	a.warnOf(r, old, p)
	if s.Format == show.Table {
		if err := s.Printer.PolicyDiff(diff, r, after); err != nil {
			return err
		}
		fmt.Fprintln(a.out)
	}
	d := scope.Decision{Kind: scope.SetPolicy, Policy: &p}
	next := "next: at other anchors:  aweigh policy approve " + d.ID().Short()
	if here {
		return a.decideHere(ctx, s, d, once, next)
	}
	return s.govern(ctx, r, d, once, next)
}
