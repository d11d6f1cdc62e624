package policytext

import (
	"slices"
	"strings"
	"testing"

	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// TestVainGrantsAreNamed: a warning names the link of a chain by which a verb or a prefix of a token permits nothing.
func TestVainGrantsAreNamed(t *testing.T) {
	seed := make([]byte, 32)
	key, err := votes.KeyFromSeed(votes.Ed25519, seed)
	if err != nil {
		t.Fatal(err)
	}
	author := key.Public()
	bytesOf := func(all ...string) (out [][]byte) {
		for _, s := range all {
			out = append(out, []byte(s))
		}
		return out
	}
	p := scope.Policy{
		Authors: []scope.Author{
			{Name: "a", Who: scope.OneKey, Key: author, Prefixes: bytesOf("/apps/"), Verbs: []string{"delete", "put"}},
			{Name: "b", Who: scope.OneKey, Key: author, Prefixes: bytesOf("/jobs/"), Verbs: []string{"lease", "pay"}},
		},
		Actions: action.Table{{Verb: "pay", Class: action.Write}},
	}
	by := &Signer{Rights: p.Rights(author.ID(), false), Authors: p.Authors, Actions: p.Actions}
	grant := func(name string, prefixes [][]byte, verbs ...string) scope.Grant {
		return scope.Grant{Name: name, Prefixes: prefixes, Verbs: verbs}
	}
	const nothing = "the token permits nothing, as things stand"
	for name, c := range map[string]struct {
		by    *Signer
		chain []scope.Grant
		want  []string
	}{
		"all of it":                    {by, []scope.Grant{grant("x", nil)}, nil},
		"a part":                       {by, []scope.Grant{grant("x", bytesOf("/apps/web/"), "put")}, nil},
		"wider than the entries":       {by, []scope.Grant{grant("x", bytesOf("/"), "pay", "put")}, []string{`below /, the policy permits such changes to the signer only in /apps/, /jobs/; the token permits no more`}},
		"a verb of no key":             {by, []scope.Grant{grant("x", nil, "lease")}, nil},
		"another prefix":               {by, []scope.Grant{grant("x", bytesOf("/other/"), "put")}, []string{`the policy permits no such change below /other/ to the signer, so the new token does not either`, nothing}},
		"another prefix, but leases":   {by, []scope.Grant{grant("x", bytesOf("/other/"))}, []string{`the policy permits no such change below /other/`}},
		"one of two prefixes":          {by, []scope.Grant{grant("x", bytesOf("/apps/", "/other/"))}, []string{`below /other/`}},
		"another verb":                 {by, []scope.Grant{grant("x", nil, "alias")}, []string{`the policy does not permit the verb alias to the signer`, nothing}},
		"one of two verbs":             {by, []scope.Grant{grant("x", nil, "alias", "put")}, []string{`the verb alias`}},
		"a verb of another entry":      {by, []scope.Grant{grant("x", bytesOf("/apps/"), "pay")}, []string{`the policy permits no such change below /apps/ to the signer`, nothing}},
		"an author without an entry":   {&Signer{}, []scope.Grant{grant("x", nil)}, []string{"the policy permits its signer no change"}},
		"narrowed":                     {nil, []scope.Grant{grant("x", bytesOf("/apps/"), "put"), grant("y", bytesOf("/apps/web/"), "put")}, nil},
		"narrowed to another prefix":   {nil, []scope.Grant{grant("x", bytesOf("/apps/"), "put"), grant("y", bytesOf("/jobs/"))}, []string{`the grant x permits no such change below /jobs/, so the new token does not either; it permits /apps/`, nothing}},
		"narrowed to another verb":     {nil, []scope.Grant{grant("x", nil, "delete", "put"), grant("y", nil, "lease", "put")}, []string{`the grant x does not permit the verb lease, so the new token does not either; it permits delete, put`}},
		"narrowed apart in the middle": {nil, []scope.Grant{grant("x", bytesOf("/a/", "/b/")), grant("y", bytesOf("/a/"), "put"), grant("z", bytesOf("/b/"))}, []string{`the grant y permits no such change below /b/`, nothing}},
	} {
		got := Vain(c.chain, c.by)
		if len(got) != len(c.want) || !slices.EqualFunc(got, c.want, strings.Contains) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
