package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/action"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

func (a *app) auth() *cobra.Command {
	c := &cobra.Command{
		Use: "auth", Short: "Show and change whose requests may change which keys", Args: cobra.NoArgs,
		Long: "A policy lists authors: the anchors and their nodes, single keys, or anyone; each with the\n" +
			"prefixes of keys and the verbs that it permits. All nodes check every change against the\n" +
			"list. A new network lists its anchors alone; a node that is no anchor's needs an entry for\n" +
			"its key, which \"aweigh status\" prints as its author key. A change of the list is a\n" +
			"decision, as others of the policy: it is carried once anchors whose weight finalizes have\n" +
			"approved it, and holds from the next epoch on, which it begins.",
		Example: "  aweigh auth ls\n  aweigh auth grant alice --public-key ed25519:… --prefix /apps/ --verb put --verb delete\n" +
			"  aweigh auth can-i put /apps/web --as alice\n  aweigh auth who /apps/web\n  aweigh auth revoke alice",
	}
	return a.under(c, a.authLs(), a.authGrant(), a.authRevoke(), a.authCanI(), a.authWho())
}

func (a *app) authLs() *cobra.Command {
	c := &cobra.Command{
		Use: "ls", Short: "List the authors of the policy in force", Args: cobra.NoArgs,
		Long: "Lists the authors, with their quotas and what is used of them. An entry with a rate can save\n" +
			"up the changes of ten seconds; \"3 of 50 changes\" means that 47 more may be made at once.",
	}
	return a.askingIn(c, func(ctx context.Context, s *session, _ []string) error {
		ctx, cancel := s.limited(ctx)
		defer cancel()
		r, p, err := s.policy(ctx)
		if err != nil {
			return err
		}
		return s.Printer.Authors(r.Header, p.Authors, r.Usages)
	})
}

func (a *app) authGrant() *cobra.Command {
	c := &cobra.Command{
		Use: "grant NAME", Short: "Propose an author, or another entry in place of one", Args: cobra.ExactArgs(1),
		Long: "Proposes, with the key of the anchor that answers, the policy with an entry NAME in the\n" +
			"list of authors, as \"aweigh policy set\" does. Without --prefix it permits all keys of the\n" +
			"scope, and without --verb everything: " + strings.Join(scope.AuthorVerbs, ", ") + " and the\n" +
			"verbs of the policy's actions.\n" +
			"--rate, --bytes, --leases and --motions bound what all authors of the entry have together;\n" +
			"the entry's new quota counts what they have already.",
		Example: "  aweigh auth grant alice --public-key ed25519:… --prefix /apps/\n  aweigh auth grant guests --any --prefix /guestbook/ --verb put --rate 5 --bytes 1MiB",
	}
	key := c.Flags().String("public-key", "", "the author's, like ed25519:…, as \"aweigh voter show\" and \"aweigh status\" print it")
	anchors := c.Flags().Bool("anchors", false, "permit the anchors and their nodes")
	anyone := c.Flags().Bool("any", false, "permit anyone")
	prefixes := c.Flags().StringArray("prefix", nil, "of keys that may change (repeatable; default: all keys)")
	verbs := c.Flags().StringSlice("verb", nil, "that may be done (repeatable; default: everything)")
	var quota scope.Quota
	c.Flags().Int64Var(&quota.Rate, "rate", 0, "changes a second that its authors may make together, ten seconds' at once\n(default: any number, as for the following three)")
	bytesText := c.Flags().String("bytes", "", "of keys and values that they wrote last, such as 500MiB")
	c.Flags().Int64Var(&quota.Leases, "leases", 0, "that they granted and that have not ended")
	c.Flags().Int64Var(&quota.Motions, "motions", 0, "that they opened and that are open")
	c.MarkFlagsMutuallyExclusive("public-key", "anchors", "any")
	c.MarkFlagsOneRequired("public-key", "anchors", "any")
	once, here := onceFlags(c), hereFlag(c)
	return a.askingIn(c, func(ctx context.Context, s *session, args []string) error {
		entry := scope.Author{Name: args[0], Who: scope.OneKey, Verbs: slices.Compact(slices.Sorted(slices.Values(*verbs))), Quota: quota}
		if *bytesText != "" {
			var err error
			if entry.Quota.Bytes, err = policytext.ParseSize(*bytesText); err != nil {
				return fmt.Errorf("%w: --bytes: %w", errUsage, err)
			}
		}
		switch {
		case *anchors:
			entry.Who = scope.Anchors
		case *anyone:
			entry.Who = scope.Anyone
		default:
			var err error
			if entry.Key, err = votes.ParsePublicKey(*key); err != nil {
				return fmt.Errorf("%w: --public-key: %w", errUsage, err)
			}
		}
		for _, text := range *prefixes {
			prefix, err := prefixOf(text)
			if err != nil {
				return err
			}
			entry.Prefixes = append(entry.Prefixes, prefix)
		}
		slices.SortFunc(entry.Prefixes, bytes.Compare)
		if err := entry.Check(); err != nil {
			return fmt.Errorf("%w: author %q: %w", errUsage, entry.Name, err)
		}
		return a.changeAuthors(ctx, s, once, *here, func(p *scope.Policy) ([]scope.Author, error) {
			for _, verb := range entry.Verbs {
				if err := knownVerb(verb, p); err != nil {
					return nil, fmt.Errorf("%w; define it first (aweigh policy action set), or both at once (aweigh policy set FILE)", err)
				}
			}
			return policytext.SetAuthor(p.Authors, entry), nil
		})
	})
}

func (a *app) authRevoke() *cobra.Command {
	c := &cobra.Command{
		Use: "revoke NAME", Short: "Propose the removal of an author", Args: cobra.ExactArgs(1),
		Long: "Proposes, with the key of the anchor that answers, the policy without the entry NAME in the\n" +
			"list of authors. Once it is carried, no block holds a change by that entry. The last entry\n" +
			"cannot be removed: it would lock all authors out.",
		Example: "  aweigh auth revoke alice",
	}
	once, here := onceFlags(c), hereFlag(c)
	return a.askingIn(c, func(ctx context.Context, s *session, args []string) error {
		return a.changeAuthors(ctx, s, once, *here, func(p *scope.Policy) ([]scope.Author, error) {
			rest, ok := policytext.DropAuthor(p.Authors, args[0])
			if !ok {
				return nil, fmt.Errorf("%w: no author is called %q; \"aweigh auth ls\" lists them", errAbsent, args[0])
			}
			return rest, nil
		})
	})
}

// changeAuthors proposes the policy in force with other authors.
func (a *app) changeAuthors(ctx context.Context, s *session, once func() (*aweighv1.Once, error), here bool, change func(*scope.Policy) ([]scope.Author, error)) error {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	r, old, err := s.policy(ctx)
	if err != nil {
		return err
	}
	p := old
	if p.Authors, err = change(&old); err != nil {
		return err
	}
	if err := p.Check(); err != nil {
		return fmt.Errorf("%w: %w", policytext.ErrSyntax, err)
	}
	return a.setPolicy(ctx, s, r, old, p, once, here)
}

func (a *app) authCanI() *cobra.Command {
	c := &cobra.Command{
		Use: "can-i VERB KEY", Short: "Show whether an author may do something, and by which entry", Args: cobra.ExactArgs(2),
		Long: "Prints whether an author may do VERB on KEY: by the list of authors of the scope that\n" +
			"decides about KEY, and by the rules of its policy. The scopes above it have a say in verbs\n" +
			"of actions, too, and are listed. VERB is " + strings.Join(scope.AuthorVerbs, ", ") + " or the\n" +
			"verb of an action. It exits with 4 if the author may not, and with 10 if it may, but has to\n" +
			"wait for approval: of a second person (step-up), or of those that the policy asks for.\n" +
			"VERB alias stands for all changes of names. If the policy asks for approval of deletions\n" +
			"alone, only those wait that move or remove the name: the command prints so, and exits with 0.",
		Example: "  aweigh auth can-i put /apps/web\n  aweigh auth can-i delete /apps/web --as alice\n" +
			"  aweigh auth can-i put /apps/web --as alice.key",
	}
	as := c.Flags().String("as", "", "the author: the name of an entry or of an anchor, a public key, the hash of\none, or the file of a key or of a token (default: the node)")
	passphrase := passphraseFlag(c)
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		ctx, cancel := s.limited(ctx)
		defer cancel()
		key, err := judgedKey(args[1])
		if err != nil {
			return err
		}
		in, x, err := s.whereDecided(ctx, key)
		if err != nil {
			return err
		}
		r, p, err := in.policy(ctx)
		if err == nil {
			err = knownVerb(args[0], &p)
		}
		if err != nil {
			return err
		}
		m := &show.May{Verb: args[0], Key: key, Name: *as, Scope: x.Prefix}
		held, err := heldToken(*as)
		if err != nil {
			return err
		}
		if held != nil {
			id := held.Last().To.ID()
			m.Caller, m.Name = id[:], "the token "+held.Last().Name
		} else if m.Caller, err = in.author(ctx, &p, *as); errors.Is(err, errAbsent) {
			m.Caller, err = a.callerIn(ctx, *as, *passphrase, noAuthor(*as, &p, x, r.Header))
		}
		if err != nil {
			return err
		}
		rule := m.Verb
		if slices.Contains(scope.AuthorVerbs, rule) {
			rule = "write"
		}
		asked := s.Client // all scopes on the way have a say in verbs of actions
		if rule != m.Verb {
			asked = in.Client // blocks of the scope that decides judge all other changes
		}
		judged, err := asked.Judge(ctx, &aweighv1.JudgeRequest{Verb: rule, Key: key, Caller: m.Caller})
		if err != nil {
			return err
		}
		if len(judged.Said) == 0 || len(judged.Caller) != len(aweigh.Hash{}) {
			return fmt.Errorf("%w: the node returned no verdict", errAbsent)
		}
		m.Caller, m.Judged, m.Above = judged.Caller, judged.Said[len(judged.Said)-1], judged.Said[:len(judged.Said)-1]
		if scope.OfNoKey(m.Verb) || m.Verb == scope.VerbRead { // no rule is asked
			m.Judged = &aweighv1.Said{Allowed: true}
		}
		signals := m.Judged.Class == action.Signal.String() // asked about the key alone
		if signals && held != nil {
			m.Barred = "a signal goes in the name of a node, and by no token"
		}
		names := [][]byte{key}
		if !signals && !scope.OfNoKey(m.Verb) && m.Verb != scope.VerbDelete {
			if names, err = in.namesOf(ctx, key); err != nil {
				return err
			}
		}
		id := aweigh.Hash(m.Caller)
		if held != nil {
			id = held.Grants[0].By.ID()
		}
		rights := p.Rights(id, anchorIn(r, id))
		for _, name := range names {
			if held != nil && m.Barred == "" {
				if m.Barred, err = s.barred(ctx, held, m.Verb, name); err != nil {
					return err
				}
			}
			if m.Entry, m.Under = rights.Entry(m.Verb, name), name; m.Entry == nil {
				break
			}
			changes := m.Verb != scope.VerbRead
			if held != nil && m.Barred == "" && changes && rights.Within(held.Grants).Entry(m.Verb, name) == nil {
				m.Barred = fmt.Sprintf("a token permits no change of %s, by which its signer can revoke it or lists observers, unless a prefix names it",
					show.Key(name))
			}
		}
		asks := []aweigh.Hash{aweigh.Hash(m.Caller)}
		if held != nil {
			for _, g := range held.Grants {
				asks = append(asks, g.By.ID(), g.To.ID())
			}
		}
		approvalOf(m, &p, names, withAnchors(r, asks), voidIn(r))
		if err := s.Printer.May(r.Header, p.Hash().String(), m); err != nil {
			return err
		}
		switch {
		case !m.OK():
			return errQuiet{client.ErrDenied}
		case m.Waits():
			return errQuiet{client.ErrPending}
		}
		return nil
	})
}

// approvalOf adds to a verdict which approval the policy asks for, of a change of an object under all its names, and
// whether the change can wait for it. asks are the keys that ask for the change, and void the approvers that are void.
func approvalOf(m *show.May, p *scope.Policy, names [][]byte, asks, void []aweigh.Hash) {
	deletes := m.Verb == scope.VerbDelete
	switch m.Verb {
	case scope.VerbPut, scope.VerbDelete, scope.VerbAlias:
	default:
		if m.Judged.Class != action.Write.String() { // leases and compactions, claims, signals and reads change no key
			return
		}
	}
	for _, name := range names {
		a := p.Covers(name, deletes)
		if m.Judged.Class == action.Write.String() && m.Verb != scope.VerbPut && m.Verb != scope.VerbAlias && !deletes {
			a = p.CoversVerb(name, m.Verb)
		}
		if a != nil && m.Approval != nil && a != m.Approval {
			m.NoWay = "it takes several approvals of the policy at once, of several names of the object"
		}
		if a != nil {
			m.Approval = a
		}
	}
	if a := p.Covers(m.Key, true); m.Verb == scope.VerbAlias && a != m.Approval {
		m.Removal = a
	}
	if m.Approval == nil {
		return
	}
	for _, second := range m.Approval.Seconds(slices.Concat(asks, void)) {
		m.Seconds = append(m.Seconds, second.Name)
	}
	for _, a := range m.Approval.Approvers {
		if a.Required && slices.Contains(void, a.Key.ID()) {
			m.NoWay = fmt.Sprintf("it takes the approval of %s, which is void because it signed both ways on a motion: readmit it with \"aweigh anchor readmit\"", a.Name)
		}
	}
	if m.Approval.StepUp && len(m.Seconds) == 0 {
		m.NoWay = "the policy asks for the approval of a second person, and names none but the author, or approvers that are void"
	}
}

// withAnchors adds to some keys both keys of each anchor that has one of them.
func withAnchors(r *aweighv1.TrustResponse, keys []aweigh.Hash) []aweigh.Hash {
	for _, x := range r.Anchors {
		both := []aweigh.Hash{}
		if len(x.Id) == len(aweigh.Hash{}) {
			both = append(both, aweigh.Hash(x.Id))
		}
		if node, ok := scope.PeerKey(x.Peer); ok {
			both = append(both, node.ID())
		}
		if inRoster(x) && slices.ContainsFunc(both, func(id aweigh.Hash) bool { return slices.Contains(keys, id) }) {
			keys = append(keys, both...)
		}
	}
	return keys
}

func (a *app) authWho() *cobra.Command {
	c := &cobra.Command{
		Use: "who KEY", Short: "List the authors that may change a key", Args: cobra.ExactArgs(1),
		Example: "  aweigh auth who /apps/web\n  aweigh auth who /apps/web --verb delete",
	}
	verb := c.Flags().String("verb", scope.VerbPut, "what they may do: "+strings.Join(scope.AuthorVerbs, ", ")+" or the verb of an action")
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		ctx, cancel := s.limited(ctx)
		defer cancel()
		key, err := judgedKey(args[0])
		if err != nil {
			return err
		}
		in, _, err := s.whereDecided(ctx, key)
		if err != nil {
			return err
		}
		r, p, err := in.policy(ctx)
		if err == nil {
			err = knownVerb(*verb, &p)
		}
		if err != nil {
			return err
		}
		var all []scope.Author
		for _, entry := range p.Authors {
			if entry.Permits(*verb, key) {
				all = append(all, entry)
			}
		}
		return s.Printer.Authors(r.Header, all, r.Usages)
	})
}
