package main

import (
	"bytes"
	"context"
	"encoding/hex"
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
// If it is closed, its anchors alone may change and read its keys; otherwise all nodes that the network lets read may.
func (s *session) authorsBelow(ctx context.Context, above *aweighv1.Scope, prefix []byte, anchors []scope.Anchor, closed bool) ([]scope.Author, error) {
	in := *s
	in.Client, in.in = s.Client.In(inScope(above)), inScope(above)
	r, p, err := in.policy(ctx)
	if err != nil {
		return nil, err
	}
	return authorsUnder(p.Authors, r.Anchors, prefix, anchors, closed), nil
}

// authorsUnder is authorsBelow for the authors and anchors of the scope above.
func authorsUnder(above []scope.Author, standings []*aweighv1.Standing, prefix []byte, anchors []scope.Anchor, closed bool) []scope.Author {
	all := []scope.Author{{Name: scope.Anchors.String(), Who: scope.Anchors}}
	if closed {
		return all
	}
	all = append(all, scope.Author{Name: "network", Who: scope.Anyone, Verbs: []string{scope.VerbRead}})
	for _, entry := range above {
		if entry.Who == scope.OnList { // the new scope has no such keys
			continue
		}
		prefixes, some := narrowed(entry.Prefixes, prefix)
		if entry.Prefixes = prefixes; !some {
			continue
		}
		if entry.Who != scope.Anchors {
			all = addAuthor(all, entry)
			continue
		}
		for _, x := range standings {
			key, ok := scope.PeerKey(x.Peer)
			if !ok || !inRoster(x) || slices.ContainsFunc(anchors, func(a scope.Anchor) bool { id := a.Key.ID(); return bytes.Equal(id[:], x.Id) }) {
				continue
			}
			one := scope.Author{Name: "above-" + hex.EncodeToString(x.Id), Who: scope.OneKey, Key: key, Prefixes: prefixes, Verbs: entry.Verbs, Quota: entry.Quota}
			one.Name = one.Name[:min(len(one.Name), 22)]
			if name := strings.Join(strings.Fields(x.Name), "-"); len(name) < 32 && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == '=' }) {
				one.Name = fmt.Sprintf("above-%s-%.8s", name, hex.EncodeToString(x.Id))
			}
			all = addAuthor(all, one)
		}
	}
	return all
}

// addAuthor adds an author to a list; one whose name another entry has gets a number. Entries add up, so none may take
// the place of another.
func addAuthor(all []scope.Author, a scope.Author) []scope.Author {
	name := a.Name
	for n := 2; slices.ContainsFunc(all, func(x scope.Author) bool { return x.Name == a.Name }); n++ {
		number := fmt.Sprintf("-%d", n)
		a.Name = strings.ToValidUTF8(name[:min(len(name), 64-len(number))], "") + number
	}
	return policytext.SetAuthor(all, a)
}

// inRoster reports whether an anchor is in the roster of the epoch, and not one that left or is barred.
func inRoster(x *aweighv1.Standing) bool {
	return slices.Contains([]string{"active", "standby", "probation"}, x.Standing)
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
