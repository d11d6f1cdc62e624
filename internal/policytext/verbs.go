package policytext

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/scope"
)

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
		for _, odd := range OddVerbs(a.Verbs, to.Actions) {
			all = append(all, fmt.Sprintf("author %s: %s", quoted(a.Name), odd))
		}
	}
	return all
}
