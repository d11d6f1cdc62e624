package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/alias"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

func (a *app) scopeCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "scope", Short: "Give parts of the namespace their own anchors and rules", Args: cobra.NoArgs,
		Long: "A scope governs a prefix of the keys: with anchors, rules, trust and a history of its\n" +
			"own. The root scope has all keys at first. Its anchors may delegate a prefix to a\n" +
			"scope of its own, and that one's anchors a longer prefix, and so on. Existing keys\n" +
			"go along; clients need not know. The parent cannot write there. A delegation is permanent,\n" +
			"unless the parent's policy has a children.notice: then it can, after that notice,\n" +
			"set other anchors there, or take the prefix back.\n\n" +
			"Commands about keys find the scope that decides. Others take --scope PREFIX.",
		Example: "  aweigh scope create /registry/secrets/ --template critical\n  aweigh scope tree\n" +
			"  aweigh policy show --scope /registry/secrets/",
	}
	return a.under(c, a.scopeCreate(), a.scopeRevoke(), a.scopeFold(), a.scopeApprove(), a.scopeLs(), a.scopeTree(), a.scopeShow(), a.scopeTopology())
}

const scopeColumns = "For each scope: RATE is how many changes a second became final in all of it, of late, \"of\" how many\n" +
	"its policy has each node take of its own clients; SIZE is that of all versions of keys that it keeps;\n" +
	"LAST says when its newest block was made, and STATE how many of its anchors may stop before nothing\n" +
	"can be decided. \"aweigh scope show\" names its anchors."

func (a *app) scopeLs() *cobra.Command {
	c := &cobra.Command{Use: "ls", Short: "List the scopes that a node knows of", Args: cobra.NoArgs, Long: scopeColumns}
	return a.asking(c, func(ctx context.Context, s *session, _ []string) error { return s.scopes(ctx, false) })
}

func (a *app) scopeTree() *cobra.Command {
	c := &cobra.Command{Use: "tree", Short: "Show the scopes as a tree", Args: cobra.NoArgs, Long: scopeColumns}
	return a.asking(c, func(ctx context.Context, s *session, _ []string) error { return s.scopes(ctx, true) })
}

func (s *session) scopes(ctx context.Context, tree bool) error {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	r, err := s.Client.Namespace(ctx)
	if err != nil {
		return err
	}
	r.Scopes = inOrder(r.Scopes)
	return s.Printer.Scopes(r, tree)
}

// inOrder puts every scope behind those that it lies in, by prefix.
func inOrder(all []*aweighv1.Scope) []*aweighv1.Scope {
	slices.SortStableFunc(all, func(x, y *aweighv1.Scope) int { return bytes.Compare(x.Prefix, y.Prefix) })
	return all
}

func (a *app) scopeShow() *cobra.Command {
	c := &cobra.Command{
		Use: "show [PREFIX|KEY]", Short: "Show the scope that decides about a key", Args: cobra.MaximumNArgs(1),
		Example: "  aweigh scope show /registry/secrets/default/token",
	}
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		ctx, cancel := s.limited(ctx)
		defer cancel()
		r, err := s.Client.Namespace(ctx)
		if err != nil {
			return err
		}
		var key []byte
		if len(args) > 0 {
			if key, err = prefixOf(args[0]); err == nil {
				err = rooted(args[0], key)
			}
			if err != nil {
				return err
			}
		}
		x := deciding(r.Scopes, key, false)
		if x == nil {
			return fmt.Errorf("%w: the node returned no scope", errAbsent)
		}
		if s.Format == show.Table && !r.Header.GetLinearizable() {
			fmt.Fprintln(a.err, show.Told(r.Header))
		}
		if s.Format == show.Table && len(key) > 1 && key[len(key)-1] == '/' && !bytes.Equal(key, x.Prefix) {
			fmt.Fprintf(a.err, "aweigh: %s has no scope of its own; %s decides about its keys\n", show.Key(key), show.ScopeName(x))
		}
		return s.Printer.Scope(x, parentOf(r.Scopes, x))
	})
}

// deciding is the scope with the longest prefix of a key; above reports that a scope
// of the very prefix does not count.
func deciding(all []*aweighv1.Scope, key []byte, above bool) (best *aweighv1.Scope) {
	for _, x := range all {
		if bytes.HasPrefix(key, x.Prefix) && !(above && len(x.Prefix) == len(key)) && (best == nil || len(x.Prefix) > len(best.Prefix)) {
			best = x
		}
	}
	return best
}

func parentOf(all []*aweighv1.Scope, x *aweighv1.Scope) *aweighv1.Scope {
	for _, p := range all {
		if bytes.Equal(p.Id, x.Parent) {
			return p
		}
	}
	return nil
}

// prefixOf is the prefix, or key, that an argument stands for: as it is, or as an alias.
func prefixOf(text string) ([]byte, error) {
	if strings.HasPrefix(text, `"`) { // as keys with odd bytes are written
		key, err := strconv.Unquote(text)
		if err != nil {
			return nil, fmt.Errorf("%w: %s is not quoted as in Go", errKey, text)
		}
		return []byte(key), nil
	}
	if !strings.Contains(text, "@") {
		return []byte(text), nil
	}
	n, err := alias.Parse(text)
	if err != nil {
		return nil, err
	}
	return append(slices.Clip(n.Key()), '/'), nil
}

// inScope names a scope in a request; those without visible ASCII by their identity.
func inScope(x *aweighv1.Scope) string {
	for _, b := range x.Prefix {
		if b <= ' ' || b > '~' {
			return hex.EncodeToString(x.Id)
		}
	}
	return string(x.Prefix)
}

// templates are policies by name.
var templates = []struct {
	name, about string
	make        func(prefix []byte) scope.Policy
}{
	{"critical", "mode bft; every write waits for ballots of anchors that weigh 2/3", func(prefix []byte) scope.Policy {
		p := scope.DefaultPolicy(quorum.BFT)
		p.Approvals = []scope.Approval{{Prefix: prefix, Matter: scope.Changes, Num: 2, Den: 3, Window: 72 * time.Hour}}
		return p
	}},
	{"standard", "mode bft", func([]byte) scope.Policy { return scope.DefaultPolicy(quorum.BFT) }},
	{"fast", "mode fast: as many may lie as in bft, and one round of votes decides", func([]byte) scope.Policy { return scope.DefaultPolicy(quorum.Fast) }},
	{"light", "mode crash: half the messages, if no anchor lies", func([]byte) scope.Policy { return scope.DefaultPolicy(quorum.Crash) }},
	{"local", "mode crash, meant for one anchor", func([]byte) scope.Policy { return scope.DefaultPolicy(quorum.Crash) }},
}

func templateNames() (names []string) {
	for _, t := range templates {
		names = append(names, t.name)
	}
	return names
}

func templateHelp() string {
	var b strings.Builder
	for _, t := range templates {
		fmt.Fprintf(&b, "  %-9s %s\n", t.name, t.about)
	}
	return b.String()
}

func (a *app) scopeCreate() *cobra.Command {
	c := &cobra.Command{
		Use: "create PREFIX", Short: "Propose to delegate a prefix to a scope of its own", Args: cobra.ExactArgs(1),
		Long: "Proposes, with the key of the anchor that answers, that the scope which decides about\n" +
			"PREFIX now delegates it. Once anchors whose weight finalizes there have approved the\n" +
			"same, the new scope takes over the keys, and decides by itself. The prefix stays a scope\n" +
			"of its own for good. Its anchors can be changed from above only if the policy there\n" +
			"has a children.notice now.\n\n" +
			"Authors that may change the keys now stay authors: the new policy lists them, and the nodes\n" +
			"of the anchors above by their keys. A file with another list under authors replaces it.\n\n" +
			"A scope that any client can flood, as with events, may slow the others on the same machines;\n" +
			"--rate bounds it.\n\n" +
			"Templates are policies to start from:\n" + templateHelp() + "\n" +
			"With --here, all anchors that run on this machine approve at once, and the command\n" +
			"waits until the new scope has decided something.",
		Example: "  aweigh scope create /registry/events/ --template light --rate 1000 --anchors node1,node2,node3\n" +
			"  aweigh scope create /registry/secrets/ --policy secrets.yaml\n" +
			"  aweigh scope create /site/lab/ --template local --anchors lab --here",
	}
	anchors := c.Flags().StringSlice("anchors", nil, "its anchors: names or IDs of anchors of scopes above (default: all of the scope above)")
	template := c.Flags().String("template", "standard", "policy to start from: "+strings.Join(templateNames(), ", "))
	choices(c, "template", templateNames()...)
	file := c.Flags().String("policy", "", "file with other values of the policy, in the form of \"aweigh policy show\"")
	name := c.Flags().String("name", "", "for people")
	rate := c.Flags().Int64("rate", 0, "changes a second that each node takes of its own clients there, more wait; 0: any number (limits.rate of the policy)")
	closed := c.Flags().Bool("closed", false, "its anchors alone may change and read its keys: other nodes get nothing of it, also not for\ntheir clients (authors of the policy)")
	here := hereFlag(c)
	asIs := c.Flags().Bool("as-is", false, "go on, though PREFIX looks like a mistake, or too few of the anchors are reachable")
	once := onceFlags(c)
	dry := dryFlag(c, "here", "nonce")
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		limited, cancel := s.limited(ctx)
		defer cancel()
		prefix, err := prefixOf(args[0])
		if err != nil {
			return err
		}
		if err := likely(args[0], prefix); err != nil && !*asIs {
			return err
		}
		all, err := s.Client.Scopes(limited)
		if err != nil {
			return err
		}
		for _, x := range all {
			if bytes.Equal(x.Prefix, prefix) && len(prefix) > 0 {
				return fmt.Errorf("%w: %s has a scope of its own already; \"aweigh scope show %s\" shows it", errPointless, show.Key(prefix), show.Word(args[0]))
			}
		}
		above := deciding(all, prefix, true)
		if above == nil {
			return fmt.Errorf("%w: PREFIX is the start of the new scope's keys, like /registry/secrets/", errUsage)
		}
		known, err := s.knownAnchors(limited, all, above, *anchors)
		if err != nil {
			return err
		}
		policy, err := policyOfTemplate(*template, prefix)
		if err == nil {
			policy.Authors, err = s.authorsBelow(limited, above, prefix, known, *closed)
		}
		if err == nil && *file != "" {
			policy, err = policyFrom(*file, policy)
		}
		if err != nil {
			return err
		}
		if c.Flags().Changed("rate") {
			policy.Limits.Rate = *rate
		}
		child, err := newChild(known, prefix, *name, policy)
		if err != nil {
			return err
		}
		if *closed {
			a.warnBefore(ctx, s, above, prefix)
		}
		away := a.warnAway(limited, s, above, known)
		if n := uint64(len(known)); n-away < policy.Rules.Finalize.Threshold(n) && !*asIs {
			return fmt.Errorf("%w: %d of %s can be reached, too few to decide there, and %s would be theirs for good; start them first, or --as-is if that is meant",
				errUnconfirmed, n-away, show.Count(n, "anchor"), show.Key(prefix))
		}
		d := scope.Decision{Kind: scope.Delegate, Child: child}
		if *dry {
			in := *s
			in.Client = s.Client.In(inScope(above))
			return a.foreseeDecision(limited, &in, d)
		}
		return a.decideAbove(ctx, s, above, d, once, *here, func(ctx context.Context) error { return s.awaitScope(ctx, prefix) })
	})
}

// rooted reports what is wrong with a key or a prefix that begins with no slash.
func rooted(text string, key []byte) error {
	if len(key) == 0 || key[0] == '/' || strings.HasPrefix(text, `"`) {
		return nil
	}
	return fmt.Errorf("%w: a key starts with / or stands in quotes; give %s", errKey, show.Word("/"+strings.Trim(string(key), "/")+"/"))
}

// likely reports why a prefix is likely a mistake. A delegation is permanent.
func likely(text string, prefix []byte) error {
	path := "/" + strings.Trim(string(prefix), "/") + "/"
	switch {
	case len(prefix) == 0: // reported later
		return nil
	case rooted(text, prefix) != nil:
		return fmt.Errorf("%w, or --as-is", rooted(text, prefix))
	case string(prefix) == "/":
		return fmt.Errorf("%w: / takes along every key that begins so, which may be all, for good; --as-is if that is meant", errKey)
	case prefix[len(prefix)-1] != '/':
		return fmt.Errorf("%w: %s would take along every key that begins so, as %s, for good; give %s for those below it, or --as-is", errKey,
			show.Key(prefix), show.Key(append(slices.Clip(prefix), "x/y"...)), show.Word(string(prefix)+"/"))
	case strings.Contains(string(prefix), "//"), strings.Contains(path, "/../"), strings.Contains(path, "/./"), strings.ContainsAny(path, "*?"):
		return fmt.Errorf("%w: %s stands for itself, byte by byte, and for good; --as-is if that is meant", errKey, show.Key(prefix))
	}
	return nil
}

// policyOfTemplate is the policy that a template makes for a scope.
func policyOfTemplate(template string, prefix []byte) (p scope.Policy, err error) {
	at := slices.Index(templateNames(), template)
	if at < 0 {
		return p, fmt.Errorf("%w: --template is %s, not %q", errUsage, strings.Join(templateNames(), ", "), template)
	}
	return templates[at].make(prefix), nil
}

// newChild is the scope that is asked for.
func newChild(anchors []scope.Anchor, prefix []byte, name string, policy scope.Policy) (*scope.Child, error) {
	child := &scope.Child{Prefix: prefix, Name: name, Policy: policy, Anchors: anchors}
	if err := child.Policy.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", policytext.ErrSyntax, err)
	}
	if err := child.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	return child, nil
}

// knownAnchors are those that are named, of the scope above or of those above it, or
// else all of the scope above.
func (s *session) knownAnchors(ctx context.Context, all []*aweighv1.Scope, above *aweighv1.Scope, named []string) (found []scope.Anchor, err error) {
	for i, text := range named {
		if slices.Contains(named[:i], text) {
			return nil, fmt.Errorf("%w: --anchors names %s twice", errUsage, text)
		}
	}
	seen, taken := make(map[string]bool), make(map[string]bool)
	for x := above; x != nil; x = parentOf(all, x) {
		r, err := rosterOf(ctx, s.Client.In(inScope(x)))
		if err != nil {
			return nil, err
		}
		for _, a := range r.Anchors {
			id := a.Key.ID()
			wanted, by := len(named) == 0 && x == above, ""
			for _, text := range named {
				if a.Name == text && !seen[text] || len(text) >= 4 && strings.HasPrefix(id.String(), strings.ToLower(text)) {
					if wanted {
						return nil, fmt.Errorf("%w: --anchors names %s twice, as %s and %s", errUsage, a.Name, by, text)
					}
					wanted, seen[text], by = true, true, text
				}
			}
			if wanted && !taken[id.String()] {
				a.Score, taken[id.String()] = machine.FoundingScore, true
				found = append(found, a)
			}
		}
	}
	for _, text := range named {
		if !seen[text] {
			return nil, fmt.Errorf("%w: no anchor of the scopes above is called %q; \"%s\" lists them", errAbsent, text, anchorLsOf(above))
		}
	}
	slices.SortFunc(found, func(a, b scope.Anchor) int {
		x, y := a.Key.ID(), b.Key.ID()
		return bytes.Compare(x[:], y[:])
	})
	return found, nil
}

// anchorLsOf is the command that lists the anchors of a scope.
func anchorLsOf(x *aweighv1.Scope) string {
	if name := inScope(x); name != "" {
		return "aweigh anchor ls --scope " + show.Word(name)
	}
	return "aweigh anchor ls"
}

// warnAway prints which anchors of the new scope the node that answers cannot reach, as far
// as they are anchors of the scope above, and returns how many.
func (a *app) warnAway(ctx context.Context, s *session, above *aweighv1.Scope, anchors []scope.Anchor) (away uint64) {
	r, err := s.Client.In(inScope(above)).Status(ctx)
	if err != nil {
		return 0 // the next step reports why
	}
	for _, x := range r.Anchors {
		if !x.Reachable && !x.Self && slices.ContainsFunc(anchors, func(n scope.Anchor) bool { id := n.Key.ID(); return bytes.Equal(id[:], x.Id) }) {
			fmt.Fprintf(a.err, "aweigh: warning: %s, one of its new anchors, cannot be reached from here, or signs nothing\n", show.Line(x.Name))
			away++
		}
	}
	return away
}

// rosterOf is a scope's newest roster, verified from its genesis.
func rosterOf(ctx context.Context, in *client.Client) (scope.Roster, error) {
	g, err := in.Genesis(ctx)
	if err != nil {
		return scope.Roster{}, err
	}
	e, err := g.Epoch()
	if err == nil {
		e, err = in.FollowEpochs(ctx, e, nil)
	}
	if err != nil {
		return scope.Roster{}, err
	}
	return e.Roster, nil
}

func (a *app) scopeApprove() *cobra.Command {
	c := &cobra.Command{
		Use: "approve DECISION", Short: "Approve a delegation, a revocation or a fold that others proposed", Args: cobra.ExactArgs(1),
		Long: "Approves, with the key of the anchor that answers, or with --here of all on this machine, an open decision to delegate a\n" +
			"prefix, or to revoke or fold a scope: its ID, or that of its motion, or the start of one, as \"aweigh anchor ls\"\n" +
			"shows them.",
	}
	once, here := onceFlags(c), hereFlag(c)
	return a.askingIn(c, func(ctx context.Context, s *session, args []string) error {
		ctx, cancel := s.limited(ctx)
		defer cancel()
		r, err := s.Client.Trust(ctx)
		if err != nil {
			return err
		}
		x, err := s.proposalNamed(r, args[0], "delegate", "revoke", "fold")
		if err != nil {
			return s.closed(ctx, args[0], err)
		}
		d, err := decisionOf(x)
		if err != nil {
			return err
		}
		next := "next: at other anchors:  aweigh scope approve " + d.ID().Short()
		if *here {
			return a.decideHere(ctx, s, d, once, next)
		}
		return s.govern(ctx, r, d, once, next)
	})
}

// scopeCalled is the text for a scope.
func scopeCalled(prefix []byte) string {
	if len(prefix) == 0 {
		return "the root scope"
	}
	return "scope " + show.Key(prefix)
}
