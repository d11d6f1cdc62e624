package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
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
