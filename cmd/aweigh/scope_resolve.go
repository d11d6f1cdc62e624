package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/alias"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/scope"
)

func (a *app) resolveCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "resolve NAME", Short: "Show which scopes lead to a name, and what it names", Args: cobra.ExactArgs(1),
		Long: "Follows a name from the root scope to the one that decides about it, and shows what it\n" +
			"names there. If it names nothing, the last scope is shown, with the part of the name that it\n" +
			"left over. For a name with a verb before it, each scope's verdict on the verb is shown,\n" +
			"too; one that is denied exits with 4.\n\n" +
			"The node answers from its own state, and prints its age. With --freshest it asks\n" +
			"as many anchors of the scope as it takes to miss no write. If it does not hold the scope,\n" +
			"--trace shows which anchors it asked, and why these. With --trace and --proof it\n" +
			"is asked for a proof, which is verified here: it leads from the network's identity,\n" +
			"scope by scope, each with anchors that those above founded it with, or that they\n" +
			"handed over to, to the change that made the name's present object. Of a name that was moved\n" +
			"nothing is proven; the exit code is 3, and the error has the name to ask for.\n\n" + oneNameHelp,
		Example: "  aweigh resolve org@wikipedia.en/articles/42\n  aweigh resolve /registry/secrets/default/token --trace\n" +
			"  aweigh resolve pay:user@elizabeth --freshest\n  aweigh resolve /greeting --proof greeting.proof && aweigh verify greeting.proof",
	}
	raw := c.Flags().Bool("raw", false, "take NAME as it is")
	freshest := c.Flags().Bool("freshest", false, "ask enough anchors of the scope to miss no write")
	trace := c.Flags().Bool("trace", false, "verify the way here, and show the signers behind each scope")
	save := c.Flags().String("proof", "", "verify the way here, and write the proof to this file")
	network := c.Flags().String("network", "", "identity of the network, for --trace and --proof (default: that of the one that runs here)")
	a.trustingFlags(c)
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		name, err := anyName(args[0], *raw)
		if err != nil {
			return err
		}
		if c.Flags().Changed("network") {
			if _, err := networkOf(*network); err != nil {
				return err
			}
		} else {
			*network = s.network
		}
		var file *reserved
		if *save != "" {
			if file, err = reserveNew(*save); err != nil {
				return err
			}
			defer file.release()
		}
		if a.trusts.roster != "" && !*trace && *save == "" {
			return fmt.Errorf("%w: --trusted is for what is verified: add --trace or --proof FILE", errUsage)
		}
		if name.Version() != 0 && (*trace || *save != "") {
			return fmt.Errorf("%w: the proof is of the newest version; leave out .v%d", errUsage, name.Version())
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		found, missing, err := s.way(ctx, name, *freshest, *trace)
		if err != nil {
			return err
		}
		var proof *scope.KeyProof
		if r := found.Answer; r.GetMoved() != nil && (*trace || *save != "") {
			next := "aweigh resolve " + show.Word(show.Key(r.Key))
			if *trace {
				next += " --trace"
			}
			if *save != "" {
				next += " --proof " + show.Word(*save)
			}
			return movedAway(r, next)
		}
		if (*trace || *save != "") && missing == nil {
			if proof, err = a.proven(ctx, s, &found, *network); err != nil {
				return err
			}
		}
		if proof == nil && *trace && missing != nil {
			fmt.Fprintln(a.err, "aweigh: the absence of an object cannot be proven; the scopes are the node's statement")
		}
		found.Traced = *trace
		if err := s.Printer.Way(found); err != nil {
			return err
		}
		denied := slices.ContainsFunc(found.Said, func(x *aweighv1.Said) bool { return !x.Allowed })
		switch r := found.Answer; {
		case missing != nil && denied:
			return fmt.Errorf("%w: the verb %s; and it names nothing: %w", client.ErrDenied, found.Verb, missing)
		case missing != nil:
			return missing
		case !r.Claims:
			return fmt.Errorf("%w: %s of %s", errUnclaimed, show.Key(r.Key), r.Uid)
		case file != nil:
			if err := file.write(proof.Encode()); err != nil {
				return err
			}
		}
		if denied {
			return errQuiet{client.ErrDenied}
		}
		return nil
	})
}

// anyName reads a name, with any verb or none.
func anyName(text string, raw bool) (alias.Name, error) {
	if raw {
		return alias.FromKey([]byte(text))
	}
	return alias.Parse(text)
}

// way asks for the scopes that lead to a name, and for its object, and with trace for which anchors were asked; missing
// is the error if it names nothing.
func (s *session) way(ctx context.Context, name alias.Name, freshest, trace bool) (found show.Way, missing, err error) {
	found = show.Way{Key: name.Key(), Verb: name.Action()}
	all, err := s.Client.Scopes(ctx)
	if err != nil {
		return found, nil, err
	}
	found.Scopes = wayTo(all, found.Key)
	found.Answer, err = s.Client.Resolve(ctx, &aweighv1.ResolveRequest{
		Key: found.Key, Version: int64(name.Version()), Serializable: !freshest, Trace: trace,
	})
	if errors.Is(err, client.ErrNotFound) {
		missing, err = err, nil
	}
	if err != nil || found.Verb == "" {
		return found, missing, err
	}
	key := found.Key
	if missing == nil && !name.Raw() { // "do" finds the present place of a moved object
		key = found.Answer.Key
	}
	said, err := s.Client.Judge(ctx, &aweighv1.JudgeRequest{Verb: found.Verb, Key: key, Serializable: !freshest})
	if err == nil {
		found.Said = said.Said
	}
	return found, missing, err
}

// proven asks for the proof of the result, and verifies it.
func (a *app) proven(ctx context.Context, s *session, found *show.Way, network string) (*scope.KeyProof, error) {
	answer := found.Answer
	proof, err := s.Client.Prove(ctx, found.Key)
	if err != nil {
		return nil, err
	}
	found.Network = proof.Ancestry.Genesis.Network()
	if found.Pinned = network != ""; found.Pinned {
		if found.Network, err = networkOf(network); err != nil {
			return nil, err
		}
	}
	report, err := proof.Verify(found.Network)
	if err == nil {
		err = a.trusts.check(proof.Ancestry.Root())
	}
	if err != nil {
		return nil, err
	}
	if found.Visits, err = proof.Visits(found.Network); err != nil {
		return nil, err
	}
	e, kv := &report.Entry, report.Kv
	same := string(e.Key) == string(found.Key) && string(answer.Key) == string(found.Key) && kv != nil && e.Object.String() == answer.Uid &&
		kv.Version == answer.Kv.GetVersion() && string(kv.Value) == string(answer.Kv.GetValue()) && len(found.Visits) == len(found.Scopes)
	for i := range found.Visits {
		v := &found.Visits[i]
		same = same && string(v.Prefix) == string(found.Scopes[i].Prefix) && string(v.Scope[:]) == string(found.Scopes[i].Id)
	}
	if !same {
		return nil, fmt.Errorf("%w: the node's answer about %s differs from its proof; it may have changed meanwhile: ask again, or another node",
			scope.ErrProof, show.Key(found.Key))
	}
	return proof, nil
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
