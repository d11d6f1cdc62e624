package policytext

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/scope"
)

// Verbs are the verbs that an author may be asked about under a table of actions, in order.
func Verbs(actions action.Table) []string {
	all := append(slices.Clone(scope.AuthorVerbs), action.Write.String())
	for i := range actions {
		all = append(all, actions[i].Verb)
	}
	return slices.Compact(slices.Sorted(slices.Values(all)))
}

// CheckVerb returns an error that lists the verbs if a verb is not one of Verbs.
func CheckVerb(verb string, actions action.Table) error {
	known := Verbs(actions)
	if slices.Contains(known, verb) {
		return nil
	}
	return fmt.Errorf("no rule knows the verb %s; the verbs of this scope are %s%s", quoted(verb), strings.Join(known, ", "), meant(verb, known))
}

// OddVerbs report which verbs of an author or a token permit nothing that the verb suggests, under a table of actions:
// they are valid, as a later table may know them.
func OddVerbs(verbs []string, actions action.Table) (all []string) {
	known := slices.Clone(scope.AuthorVerbs)
	for i := range actions {
		known = append(known, actions[i].Verb)
	}
	for _, verb := range verbs {
		switch {
		case slices.Contains(known, verb):
		case verb == action.Write.String():
			all = append(all, `the verb write permits "aweigh do write" alone; "aweigh put" needs the verb put`)
		default:
			all = append(all, fmt.Sprintf("the verb %s permits nothing: it is not one of %s, and no action of the policy is called so%s",
				quoted(verb), strings.Join(scope.AuthorVerbs, ", "), meant(verb, known)))
		}
	}
	return all
}

// OddPrefixes report which prefixes of an author or a token begin no key as people write them: those without a slash.
func OddPrefixes(prefixes [][]byte) (all []string) {
	for _, p := range prefixes {
		if len(p) > 0 && p[0] != '/' {
			all = append(all, fmt.Sprintf("the prefix %s is of no key that begins with a slash; did you mean %s?",
				quoted(string(p)), quoted("/"+string(p))))
		}
	}
	return all
}

// oddAuthors report the odd verbs of authors that a policy has and another has not.
func oddAuthors(from, to scope.Policy) (all []string) {
	known := make(map[string]bool)
	for _, a := range from.Authors {
		known[writeAuthor(a)] = true
	}
	for _, a := range to.Authors {
		if known[writeAuthor(a)] {
			continue
		}
		for _, odd := range append(OddVerbs(a.Verbs, to.Actions), OddPrefixes(a.Prefixes)...) {
			all = append(all, fmt.Sprintf("author %s: %s", quoted(a.Name), odd))
		}
	}
	return all
}
