package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/internal/token"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

func (a *app) tokenCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "token", Short: "Let programs act with a part of an author's rights, for a time", Args: cobra.NoArgs,
		Long: "A token lets its holder do a part of what an author may do, until a time. The author signs\n" +
			"it with the key of its entry in the policy (\"aweigh auth\"), and no anchor is asked. Its\n" +
			"holder can make a narrower token of it, without a node. Every block is checked against the\n" +
			"policy and the token: a token never permits more than its author may do at that moment.\n\n" +
			"A token has a record: a key, by default /tokens/NAME. The token ends when the key does, so\n" +
			"\"aweigh token revoke\" deletes it, and \"aweigh ls\" and \"aweigh history\" show it.",
		Example: "  aweigh token create ci --as alice.key --prefix /apps/web/ --for 1h --record /apps/tokens/ci > ci.token\n" +
			"  aweigh put /apps/web/version 7 --as ci.token\n  aweigh token narrow web --token ci.token --prefix /apps/web/tmp/ --for 5m\n" +
			"  aweigh token revoke ci.token --as alice.key",
	}
	return a.under(c, a.tokenCreate(), a.tokenNarrow(), a.tokenShow(), a.tokenRevoke())
}

// mostUnrecorded is how long a token can be that nothing revokes, without a warning.
const mostUnrecorded = 24 * time.Hour

func (a *app) tokenCreate() *cobra.Command {
	c := &cobra.Command{
		Use: "create NAME --as FILE", Short: "Sign a token, and put its record", Args: cobra.ExactArgs(1),
		Long: "Signs a token with the key of FILE, or with that of another token, and writes the token's\n" +
			"record: a key with its name, and what it permits. The signer needs the right to put the\n" +
			"record, and to delete it when it revokes the token; an author of some prefixes names a key\n" +
			"below one of them with --record. With --no-record the token cannot be revoked alone. The\n" +
			"token is for the scope that decides about its first prefix.",
		Example: "  aweigh token create ci --as alice.key --prefix /apps/web/ --verb put --for 1h --record /apps/tokens/ci > ci.token\n" +
			"  aweigh token create robot --as alice.key --to ed25519:… --for 720h --record /apps/tokens/robot",
	}
	flags := newGrantFlags(c)
	record := c.Flags().String("record", "", "the key of its record (default: tokens/NAME below the scope's prefix)")
	none := c.Flags().Bool("no-record", false, "write no record")
	c.MarkFlagsMutuallyExclusive("record", "no-record")
	as := a.asFlags(c)
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		if !as.given() {
			return fmt.Errorf("%w: who signs the token? Name the key of an author with --as", errUsage)
		}
		g, err := flags.grant(args[0], time.Now())
		if err != nil {
			return err
		}
		if err := as.unlock(ctx); err != nil {
			return err
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		about := []byte("/")
		if len(g.Prefixes) > 0 {
			about = g.Prefixes[0]
		}
		by, x, err := as.author(ctx, s, about)
		if err != nil {
			return err
		}
		held, err := by.Chain()
		if err != nil {
			return err
		}
		warnings, err := vain(ctx, s, by, about, append(slices.Clone(held), g))
		if err != nil {
			return err
		}
		if *none && *flags.span > mostUnrecorded {
			warnings = append(warnings, fmt.Sprintf("the token has no record, so that until %s it ends only when its signer's entry in "+
				"the policy does; leave --no-record out to be able to revoke it", time.Unix(0, int64(g.NotAfter)).UTC().Format(time.DateOnly)))
		}
		for _, prefix := range g.Prefixes {
			if _, other, err := s.whereDecided(ctx, prefix); err != nil {
				return err
			} else if !bytes.Equal(other.Id, x.Id) {
				return fmt.Errorf("%w: %s and %s are in two scopes; make a token for each", errUsage, show.Key(about),
					show.Key(prefix))
			}
		}
		file, err := flags.output() // before there is a record, as the token would be lost
		if err != nil {
			return err
		}
		if file != nil {
			defer file.release()
		}
		if g.Scope = by.Scope; !*none {
			if g.Record = fmt.Appendf(nil, "%s/tokens/%s", strings.TrimSuffix(string(x.Prefix), "/"), args[0]); *record != "" {
				if g.Record, err = prefixOf(*record); err != nil {
					return err
				}
			}
			g.Object = aweigh.UID{1}
			if err := token.Check(by.Key.Public(), held, g); err != nil { // before there is a record
				return fmt.Errorf("%w: %w", errState, err)
			}
			if g.Object, err = putRecord(ctx, by, &g); err != nil {
				return fmt.Errorf("the token's record %s: %w", show.Key(g.Record), unlisted(by, x, err))
			}
		}
		t, err := newToken(by.Key, held, g)
		if err != nil && !*none {
			err = fmt.Errorf("%w; its record is made: delete it with \"aweigh del %s\"", err, show.Key(g.Record))
		}
		if err != nil {
			return err
		}
		return flags.write(a, t, file, s.Format, warnings)
	})
}

// vain is what of a new token permits nothing under the policy of the scope that decides about a key.
func vain(ctx context.Context, s *session, by *client.Author, key []byte, chain []scope.Grant) ([]string, error) {
	in, _, err := s.whereDecided(ctx, key)
	if err != nil {
		return nil, err
	}
	r, p, err := in.policy(ctx)
	if err != nil {
		return nil, err
	}
	signer := by.Key.Public().ID()
	if len(chain) > 1 {
		signer = chain[0].By.ID()
	}
	last := &chain[len(chain)-1]
	odd := append(policytext.OddVerbs(last.Verbs, p.Actions), policytext.OddPrefixes(last.Prefixes)...)
	return append(odd, policytext.Vain(chain, &policytext.Signer{
		Rights: p.Rights(signer, anchorIn(r, signer)), Authors: p.Authors, Actions: p.Actions,
	})...), nil
}

// newToken is token.New, whose error says that no token can be made as things stand.
func newToken(signer votes.Signer, before []scope.Grant, g scope.Grant) (*token.Token, error) {
	t, err := token.New(signer, before, g)
	if errors.Is(err, scope.ErrInvalid) {
		err = fmt.Errorf("%w: %w", errState, err)
	}
	return t, err
}

// recordOf is how the value of a token's record begins.
func recordOf(name string, by votes.PublicKey) string {
	return fmt.Sprintf("token %s, signed by %s,", name, by)
}

// putRecord makes the key of a grant's record, and returns its object.
func putRecord(ctx context.Context, by *client.Author, g *scope.Grant) (u aweigh.UID, err error) {
	value := fmt.Sprintf("%s until %s", recordOf(g.Name, by.Key.Public()), time.Unix(0, int64(g.NotAfter)).UTC().Format(time.RFC3339))
	r, err := by.Txn(ctx, scope.Txn{
		Compare: []scope.Compare{{Target: scope.OnVersion, Relation: scope.Equal, Key: g.Record}},
		Success: []scope.Op{{Kind: scope.OpPut, Key: g.Record, Value: []byte(value)}},
	}, nil)
	switch {
	case err != nil:
		return u, err
	case !r.Succeeded:
		return u, fmt.Errorf("%w: the key is there already; name another with --record", errState)
	case len(r.Responses) != 1:
		return u, fmt.Errorf("%w: the node returned no object", errAbsent)
	}
	return aweigh.ParseUID(r.Responses[0].GetPut().GetUid())
}

func (a *app) tokenNarrow() *cobra.Command {
	c := &cobra.Command{
		Use: "narrow NAME --token FILE", Short: "Make a narrower token of one, without a node", Args: cobra.ExactArgs(1),
		Long: "Signs a token with the key of another, for a part of what that permits. It ends with the\n" +
			"other token at the latest, also when that is revoked. A chain has " + fmt.Sprint(scope.MaxGrants) + " grants at most.",
		Example: "  aweigh token narrow web --token ci.token --prefix /apps/web/tmp/ --for 5m > web.token",
	}
	flags := newGrantFlags(c)
	from := c.Flags().String("token", "", "the token to narrow")
	key := c.Flags().String("as", "", "the key that the token is for, where it does not hold it")
	passphrase := passphraseFlag(c)
	output := outputFlag(c)
	must.OK(c.MarkFlagRequired("token"), "requiring a flag")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		format, err := formatOf(*output, false)
		if err != nil {
			return err
		}
		held, err := readToken(*from)
		if err != nil {
			return err
		}
		g, err := flags.grant(args[0], time.Now())
		if err != nil {
			return err
		}
		var signer votes.Signer
		if !held.Key.IsZero() {
			a.warnExposed(*from)
			signer = held.Key.Signer()
		}
		if *key != "" {
			if signer, _, err = a.openKey(cmd.Context(), *key, *passphrase); err != nil {
				return err
			}
		}
		if signer == nil || signer.Public().ID() != held.Last().To.ID() {
			return fmt.Errorf("%w: the token is for the key %s; name its file with --as", errUsage, held.Last().To)
		}
		g.Scope, g.NotAfter = held.Last().Scope, min(g.NotAfter, held.NotAfter())
		t, err := newToken(signer, held.Grants, g)
		if err != nil {
			return err
		}
		file, err := flags.output()
		if err != nil {
			return err
		}
		if file != nil {
			defer file.release()
		}
		return flags.write(a, t, file, format, policytext.Vain(t.Grants, nil))
	}
	return c
}

func (a *app) tokenShow() *cobra.Command {
	c := &cobra.Command{
		Use: "show FILE", Short: "Show what a token permits, and never its key", Args: cobra.ExactArgs(1),
		Long: "Shows the grants of a token. No node is asked: \"aweigh auth can-i VERB KEY --as FILE\"\n" +
			"shows whether it permits something now.",
		Example: "  aweigh token show ci.token",
	}
	output := outputFlag(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		format, err := formatOf(*output, false)
		if err != nil {
			return err
		}
		t, err := readToken(args[0])
		if err != nil {
			return err
		}
		return show.Printer{Out: a.out, Format: format}.Token(t, "", "", aweigh.InstantOf(time.Now()))
	}
	return c
}

func (a *app) tokenRevoke() *cobra.Command {
	c := &cobra.Command{
		Use: "revoke FILE", Short: "Delete the record of a token, which ends it", Args: cobra.ExactArgs(1),
		Long: "Deletes the record of a token: no later change by it, or by tokens made of it, is carried\n" +
			"out. Without the token, delete the key of its record: aweigh del /tokens/NAME. The node signs\n" +
			"the deletion, or the author of --as, which needs the right to delete the record.",
		Example: "  aweigh token revoke ci.token --as alice.key",
	}
	as := a.asFlags(c)
	once := onceFlags(c)
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		t, err := readToken(args[0])
		if err != nil {
			return err
		}
		g := t.Last()
		if len(g.Record) == 0 {
			return fmt.Errorf("%w: the token has no record: it ends at %s, with the record of the token that it was made "+
				"of, or with its author's entry (\"aweigh auth revoke\")", errState, time.Unix(0, int64(t.NotAfter())).UTC().Format(time.RFC3339))
		}
		if err := as.unlock(ctx); err != nil {
			return err
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		o, err := once()
		if err != nil {
			return err
		}
		r, err := s.Client.Resolve(ctx, &aweighv1.ResolveRequest{Key: g.Record})
		if errors.Is(err, client.ErrNotFound) || err == nil && r.Uid != g.Object.String() {
			return fmt.Errorf("%w: the token %s is revoked already", errState, g.Name)
		}
		if err != nil {
			return err
		}
		made := recordOf(g.Name, g.By)
		if !bytes.HasPrefix(r.Kv.GetValue(), []byte(made)) { // a forged token may name any key
			return fmt.Errorf("%w: %s is not the record of this token: its value does not begin with %q; delete the key "+
				"itself if it should go", errState, show.Key(g.Record), made)
		}
		txn, err := removeRecord(ctx, s, as, g.Record, r.Kv.GetModRevision(), o)
		if err != nil {
			return err
		}
		out := &aweighv1.DeleteResponse{Header: txn.Header, Repeated: txn.Repeated}
		if len(txn.Responses) > 0 {
			out.Deleted = txn.Responses[0].GetDelete().GetDeleted()
		}
		return s.Printer.Delete(out)
	})
}

// removeRecord deletes a key if it was last changed in a revision. Otherwise the error wraps client.ErrCondition.
func removeRecord(ctx context.Context, s *session, as *signedBy, key []byte, revision int64, once *aweighv1.Once) (
	txn *aweighv1.TxnResponse, err error) {
	if as.given() {
		txn, err = as.txn(ctx, s, scope.Txn{
			Compare: []scope.Compare{{Target: scope.OnMod, Relation: scope.Equal, Key: key, Number: revision}},
			Success: []scope.Op{{Kind: scope.OpDelete, Key: key}},
		}, once)
	} else {
		txn, err = s.Client.Txn(ctx, &aweighv1.TxnRequest{
			Compare: []*aweighv1.Compare{{
				Target: aweighv1.Compare_TARGET_MOD, Relation: aweighv1.Compare_RELATION_EQUAL, Key: key, Number: revision,
			}},
			Success: []*aweighv1.Op{{Op: &aweighv1.Op_Delete{Delete: &aweighv1.DeleteRequest{Key: key}}}},
			Once:    once,
		})
	}
	if err == nil && !txn.Succeeded && !txn.Repeated {
		err = client.ErrCondition
	}
	return txn, err
}

// readToken reads a token's file.
func readToken(name string) (*token.Token, error) {
	if token.Is([]byte(name)) {
		return nil, fmt.Errorf("%w: a token stands where the name of its file is expected", errUsage)
	}
	data, err := readSome(name)
	if err != nil {
		return nil, err
	}
	if !token.Is(data) {
		if other := otherKind(name, data, "name the file of a token, which \"aweigh token create\" makes"); other != nil {
			return nil, other
		}
	}
	t, err := token.Parse(string(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// heldToken is the token in a file, nil if the text names none.
func heldToken(name string) (*token.Token, error) {
	if data, err := readSome(name); name == "" || err != nil || !token.Is(data) {
		return nil, nil
	}
	return readToken(name)
}

// barred reports why a token does not permit a verb on a key now, whatever its author may do.
func (s *session) barred(ctx context.Context, t *token.Token, verb string, key []byte) (why string, err error) {
	for i := range t.Grants {
		g := &t.Grants[i]
		switch {
		case g.NotAfter < aweigh.InstantOf(time.Now()):
			return fmt.Sprintf("the grant %s has expired", g.Name), nil
		case !g.Permits(verb, key):
			return fmt.Sprintf("the grant %s does not permit it", g.Name), nil
		case len(g.Record) == 0:
			continue
		}
		r, err := s.Client.Resolve(ctx, &aweighv1.ResolveRequest{Key: g.Record})
		if err != nil && !errors.Is(err, client.ErrNotFound) {
			return "", err
		}
		if err != nil || r.Moved != nil || r.Uid != g.Object.String() {
			return fmt.Sprintf("the grant %s is revoked", g.Name), nil
		}
	}
	return "", nil
}
