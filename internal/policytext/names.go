package policytext

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// SharedNames reports which authors that a policy has and another has not are hard to tell from others in histories,
// audit trails and proofs, which name them: those with the name of an anchor, whose key they do not have, and those
// whose key has another name as well. anchors are the names of anchors by their keys and by those of their nodes.
func SharedNames(from, to scope.Policy, anchors map[aweigh.Hash]string) (all []string) {
	known := make(map[string]bool)
	for _, a := range from.Authors {
		known[writeAuthor(a)] = true
	}
	taken := slices.Collect(maps.Values(anchors))
	for i := range to.Authors {
		a := &to.Authors[i]
		if a.Who != scope.OneKey || known[writeAuthor(*a)] {
			continue
		}
		anchor := anchors[a.Key.ID()]
		if slices.Contains(taken, a.Name) && anchor != a.Name {
			all = append(all, fmt.Sprintf("author %s: an anchor has this name, and another key: histories, audit trails and proofs "+
				"call both %s, so that only the key tells them apart; choose another name", quoted(a.Name), quoted(a.Name)))
		}
		if anchor != "" && anchor != a.Name {
			all = append(all, fmt.Sprintf("author %s: its key is that of the anchor %s or of its node: it has the rights of both, and "+
				"histories, audit trails and proofs call it %s", quoted(a.Name), quoted(anchor), quoted(anchor)))
			continue
		}
		shown := a.Name
		var others []string
		for j := range to.Authors {
			if b := &to.Authors[j]; b.Who == scope.OneKey && b.Name != a.Name && b.Key.ID() == a.Key.ID() {
				others = append(others, quoted(b.Name))
				if j > i { // as scope.Terms.AuthorNames has it
					shown = b.Name
				}
			}
		}
		if len(others) > 0 {
			all = append(all, fmt.Sprintf("author %s: its key is also that of %s: it has the rights of all these entries, to revoke one "+
				"leaves those of the others, and histories, audit trails and proofs call it %s", quoted(a.Name), strings.Join(others, " and "), quoted(shown)))
		}
	}
	return all
}
