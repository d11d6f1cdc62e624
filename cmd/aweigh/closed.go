package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/show"
)

// scopeNamed matches the prefix of the scope that an error is about.
var scopeNamed = regexp.MustCompile(`\bscope (?:of )?("(?:[^"\\]|\\.)*")`)

// unread adds to an error about a scope that does not let the node read what to do about it. args are those of the
// command, of which the first may be a key.
func (s *session) unread(ctx context.Context, args []string, err error) error {
	held := !errors.Is(err, client.ErrNotHeld)
	if err == nil || errors.As(err, new(errQuiet)) || held && !unreadable(err) {
		return err
	}
	ctx, cancel := s.limited(context.WithoutCancel(ctx))
	defer cancel()
	prefix, named := "", false
	if at := scopeNamed.FindStringSubmatch(err.Error()); at != nil {
		text, bad := strconv.Unquote(at[1])
		prefix, named = text, bad == nil
	}
	if !named && len(args) > 0 {
		key, bad := judgedKey(args[0])
		all, listErr := s.Client.Scopes(ctx)
		if x := deciding(all, key, false); bad == nil && listErr == nil && x != nil {
			prefix, named = string(x.Prefix), true
		}
	}
	if !named || prefix == "" {
		return err
	}
	if !held {
		ask := s.Client
		if s.all != nil {
			ask = s.all
		}
		_, readErr := ask.Range(ctx, &aweighv1.RangeRequest{Key: []byte(prefix), CountOnly: true})
		if !unreadable(readErr) {
			return err
		}
		err = fmt.Errorf("%w; its policy does not let this node read, so --follow alone is not enough", err)
	}
	word := show.Word(prefix)
	return fmt.Errorf("%w; ask a node of the scope's anchors with --api (\"aweigh scope show %s\" names them), or let this node read, "+
		"at one of them: aweigh auth grant NAME --public-key KEY --verb read --scope %s (KEY is the author that \"aweigh status\" prints here)",
		err, word, word)
}

// warnBefore warns of what a closed scope does not close: what was below its prefix in the scope above before.
func (a *app) warnBefore(ctx context.Context, s *session, above *aweighv1.Scope, prefix []byte) {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	some := errors.New("an entry")
	err := s.Client.In(inScope(above)).Tail(ctx, &aweighv1.TailRequest{Prefix: prefix}, func(r *aweighv1.TailResponse) error {
		if slices.ContainsFunc(r.Items, func(x *aweighv1.TailItem) bool { return len(x.Entry) > 0 }) {
			return some
		}
		return nil
	})
	if err == nil {
		return
	}
	what := "are there already, or were"
	if !errors.Is(err, some) {
		what = fmt.Sprintf("may be there already, or have been (%v)", err)
	}
	name := show.ScopeName(above)
	fmt.Fprintf(a.err, "aweigh: warning: keys below %s %s, and --closed does not close what was before: nodes that may read\n"+
		"scope %s have the old values, and keep the history. Once the new scope is there, run \"aweigh compact REVISION --scope %s\"\n"+
		"with the newest revision, and write new values for what is secret: old blocks, backups and copies stay\n",
		show.Key(prefix), what, name, show.Word(name))
}
