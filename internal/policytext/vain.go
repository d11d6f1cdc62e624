package policytext

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/scope"
)

// Signer is the author of a token's first grant, as a policy knows it.
type Signer struct {
	Rights  scope.Rights
	Authors []scope.Author // of the policy
	Actions action.Table
}

// link is a grant, or the policy, that bounds what a token permits.
type link struct {
	name     string // as in "the grant ci"
	permits  func(verb string, key []byte) bool
	prefixes [][]byte // that it permits; none: all, or not to be listed
	verbs    []string // the same
}

// Vain reports which verbs and prefixes of the last grant of a chain permit nothing, or less than they name, since a
// grant before does not permit them, or the policy does not permit them to the signer of the first. Without a signer,
// the policy is not known. Verbs that no rule knows are those of OddVerbs.
func Vain(chain []scope.Grant, by *Signer) (all []string) {
	last, links := &chain[len(chain)-1], linksOf(chain[:len(chain)-1])
	if by != nil && by.Rights.None() {
		return []string{"the token permits nothing: the policy permits its signer no change; see \"aweigh auth ls\""}
	}
	verbs, keys := slices.Clone(scope.AuthorVerbs), [][]byte{nil}
	if by != nil {
		verbs = Verbs(by.Actions)
		links = append(links, link{name: "the policy", permits: func(verb string, key []byte) bool { return by.Rights.Entry(verb, key) != nil }})
		for i := range by.Authors {
			keys = append(keys, by.Authors[i].Prefixes...)
		}
	}
	for i := range chain {
		keys, verbs = append(keys, chain[i].Prefixes...), append(verbs, chain[i].Verbs...)
	}
	if len(last.Verbs) > 0 {
		verbs = slices.DeleteFunc(slices.Clone(last.Verbs), func(verb string) bool {
			return by != nil && !slices.Contains(Verbs(by.Actions), verb)
		})
	}
	for _, verb := range last.Verbs {
		for _, l := range links {
			if slices.Contains(verbs, verb) && !some(l.permits, []string{verb}, keys) {
				all = append(all, fmt.Sprintf("%s does not permit the verb %s%s, so the new token does not either%s",
					l.name, quoted(verb), l.whom(), listed(l.verbs)))
				break
			}
		}
	}
	ofKeys := slices.DeleteFunc(slices.Clone(verbs), scope.OfNoKey)
	for _, prefix := range last.Prefixes {
		below := slices.DeleteFunc(slices.Clone(keys), func(key []byte) bool { return !bytes.HasPrefix(key, prefix) })
		for _, l := range links {
			if len(ofKeys) > 0 && some(l.permits, ofKeys, below) && !some(l.permits, ofKeys, [][]byte{prefix}) {
				var part []string
				for _, key := range below {
					if some(l.permits, ofKeys, [][]byte{key}) && !slices.Contains(part, quoted(string(key))) {
						part = append(part, quoted(string(key)))
					}
				}
				all = append(all, fmt.Sprintf("below %s, %s permits such changes%s only in %s; the token permits no more",
					quoted(string(prefix)), l.name, l.whom(), strings.Join(part, ", ")))
				break
			}
			if len(ofKeys) > 0 && !some(l.permits, ofKeys, below) {
				var shown []string
				for _, p := range l.prefixes {
					shown = append(shown, quoted(string(p)))
				}
				all = append(all, fmt.Sprintf("%s permits no such change below %s%s, so the new token does not either%s",
					l.name, quoted(string(prefix)), l.whom(), listed(shown)))
				break
			}
		}
	}
	together := func(verb string, key []byte) bool {
		return last.Permits(verb, key) && !slices.ContainsFunc(links, func(l link) bool { return !l.permits(verb, key) })
	}
	if !some(together, verbs, keys) {
		all = append(all, "the token permits nothing, as things stand")
	}
	return all
}

func linksOf(grants []scope.Grant) (all []link) {
	for i := range grants {
		g := &grants[i]
		all = append(all, link{"the grant " + quoted(g.Name), g.Permits, g.Prefixes, g.Verbs})
	}
	return all
}

// whom adds to the policy the author that it is asked about.
func (l *link) whom() string {
	if l.name == "the policy" {
		return " to the signer"
	}
	return ""
}

// some reports whether something is permitted of some verb on some key.
func some(permits func(verb string, key []byte) bool, verbs []string, keys [][]byte) bool {
	return slices.ContainsFunc(verbs, func(verb string) bool {
		return slices.ContainsFunc(keys, func(key []byte) bool { return permits(verb, key) })
	})
}

func listed(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; it permits " + strings.Join(names, ", ")
}
