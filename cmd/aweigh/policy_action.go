package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/action"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/scope"
)

// whenHelp reports what predicates are.
func whenHelp() string {
	names := action.VariableNames()
	half := len(names) / 2
	return "CEL is an expression (https://cel.dev) that is true or false, without floating-point\n" +
		"numbers, maps, times and regular expressions. It sees\n" +
		"  " + strings.Join(names[:half], ", ") + ",\n  " + strings.Join(names[half:], ", ") + "\n" +
		"where now is the block's time in seconds since 1970. A scope above the one that decides\n" +
		"about a name knows object.key alone."
}

func (a *app) policyAction() *cobra.Command {
	c := &cobra.Command{
		Use: "action", Short: "Set what verbs do, and who may use them", Args: cobra.NoArgs,
		Long: "A policy has a table of actions: it maps verbs to a class, and to a predicate over the\n" +
			"caller, the scope, the object and the time. \"aweigh do\" carries them out. \"aweigh policy\n" +
			"show\" writes the table.",
		Example: "  aweigh policy action set pay --class write --when \"caller.anchor == 'treasury'\"\n" +
			"  aweigh policy action test pay user@elizabeth --as treasury\n  aweigh policy action set pay --remove",
	}
	return a.under(c, a.policyActionSet(), a.policyActionTest())
}

func (a *app) policyActionSet() *cobra.Command {
	c := &cobra.Command{
		Use: "set VERB", Short: "Propose a rule about a verb, or its removal", Args: cobra.ExactArgs(1),
		Long: "Proposes, with the key of the anchor that answers, the policy with a rule about VERB, as\n" +
			"\"aweigh policy set\" does. Without --when, it may always be done. A rule about write binds\n" +
			"put, del and all other changes of keys as well.\n\n" + whenHelp(),
		Example: "  aweigh policy action set pay --class write --when \"caller.anchor == 'treasury'\"\n" +
			"  aweigh policy action set write --class write --when \"!object.key.startsWith('/safe/')\"\n" +
			"  aweigh policy action set pay --remove --scope /user/",
	}
	class := c.Flags().String("class", "", "what it does: read, write, signal or claim")
	when := c.Flags().String("when", "", "a predicate in CEL (default: always)")
	remove := c.Flags().Bool("remove", false, "remove the rule about VERB")
	choices(c, "class", "read", "write", "signal", "claim")
	c.MarkFlagsMutuallyExclusive("remove", "class")
	c.MarkFlagsMutuallyExclusive("remove", "when")
	c.MarkFlagsOneRequired("remove", "class")
	once, here := onceFlags(c), hereFlag(c)
	return a.askingIn(c, func(ctx context.Context, s *session, args []string) error {
		rule := action.Rule{Verb: args[0], When: *when}
		if !*remove {
			var err error
			if rule.Class, err = action.ParseClass(*class); err == nil {
				err = rule.Check()
			}
			if err != nil {
				return fmt.Errorf("%w: %w", policytext.ErrSyntax, err)
			}
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		r, old, err := s.policy(ctx)
		if err != nil {
			return err
		}
		p := old
		if *remove {
			var ok bool
			if p.Actions, ok = p.Actions.Without(rule.Verb); !ok {
				return fmt.Errorf("%w: no rule is about %q; \"aweigh policy show\" lists those that are", errAbsent, rule.Verb)
			}
		} else {
			p.Actions = p.Actions.With(rule)
		}
		if err := p.Check(); err != nil {
			return fmt.Errorf("%w: %w", policytext.ErrSyntax, err)
		}
		return a.setPolicy(ctx, s, r, old, p, once, *here)
	})
}

func (a *app) policyActionTest() *cobra.Command {
	c := &cobra.Command{
		Use: "test VERB NAME", Short: "Try a rule on the present state, without an effect", Args: cobra.RangeArgs(1, 2),
		Long: "Prints whether VERB would be allowed on NAME now, and by which rule of which scope: by the\n" +
			"rules in force, or with --when in place of the rule of the scope that decides. With\n" +
			"--scope, that scope alone is asked. It exits with 4 if it would be denied.\n\n" + whenHelp(),
		Example: "  aweigh policy action test pay user@elizabeth\n" +
			"  aweigh policy action test pay user@elizabeth --when \"caller.weight > 100\" --as node2",
	}
	raw := c.Flags().Bool("raw", false, "take NAME as it is")
	class := c.Flags().String("class", "", "what the rule to try does: read, write, signal or claim (default: as the one in force)")
	when := c.Flags().String("when", "", "a predicate in CEL to try")
	as := c.Flags().String("as", "", "the caller: the node of an anchor, by its name or ID, or the hash of a key (default: the node)")
	serializable := c.Flags().Bool("serializable", false, "the node answers alone")
	choices(c, "class", "read", "write", "signal", "claim")
	return a.askingIn(c, func(ctx context.Context, s *session, args []string) error {
		verb, name, rest, err := verbAndName(args, *raw)
		if err == nil && len(rest) > 0 {
			err = fmt.Errorf("%w: nothing is done, so no value is taken", errUsage)
		}
		if err == nil && name.Version() != 0 {
			err = fmt.Errorf("%w: rules look at the newest version; leave out .v%d", errUsage, name.Version())
		}
		if err != nil {
			return err
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		req := &aweighv1.JudgeRequest{Verb: verb, Key: name.Key(), Class: *class, When: *when, Serializable: *serializable}
		if req.Key, _, err = a.led(ctx, s, name, *serializable); err != nil {
			return err
		}
		tried := c.Flags().Changed("when") || *class != ""
		if req.Caller, err = s.callerOf(ctx, *as); err != nil {
			return err
		}
		if tried && *class == "" {
			if req.Class, err = s.classOf(ctx, verb, req.Key); err != nil {
				return err
			}
		}
		resp, err := s.Client.Judge(ctx, req)
		if err != nil {
			return err
		}
		if err := s.Printer.Judged(verb, req.Key, resp, tried); err != nil {
			return err
		}
		for _, x := range resp.Said {
			if !x.Allowed {
				return errQuiet{client.ErrDenied}
			}
		}
		return nil
	})
}

// classOf is the class of a verb in the scope that decides about a key; write if it has
// none.
func (s *session) classOf(ctx context.Context, verb string, key []byte) (string, error) {
	r, err := s.Client.Judge(ctx, &aweighv1.JudgeRequest{Verb: verb, Key: key, Serializable: true})
	if err != nil {
		return "", err
	}
	if class := r.Said[len(r.Said)-1].Class; class != "" {
		return class, nil
	}
	return action.Write.String(), nil
}

// callerOf is the caller that an argument names: the node of an anchor, whose own key signs its clients'
// requests, by the anchor's name or the start of its ID; or the hash of a key. Without an argument it is the
// node that answers.
func (s *session) callerOf(ctx context.Context, text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	r, err := s.Client.Trust(ctx)
	if err != nil {
		return nil, err
	}
	for _, x := range r.Anchors {
		if x.Name == text || len(text) >= 8 && strings.HasPrefix(hex.EncodeToString(x.Id), strings.ToLower(text)) {
			k, ok := scope.PeerKey(x.Peer)
			if !ok {
				return nil, fmt.Errorf("%w: the node of anchor %s, %q, has no readable key; give the hash of its key", errUsage, x.Name, x.Peer)
			}
			id := k.ID()
			return id[:], nil
		}
	}
	if id, err := hex.DecodeString(text); err == nil && len(id) == 32 {
		return id, nil
	}
	return nil, fmt.Errorf("%w: no anchor is called %q, or has an ID that begins so; \"aweigh anchor ls\" lists them", errAbsent, text)
}
