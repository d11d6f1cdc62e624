package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/mr-tron/base58"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

func TestPrefixesNarrowToTheKeysOfAScope(t *testing.T) {
	for _, c := range []struct {
		prefixes []string
		below    string
		want     []string
		some     bool
	}{
		{nil, "/a/", nil, true},
		{[]string{"/a/"}, "/a/", nil, true},
		{[]string{"/a/"}, "/a/b/", nil, true},
		{[]string{"/a/b/", "/c/"}, "/a/", []string{"/a/b/"}, true},
		{[]string{"/c/"}, "/a/", nil, false},
	} {
		var in [][]byte
		for _, p := range c.prefixes {
			in = append(in, []byte(p))
		}
		out, some := narrowed(in, []byte(c.below))
		var got []string
		for _, p := range out {
			got = append(got, string(p))
		}
		if !slices.Equal(got, c.want) || some != c.some {
			t.Errorf("%q below %q: %q, %v", c.prefixes, c.below, got, some)
		}
	}
}

// TestAuthorsOfAScopeBelow: anchors above that left, or are barred, get no entry; no entry replaces another, or the one
// of the scope's own anchors.
func TestAuthorsOfAScopeBelow(t *testing.T) {
	key := func(n byte) votes.PublicKey {
		seed := aweigh.Sum([]byte{n})
		k, err := votes.KeyFromSeed(votes.Ed25519, seed[:])
		if err != nil {
			t.Fatal(err)
		}
		return k.Public()
	}
	standing := func(name, word string, n byte) *aweighv1.Standing {
		id := key(n).ID()
		peer := base58.Encode(append([]byte("\x00\x24\x08\x01\x12\x20"), key(n+100).Bytes...))
		return &aweighv1.Standing{Id: id[:], Name: name, Peer: peer, Standing: word}
	}
	standings := []*aweighv1.Standing{
		standing("on", "active", 1), standing("new", "probation", 2), standing("bad", "barred", 3), standing("gone", "evicted", 4),
		standing("own", "active", 5), standing("a=b", "active", 6),
	}
	above := []scope.Author{
		{Name: "anchors", Who: scope.Anyone, Prefixes: [][]byte{[]byte("/a/guests/")}},
		{Name: "deleters", Who: scope.Anchors, Verbs: []string{scope.VerbDelete}},
		{Name: "putters", Who: scope.Anchors, Verbs: []string{scope.VerbPut}},
	}
	all := authorsUnder(above, standings, []byte("/a/"), []scope.Anchor{{Key: key(5)}}, false)
	p := scope.DefaultPolicy(quorum.BFT)
	if p.Authors = all; p.Check() != nil {
		t.Fatal(p.Check())
	}
	for _, c := range []struct {
		name   string
		author aweigh.Hash
		anchor bool
		want   string // what it may do with /a/x
	}{
		{"an anchor of the scope", key(5).ID(), true, "put delete"},
		{"an anchor above", key(101).ID(), false, "put delete"},
		{"one on probation", key(102).ID(), false, "put delete"},
		{"a barred one", key(103).ID(), false, ""},
		{"an evicted one", key(104).ID(), false, ""},
		{"one with a strange name", key(106).ID(), false, "put delete"},
		{"a stranger", key(9).ID(), false, ""},
	} {
		got := ""
		for _, verb := range []string{"put", "delete"} {
			if p.Rights(c.author, c.anchor).Entry(verb, []byte("/a/x")) != nil {
				got += " " + verb
			}
		}
		if got = strings.TrimSpace(got); got != c.want {
			t.Errorf("%s may %q, want %q", c.name, got, c.want)
		}
	}
}
