package policytext

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// authorHelp states how authors are written.
const authorHelp = `NAME who=anchors (the anchors and their nodes), who=any, or who=KEY, like ed25519:…; prefix=/apps/ for each
prefix of keys that may change, none for all keys; and verbs=put,delete for what may be done: put, delete,
alias, lease, compact, users, the verbs of actions, and read; none for everything. A put with a lease takes
delete as well. Entries add up. A node that may not read gets nothing from the scope's nodes. who=listed list=/observers/ verbs=read are the nodes that keys
below /observers/ list, as "aweigh invite" and "aweigh join" do. A quota is what all authors of an entry have
together: rate=N changes a second, bytes=1MiB of keys and values that they wrote last, leases=N, and motions=N
that are open; without the word there is no bound.`

// writeAuthor is an author as ParseAuthor reads it.
func writeAuthor(a scope.Author) string {
	who := a.Who.String()
	if a.Who == scope.OneKey {
		who = a.Key.String()
	}
	words := []string{quoted(a.Name), "who=" + who}
	for _, prefix := range a.Prefixes {
		words = append(words, "prefix="+quoted(string(prefix)))
	}
	if len(a.List) > 0 {
		words = append(words, "list="+quoted(string(a.List)))
	}
	if len(a.Verbs) > 0 {
		words = append(words, "verbs="+strings.Join(a.Verbs, ","))
	}
	return strings.Join(append(words, writeQuota(a.Quota)...), " ")
}

// ParseAuthor reads one author: a name and then words like prefix=/apps/, see authorHelp. Errors wrap ErrSyntax;
// scope.Policy.Check checks whether a scope can have it.
func ParseAuthor(text string) (a scope.Author, err error) {
	wrong := func(format string, args ...any) (scope.Author, error) {
		return scope.Author{}, fmt.Errorf("%w: author: %w", ErrSyntax, fmt.Errorf(format, args...))
	}
	words := strings.Fields(text)
	if len(words) == 0 || strings.Contains(words[0], "=") {
		return wrong("it begins with a name, as in: alice who=ed25519:…")
	}
	if a.Name, err = unquoted(words[0]); err != nil {
		return wrong("%s: %w", words[0], err)
	}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch {
		case value == "":
			return wrong("%q is not a word like prefix=/apps/", word)
		case key == "who" && a.Who != 0 || key == "verbs" && a.Verbs != nil || key == "list" && a.List != nil:
			return wrong("%s stands twice", key)
		case key == "who":
			if a.Who, a.Key, err = parseWho(value); err != nil {
				return wrong("%w", err)
			}
		case key == "verbs":
			a.Verbs = strings.Split(value, ",")
			slices.Sort(a.Verbs)
		case key == "prefix" || key == "list":
			text, err := unquoted(value)
			if err != nil {
				return wrong("%s: %w", word, err)
			}
			if key == "list" {
				a.List = []byte(text)
			} else {
				a.Prefixes = append(a.Prefixes, []byte(text))
			}
		default:
			known, err := readQuota(&a.Quota, key, value)
			if err != nil {
				return wrong("%s: %w", key, err)
			}
			if !known {
				return wrong("it has no %s%s", key, meant(key, []string{"who", "prefix", "list", "verbs", "rate", "bytes", "leases", "motions"}))
			}
		}
	}
	if a.Who == 0 {
		return wrong("it needs who=anchors, who=any, who=listed or who=KEY")
	}
	slices.SortFunc(a.Prefixes, bytes.Compare)
	return a, nil
}

func parseWho(text string) (who scope.Who, key votes.PublicKey, err error) {
	for _, who := range []scope.Who{scope.Anchors, scope.Anyone, scope.OnList} {
		if text == who.String() {
			return who, key, nil
		}
	}
	if key, err = votes.ParsePublicKey(text); err != nil {
		err = fmt.Errorf("who is anchors, any, listed or a key: %w", err)
	}
	return scope.OneKey, key, err
}

// SetAuthor is a list of authors with one more, in place of the one with the same name.
func SetAuthor(all []scope.Author, a scope.Author) []scope.Author {
	all = slices.Clone(all)
	i, ok := slices.BinarySearchFunc(all, a.Name, byName)
	if ok {
		all[i] = a
		return all
	}
	return slices.Insert(all, i, a)
}

// DropAuthor is a list of authors without the one with a name; ok reports that it had one.
func DropAuthor(all []scope.Author, name string) (rest []scope.Author, ok bool) {
	i, ok := slices.BinarySearchFunc(all, name, byName)
	if !ok {
		return all, false
	}
	if rest = slices.Delete(slices.Clone(all), i, i+1); len(rest) == 0 {
		rest = nil
	}
	return rest, true
}

func byName(a scope.Author, name string) int { return cmp.Compare(a.Name, name) }

// writeAuthors writes the list.
func writeAuthors(b *strings.Builder, all []scope.Author) {
	b.WriteString("\n# Whose requests may change keys. One a line, as in:  - alice who=ed25519:… prefix=/apps/ verbs=put,delete\n# " +
		strings.ReplaceAll(authorHelp, "\n", "\n# ") + "\n")
	if len(all) == 0 {
		b.WriteString("authors: []\n")
		return
	}
	b.WriteString("authors:\n")
	for _, a := range all {
		fmt.Fprintf(b, "  - %s\n", scalar(writeAuthor(a)))
	}
}

// authors reads the list.
func authors(n *yaml.Node) (all []scope.Author, err error) {
	texts, err := lines(n, "authors", "alice who=ed25519:… prefix=/apps/")
	for _, text := range texts {
		a, err := ParseAuthor(text.Value)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", text.Line, err)
		}
		all = append(all, a)
	}
	slices.SortStableFunc(all, func(a, b scope.Author) int { return cmp.Compare(a.Name, b.Name) })
	return all, err
}

// diffAuthors lists the authors that differ.
func diffAuthors(from, to []scope.Author) (changes []Change) {
	show := func(all []scope.Author, name string) string {
		if i, ok := slices.BinarySearchFunc(all, name, byName); ok {
			return writeAuthor(all[i])
		}
		return absent
	}
	var names []string
	for _, a := range slices.Concat(from, to) {
		names = append(names, a.Name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if a, b := show(from, name), show(to, name); a != b {
			changes = append(changes, Change{authorField + name, a, b, "whose requests may change what"})
		}
	}
	return changes
}

// authorField begins the names of authors in changes.
const authorField = "authors."
