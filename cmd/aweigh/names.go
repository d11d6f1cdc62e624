package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/alias"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/show"
)

// errUnclaimed means that an alias names an object which does not claim it.
var errUnclaimed = errors.New("the object does not claim the alias that names it: the node's store is damaged, or the node lies; ask another one with --api")

// The actions that commands carry out; others are for aweigh do.
const (
	reads  = "read"
	writes = "write"
)

// nameOf is the name that an argument stands for, with no action before it but
// the one that the command carries out.
func nameOf(text string, raw bool, action string) (alias.Name, error) {
	if raw {
		return alias.FromKey([]byte(text))
	}
	n, err := alias.Parse(text)
	if err == nil && n.Action() != "" && n.Action() != action {
		return n, fmt.Errorf("%w: this command does not carry out %q; get and history read, put and del write, and aweigh do carries out all", errUsage, n.Action())
	}
	return n, err
}

// versionFlag adds a flag for the version, which a key cannot name.
func versionFlag(c *cobra.Command, what string) func(n alias.Name) (int64, error) {
	flag := c.Flags().Int64("version", 0, what)
	return func(n alias.Name) (int64, error) {
		if n.Version() != 0 && *flag != 0 && int64(n.Version()) != *flag {
			return 0, fmt.Errorf("%w: version %d in the name, and --version %d", errUsage, n.Version(), *flag)
		}
		return max(int64(n.Version()), *flag), nil
	}
}

// resolve finds the object of a name. It prints a notice about aliases that were moved.
func (a *app) resolve(ctx context.Context, s *session, key []byte, version int64, serializable bool) (*aweighv1.ResolveResponse, error) {
	r, err := s.Client.Resolve(ctx, &aweighv1.ResolveRequest{Key: key, Version: version, Serializable: serializable})
	if err != nil {
		return nil, err
	}
	if !r.Claims {
		return nil, fmt.Errorf("%w: %s of %s", errUnclaimed, show.Key(r.Key), r.Uid)
	}
	if m := r.Moved; m != nil {
		fmt.Fprintf(a.err, "aweigh: %s was moved to %s; the old name leads there until %s\n",
			show.Key(m.Key), show.Key(r.Key), time.Unix(0, m.UntilNs).UTC().Format(time.RFC3339))
	}
	return r, nil
}

// movedAway is the error of a command for a name that was moved; next is the advice.
func movedAway(r *aweighv1.ResolveResponse, next string) error {
	m := r.Moved
	until := time.Unix(0, m.UntilNs).UTC().Format(time.RFC3339)
	return fmt.Errorf("%w: %s names nothing any more: it was moved to %s, by the word of the node, and leads there until %s; "+
		"next:  %s", errAbsent, show.Key(m.Key), show.Key(r.Key), until, next)
}

// keyNotFound is the error of a key that is not there, called text, with what it was moved to.
func (s *session) keyNotFound(ctx context.Context, key []byte, text string) error {
	r, err := s.Client.Redirects(ctx, &aweighv1.RedirectsRequest{Key: key, RangeEnd: append(bytes.Clone(key), 0), Limit: 1, Serializable: true})
	if err != nil || len(r.Moved) == 0 {
		return fmt.Errorf("%w: %s", client.ErrNotFound, text)
	}
	return fmt.Errorf("%w: %s; it was moved to %s", client.ErrNotFound, text, show.Key(r.Moved[0].To))
}

// led is the key that an alias leads to, another than its own if it was moved; r is nil if it names nothing, or is a
// key and not an alias, which stays unchanged.
func (a *app) led(ctx context.Context, s *session, n alias.Name, serializable bool) (key []byte, r *aweighv1.ResolveResponse, err error) {
	if n.Raw() {
		return n.Key(), nil, nil
	}
	r, err = a.resolve(ctx, s, n.Key(), 0, serializable)
	if errors.Is(err, client.ErrNotFound) { // and may come to be
		return n.Key(), nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return r.Key, r, nil
}

// object finds the object that an argument means: a name, or a UID or how one
// begins. The answer names it by one of its aliases.
func (a *app) object(ctx context.Context, s *session, text string, raw bool, version func(alias.Name) (int64, error)) (*aweighv1.ResolveResponse, error) {
	if raw || strings.ContainsAny(text, `/"@`) {
		n, err := nameOf(text, raw, writes)
		if err != nil {
			return nil, err
		}
		v, err := version(n)
		if err != nil {
			return nil, err
		}
		r, err := a.resolve(ctx, s, n.Key(), v, false)
		if errors.Is(err, client.ErrNotFound) {
			err = fmt.Errorf("%w; \"aweigh ls\" lists the keys", err)
		}
		return r, err
	}
	v, err := version(alias.Name{})
	if err != nil {
		return nil, err
	}
	o, err := s.Client.Object(ctx, &aweighv1.ObjectRequest{Uid: text, Limit: 1})
	if err != nil {
		return nil, orName(err)
	}
	if len(o.Aliases) == 0 {
		return nil, fmt.Errorf("%w: %s has no alias any more; see aweigh uid %.12s", errAbsent, o.Uid, o.Uid)
	}
	return a.resolve(ctx, s, o.Aliases[0], v, false)
}

// orName adds to the error about a UID that the argument may have been meant as a name.
func orName(err error) error {
	if errors.Is(err, client.ErrNotFound) || errors.Is(err, client.ErrInvalid) {
		err = fmt.Errorf("%w; a key starts with / or stands in quotes, and an alias is TYPE@DOMAIN (\"aweigh ls\" lists the keys)", err)
	}
	return err
}

// unversioned refuses a version where there is nothing to do with one.
func unversioned(n alias.Name) (int64, error) {
	if n.Version() != 0 {
		return 0, fmt.Errorf("%w: names are changed, not their versions; leave out .v%d", errUsage, n.Version())
	}
	return 0, nil
}

// fresh is the key that a name is to have.
func fresh(text string) ([]byte, error) {
	n, err := nameOf(text, false, writes)
	if err != nil {
		return nil, err
	}
	if n.Version() != 0 {
		return nil, fmt.Errorf("%w: a new name has no version; leave out .v%d", errUsage, n.Version())
	}
	return n.Key(), nil
}

// naming has a command make a change of names, once, and print the outcome. fill completes the request within the time
// that an answer may take.
func (a *app) naming(c *cobra.Command, kind aweighv1.NameRequest_Kind, fill func(ctx context.Context, s *session, req *aweighv1.NameRequest, args []string) error) *cobra.Command {
	as := a.asFlags(c)
	once, wait := patientFlags(c), waitFlag(c)
	dry := dryFlag(c, "nonce", "token", "wait")
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		o, err := once()
		if err != nil {
			return err
		}
		if err := as.unlock(ctx); err != nil {
			return err
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		req := &aweighv1.NameRequest{Kind: kind, Once: o}
		if err := fill(ctx, s, req, args); err != nil {
			return err
		}
		if *dry {
			return a.foresee(ctx, s, &aweighv1.ForecastRequest{Change: &aweighv1.ForecastRequest_Name{Name: req}}, as)
		}
		var resp *aweighv1.NameResponse
		if as.given() {
			resp, err = as.name(ctx, s, req)
		} else {
			resp, err = s.Client.Name(ctx, req)
		}
		if err != nil {
			return a.pended(ctx, s, err, wait())
		}
		return s.Printer.Named(req, resp)
	})
}

func (a *app) uid() *cobra.Command {
	c := &cobra.Command{
		Use: "uid UID|NAME", Short: "Show an object: its aliases, versions and changes", Args: cobra.ExactArgs(1),
		Long: "Shows the object with a UID, which no change of names alters, or of the one that NAME names. UID may\n" +
			"be its start, four characters at least, if that is unique. Objects without any\n" +
			"alias are retired: their history stays.\n\n" + oneNameHelp,
		Example: "  aweigh uid l6d3en7r\n  aweigh uid org@wikipedia.en/articles/42\n  aweigh uid l6d3en7r3np3tlozmlmux72kwrlissa7s7uhlyish4ezlc2ungfq -o json",
	}
	raw := c.Flags().Bool("raw", false, "take NAME as it is")
	limit := c.Flags().Int64("limit", 100, "at most so many changes")
	serializable := c.Flags().Bool("serializable", false, "the node answers alone")
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		ctx, cancel := s.limited(ctx)
		defer cancel()
		uid := args[0]
		if *raw || strings.ContainsAny(uid, "/@\"") {
			key, err := keyOf(uid, *raw, reads)
			if err != nil {
				return err
			}
			r, err := a.resolve(ctx, s, key, 0, *serializable)
			if err != nil {
				return err
			}
			uid = r.Uid
		}
		resp, err := s.Client.Object(ctx, &aweighv1.ObjectRequest{Uid: uid, Limit: *limit, Serializable: *serializable})
		if err != nil {
			return orName(err)
		}
		return s.Printer.Object(resp)
	})
}

func (a *app) rollback() *cobra.Command {
	c := &cobra.Command{
		Use: "rollback NAME", Short: "Give an object the content of an old version again", Args: cobra.ExactArgs(1),
		Long: "Writes a new version that equals an old one, which NAME or --version names, and waits\n" +
			"until that is final. Nothing is lost: \"aweigh history\" lists all versions.\n\n" + oneNameHelp,
		Example: "  aweigh rollback org@wikipedia.en/articles/42.v3\n  aweigh rollback /greeting --version 1 -m \"typo\"",
	}
	raw := c.Flags().Bool("raw", false, "take NAME as it is")
	version := versionFlag(c, "the version to go back to")
	return a.naming(c, aweighv1.NameRequest_KIND_ROLLBACK, func(ctx context.Context, s *session, req *aweighv1.NameRequest, args []string) error {
		n, err := nameOf(args[0], *raw, writes)
		if err != nil {
			return err
		}
		v, err := version(n)
		if err == nil && v == 0 {
			err = fmt.Errorf("%w: to which version? Give --version, or write it after an alias, as in org@example/motd.v1; \"aweigh history\" lists them", errUsage)
		}
		if err != nil {
			return err
		}
		r, err := a.resolve(ctx, s, n.Key(), v, false)
		if err != nil {
			return err
		}
		req.Uid, req.Key, req.Place = r.Uid, r.Key, r.Place
		return nil
	})
}

func (a *app) fork() *cobra.Command {
	c := &cobra.Command{
		Use: "fork NAME|UID NEW", Short: "Make a new object from a version of another", Args: cobra.ExactArgs(2),
		Long: "Makes an object named NEW that begins with the content of another: of its newest\n" +
			"version, or of the one that NAME or --version names. It has a UID of its own, and\n" +
			"keeps on record what it was forked from. Rights: alias or read of NAME, and alias of\n" +
			"NEW.\n\n" + oneNameHelp,
		Example: "  aweigh fork org@wikipedia.en/articles/42.v3 org@wikipedia.en/drafts/42",
	}
	raw := c.Flags().Bool("raw", false, "take NAME as it is")
	version := versionFlag(c, "the version to begin with")
	return a.naming(c, aweighv1.NameRequest_KIND_FORK, func(ctx context.Context, s *session, req *aweighv1.NameRequest, args []string) (err error) {
		if req.To, err = fresh(args[1]); err != nil {
			return err
		}
		r, err := a.object(ctx, s, args[0], *raw, version)
		if err != nil {
			return err
		}
		req.Uid, req.Place = r.Uid, r.Place
		return nil
	})
}
