package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/alias"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/scope"
)

func (a *app) do() *cobra.Command {
	c := &cobra.Command{
		Use: "do VERB NAME [VALUE]", Short: "Carry out a verb on a name, under the policy's rules", Args: cobra.RangeArgs(1, 3),
		Long: "Carries out a verb on the object of a name. VERB:NAME is the same. The policy of the\n" +
			"scope that decides about the name gives the class of the verb, and the callers that may use it:\n\n" +
			"  read     prints the object of the name\n" +
			"  write    puts VALUE and waits until that is final\n" +
			"  claim    records in the history that the node's owner claims the object\n" +
			"  signal   gives VALUE to the present watches of the name (\"aweigh watch --signals\"),\n" +
			"           and stores nothing\n\n" +
			"Every scope on the way to it is asked, the root first: one with a rule about the verb\n" +
			"may deny it. All scopes know read and write. A verb that the scope that decides does not\n" +
			"know is denied. Denials exit with 4, and name the scope and the rule.\n\n" +
			"The caller that rules see is the node that answers, or the key of --as.\n\n" + oneNameHelp,
		Example: "  aweigh do pay user@elizabeth 10\n  aweigh do pay:user@elizabeth 10\n  aweigh do own /house -m \"bought\"\n" +
			"  aweigh policy action set pay --class write --when \"caller.anchor == 'treasury'\"",
	}
	raw := c.Flags().Bool("raw", false, "take NAME as it is")
	file := c.Flags().String("value-file", "", "a file with VALUE; - reads standard input, as VALUE - does")
	serializable := c.Flags().Bool("serializable", false, "the node answers alone, to a verb that reads")
	as := a.asFlags(c)
	once := patientFlags(c)
	wait := waitFlag(c)
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		verb, name, rest, err := verbAndName(args, *raw)
		if err != nil {
			return err
		}
		req := &aweighv1.ActRequest{Verb: verb, Key: name.Key(), Version: int64(name.Version()), Serializable: *serializable}
		if req.Value, req.HasValue, err = a.valueOf(rest, *file); err != nil {
			return err
		}
		if req.Once, err = once(); err != nil {
			return err
		}
		if err := as.unlock(ctx); err != nil {
			return err
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		key, r, err := a.led(ctx, s, name, *serializable)
		if err != nil {
			return err
		}
		if r != nil && r.Moved != nil { // no other object may have it meanwhile
			req.Key, req.Uid = key, r.Uid
		}
		act := s.Client.Act
		if as.given() {
			act = func(ctx context.Context, req *aweighv1.ActRequest) (*aweighv1.ActResponse, error) {
				return as.act(ctx, s, req)
			}
		}
		resp, err := act(ctx, req)
		if err != nil {
			return a.pended(ctx, s, err, wait())
		}
		if resp.Resolved != nil {
			return s.Printer.Resolved(resp.Resolved)
		}
		return s.Printer.Acted(verb, req.Key, resp)
	})
}

// verbAndName takes the arguments VERB NAME, or VERB:NAME, apart from what follows.
func verbAndName(args []string, raw bool) (verb string, n alias.Name, rest []string, err error) {
	if !strings.ContainsAny(args[0], `/"@: `) || raw {
		if len(args) < 2 {
			return "", n, nil, fmt.Errorf("%w: on which name is %q to be carried out?", errUsage, args[0])
		}
		if err := alias.CheckAction(args[0]); err != nil {
			return "", n, nil, err
		}
		n, err := nameOf(args[1], raw, args[0])
		return args[0], n, args[2:], err
	}
	n, err = alias.Parse(args[0])
	switch {
	case err != nil:
		return "", n, nil, err
	case n.Action() == "":
		return "", n, nil, fmt.Errorf("%w: which verb? Write one before %s, as in: aweigh do read %s", errUsage, args[0], show.Word(args[0]))
	case len(args) > 2:
		return "", n, nil, fmt.Errorf("%w: one value is taken, not %d", errUsage, len(args)-1)
	}
	return n.Action(), n, args[1:], nil
}

// valueOf is the value that an argument or a file holds.
func (a *app) valueOf(args []string, file string) (value []byte, ok bool, err error) {
	in, most := a.in, scope.DefaultLimits().ValueBytes
	switch {
	case len(args) > 0 && file != "":
		return nil, false, fmt.Errorf("%w: a value, and a file with one", errUsage)
	case len(args) == 0 && file == "":
		return nil, false, nil
	case len(args) > 0 && args[0] != "-":
		value = []byte(args[0])
	case file != "" && file != "-":
		f, err := os.Open(file)
		if err != nil {
			return nil, false, err
		}
		defer f.Close()
		in = f
		fallthrough
	default:
		if value, err = io.ReadAll(io.LimitReader(in, int64(most)+1)); err != nil {
			return nil, false, err
		}
	}
	if len(value) > most {
		return nil, false, fmt.Errorf("%w: a value has at most %d bytes", errUsage, most)
	}
	return value, true, nil
}
