package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/scope"
)

// authorsBelow are the authors of a scope that is to be founded: its anchors, and those that may change its keys now,
// by the policy of the scope above. The new scope cannot know the roster of the scope above, so the nodes of the
// anchors there are listed by their keys, as they are now.
func (s *session) authorsBelow(ctx context.Context, above *aweighv1.Scope, prefix []byte, anchors []scope.Anchor) ([]scope.Author, error) {
	in := *s
	in.Client, in.in = s.Client.In(inScope(above)), inScope(above)
	r, p, err := in.policy(ctx)
	if err != nil {
		return nil, err
	}
	all := scope.DefaultAuthors()
	for _, entry := range p.Authors {
		prefixes, some := narrowed(entry.Prefixes, prefix)
		if entry.Prefixes = prefixes; !some {
			continue
		}
		if entry.Who != scope.Anchors {
			all = policytext.SetAuthor(all, entry)
			continue
		}
		for _, x := range r.Anchors {
			key, ok := scope.PeerKey(x.Peer)
			if !ok || slices.ContainsFunc(anchors, func(a scope.Anchor) bool { id := a.Key.ID(); return bytes.Equal(id[:], x.Id) }) {
				continue
			}
			one := scope.Author{Name: fmt.Sprintf("above-%s-%x", strings.Join(strings.Fields(x.Name), "-"), x.Id[:4]), Who: scope.OneKey, Key: key, Prefixes: prefixes, Verbs: entry.Verbs}
			if len(one.Name) > 64 {
				one.Name = fmt.Sprintf("above-%x", x.Id[:8])
			}
			all = policytext.SetAuthor(all, one)
		}
	}
	return all, nil
}

// narrowed are the prefixes that stand for the same keys below another prefix; some is false if there are no such keys.
func narrowed(prefixes [][]byte, below []byte) (out [][]byte, some bool) {
	for _, prefix := range prefixes {
		switch {
		case bytes.HasPrefix(below, prefix):
			return nil, true
		case bytes.HasPrefix(prefix, below):
			out = append(out, prefix)
		}
	}
	return out, len(prefixes) == 0 || len(out) > 0
}
