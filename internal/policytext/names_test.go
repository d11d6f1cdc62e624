package policytext_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// TestSharedNamesAreReported: of a new author with the name of an anchor, or with a key that has another name.
func TestSharedNamesAreReported(t *testing.T) {
	key := func(n byte) votes.PublicKey {
		k, err := votes.KeyFromSeed(votes.Ed25519, bytes.Repeat([]byte{n}, 32))
		if err != nil {
			t.Fatal(err)
		}
		return k.Public()
	}
	anchors := map[aweigh.Hash]string{key(1).ID(): "node1", key(2).ID(): "node2"}
	author := func(name string, n byte) scope.Author {
		return scope.Author{Name: name, Who: scope.OneKey, Key: key(n)}
	}
	with := func(authors ...scope.Author) (p scope.Policy) {
		p = scope.DefaultPolicy(quorum.BFT)
		p.Authors = append(p.Authors, authors...)
		return p
	}
	for _, c := range []struct {
		from, to scope.Policy
		want     []string
	}{
		{with(), with(author("bob", 9)), nil},
		{with(), with(author("node1", 1)), nil},
		{with(), with(author("node2", 9)), []string{"an anchor has this name"}},
		{with(), with(author("bob", 2)), []string{"call it node2"}},
		{with(), with(author("node1", 2)), []string{"an anchor has this name", "call it node2"}},
		{with(author("alice", 9)), with(author("alice", 9), author("alice2", 9)), []string{"that of alice: .* call it alice2"}},
		{with(author("bob", 9)), with(author("a", 9), author("bob", 9)), []string{"that of bob: .* call it bob"}},
	} {
		got := policytext.SharedNames(c.from, c.to, anchors)
		if len(got) != len(c.want) {
			t.Errorf("%q, want %q", got, c.want)
			continue
		}
		for i, want := range c.want {
			for _, part := range strings.Split(want, ".*") {
				if !strings.Contains(got[i], part) {
					t.Errorf("%q, want %q", got[i], want)
				}
			}
			names := scope.Terms{Policy: c.to}
			if _, name, ok := strings.Cut(got[i], "call it "); ok && !strings.HasPrefix(name, "node") {
				if said := names.AuthorNames()[c.to.Authors[len(c.to.Authors)-1].Key.ID()]; said != name {
					t.Errorf("histories call it %q, and the warning %q", said, name)
				}
			}
		}
		if again := policytext.SharedNames(c.to, c.to, anchors); len(again) > 0 {
			t.Errorf("of what was there: %q", again)
		}
	}
}
