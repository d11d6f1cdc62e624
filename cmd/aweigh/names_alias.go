package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/scope"
)

func (a *app) alias() *cobra.Command {
	c := &cobra.Command{
		Use: "alias", Short: "Bind, move, unbind and list aliases of objects", Args: cobra.NoArgs,
		Long: "Every key is an alias of one object. Further ones show the same content: whatever is\n" +
			"put under one appears under all. An object keeps its UID and its history, whatever it\n" +
			"is named.",
		Example: "  aweigh alias bind org@wikipedia.en/today org@wikipedia.en/articles/42\n" +
			"  aweigh alias move org@wikipedia.en/articles/42 org@wikipedia.en/anchors -m \"found a title\"\n" +
			"  aweigh alias unbind org@wikipedia.en/today\n  aweigh alias ls /org/",
	}
	return a.under(c, a.aliasBind(), a.aliasMove(), a.aliasUnbind(), a.aliasLs())
}

func (a *app) aliasBind() *cobra.Command {
	c := &cobra.Command{
		Use: "bind NEW NAME|UID", Short: "Give an object a further alias", Args: cobra.ExactArgs(2),
		Long: "NEW becomes an alias of the object that NAME names, or that has a UID, of which four\n" +
			"characters are enough if no other begins so. An object has 16 aliases at most.\n\n" + nameHelp,
	}
	return a.naming(c, aweighv1.NameRequest_KIND_BIND, func(ctx context.Context, s *session, req *aweighv1.NameRequest, args []string) (err error) {
		if req.To, err = fresh(args[0]); err != nil {
			return err
		}
		r, err := a.object(ctx, s, args[1], false, unversioned)
		if err != nil {
			return err
		}
		req.Uid, req.Key = r.Uid, r.Key
		return nil
	})
}

func (a *app) aliasMove() *cobra.Command {
	c := &cobra.Command{
		Use: "move NAME NEW", Short: "Rename: put one alias in the place of another", Args: cobra.ExactArgs(2),
		Long: "NEW takes the place of NAME in one change that is final or not. The key of NAME is deleted,\n" +
			"and that of NEW is put, in one revision. For a while NAME as an alias (org@example/motd)\n" +
			"still leads to the object, with a warning, unless it comes to name another; as a key\n" +
			"(/org/example/motd) it is not found.\n" +
			"\n" +
			"Where NEW belongs to another scope, the object is sent there with its UID, if it has no other\n" +
			"alias and no lease. Both scopes decide, the other one by its own rules. Until it has, NAME can\n" +
			"be read and does not change; no redirect stays.\n\n" + nameHelp,
	}
	redirect := c.Flags().Duration("redirect", 30*24*time.Hour, "how long the old name leads to the object, counted from when the move can take effect at the latest (--valid-for); 8760h at most")
	none := c.Flags().Bool("no-redirect", false, "leave no redirect under the old name")
	c.MarkFlagsMutuallyExclusive("redirect", "no-redirect")
	return a.naming(c, aweighv1.NameRequest_KIND_MOVE, func(ctx context.Context, s *session, req *aweighv1.NameRequest, args []string) (err error) {
		if req.Key, err = changed(args[0]); err != nil {
			return err
		}
		if req.To, err = fresh(args[1]); err != nil {
			return err
		}
		if *redirect <= 0 || *redirect > mostRedirect {
			return fmt.Errorf("%w: --redirect is more than 0 and %s at most, not %s", errUsage, mostRedirect, *redirect)
		}
		if !*none {
			req.UntilNs = until(*redirect, req.Once)
		}
		if bytes.Equal(req.Key, req.To) {
			return fmt.Errorf("%w: %s is the name already", errState, show.Key(req.To))
		}
		_, err = a.there(ctx, s, req, "move", show.Word(args[1]))
		return err
	})
}

// mostRedirect leaves a day of scope.MaxRedirect for the move to take effect.
const mostRedirect = scope.MaxRedirect - 24*time.Hour

// until is when a redirect ends. A request that is repeated means the same instant:
// it counts from the one that its Once names.
func until(d time.Duration, once *aweighv1.Once) int64 {
	from := time.Now()
	if once.ValidUntilNs != 0 {
		from = time.Unix(0, once.ValidUntilNs)
	} else {
		from = from.Add(time.Minute)
		once.ValidUntilNs = from.UnixNano()
	}
	return from.Add(d).UnixNano()
}

// changed is the key of a name that is to be changed.
func changed(text string) ([]byte, error) {
	n, err := nameOf(text, false, writes)
	if err == nil {
		_, err = unversioned(n)
	}
	return n.Key(), err
}

// there finds what a change of names is about, and refuses an alias that was moved; the error names the command
// for its new name, with further arguments. It returns nil for a repetition: what is there now may have come of the
// first one.
func (a *app) there(ctx context.Context, s *session, req *aweighv1.NameRequest, command string, further ...string) (*aweighv1.ResolveResponse, error) {
	if len(req.Once.Nonce) > 0 {
		return nil, nil
	}
	r, err := a.resolve(ctx, s, req.Key, 0, false)
	if err == nil && r.Moved != nil {
		next := append([]string{"aweigh alias", command, show.Word(show.Key(r.Key))}, further...)
		return nil, movedAway(r, strings.Join(next, " "))
	}
	return r, err
}

func (a *app) aliasUnbind() *cobra.Command {
	c := &cobra.Command{
		Use: "unbind NAME", Short: "Take an alias from an object that has others", Args: cobra.ExactArgs(1),
		Long: "NAME names nothing any more. An object's only alias stays: \"aweigh del\" retires the\n" +
			"object.\n\n" + nameHelp,
	}
	return a.naming(c, aweighv1.NameRequest_KIND_UNBIND, func(ctx context.Context, s *session, req *aweighv1.NameRequest, args []string) (err error) {
		if req.Key, err = changed(args[0]); err != nil {
			return err
		}
		r, err := a.there(ctx, s, req, "unbind")
		if err != nil || r == nil {
			return err
		}
		o, err := s.Client.Object(ctx, &aweighv1.ObjectRequest{Uid: r.Uid, Limit: 1})
		if err != nil {
			return err
		}
		if len(o.Aliases) == 1 {
			return fmt.Errorf("%w: this is the only alias of %.12s…; give it another first, or retire the object with: aweigh del %s", errState, r.Uid, show.Word(args[0]))
		}
		return nil
	})
}

func (a *app) aliasLs() *cobra.Command {
	c := &cobra.Command{
		Use: "ls [PREFIX]", Short: "List aliases with the objects that they name", Args: cobra.MaximumNArgs(1),
		Long: "Lists the aliases that start with PREFIX, or all, with the UIDs that they name, and\n" +
			"those that were moved and still lead somewhere.\n\n" + prefixHelp,
	}
	raw := c.Flags().Bool("raw", false, "take PREFIX as it is")
	limit := c.Flags().Int64("limit", 1000, "at most so many, and as many that were moved")
	serializable := c.Flags().Bool("serializable", false, "the node answers alone")
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		start, end := []byte{0}, []byte{0}
		if len(args) > 0 {
			key, err := keyOf(args[0], *raw, reads)
			if err != nil {
				return err
			}
			start, end = key, prefixEnd(key)
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		keys, err := s.Client.Range(ctx, &aweighv1.RangeRequest{
			Key: start, RangeEnd: end, KeysOnly: true, Limit: *limit, Serializable: *serializable,
		})
		if err != nil {
			return err
		}
		moved, err := s.Client.Redirects(ctx, &aweighv1.RedirectsRequest{Key: start, RangeEnd: end, Limit: *limit, Serializable: *serializable})
		if err != nil {
			return err
		}
		a.more(keys, s.Format)
		if moved.More && s.Format != show.JSON {
			fmt.Fprintf(a.err, "aweigh: the first %d that were moved; there are more, see --limit\n", len(moved.Moved))
		}
		return s.Printer.Aliases(keys, moved)
	})
}
