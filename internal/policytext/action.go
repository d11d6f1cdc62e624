package policytext

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/aweigh/aweigh/action"
)

// writeRule is what parseRule reads: "write when caller.weight > 0".
func writeRule(r action.Rule) string {
	if r.When == "" {
		return r.Class.String()
	}
	return r.Class.String() + " when " + r.When
}

// parseRule reads what a policy says about a verb. Errors wrap ErrSyntax; whether a scope
// can have it is for scope.Policy.Check to say.
func parseRule(verb, text string) (r action.Rule, err error) {
	class, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	r.Verb = verb
	if r.Class, err = action.ParseClass(class); err != nil {
		return r, fmt.Errorf("%w: %s: %w", ErrSyntax, verb, err)
	}
	if rest = strings.TrimSpace(rest); rest == "" {
		return r, nil
	}
	when, ok := strings.CutPrefix(rest, "when")
	if r.When = strings.TrimSpace(when); !ok || r.When == "" || r.When == when {
		return r, fmt.Errorf("%w: %s: after the class stands \"when\" and a predicate, not %q", ErrSyntax, verb, rest)
	}
	return r, nil
}

// writeActions writes the table.
func writeActions(b *strings.Builder, t action.Table) {
	b.WriteString("\n# What verbs before a name do, as in: aweigh do pay user@elizabeth 10\n" +
		"# read, write, signal or claim, and \"when\" with a predicate in CEL if not always, as in:\n" +
		"#   pay: write when caller.anchor == 'treasury' && object.exists\n" +
		"# A rule for write binds put, del and all other changes of keys. Predicates see:\n" +
		"# " + strings.Join(action.VariableNames(), ", ") + "\n")
	if len(t) == 0 {
		b.WriteString("actions: {}\n")
		return
	}
	b.WriteString("actions:\n")
	for _, r := range t {
		text := strings.ReplaceAll(scalar(writeRule(r)), "\n", "\n  ")
		fmt.Fprintf(b, "  %s: %s\n", scalar(r.Verb), text)
	}
}

// actions reads the table.
func actions(n *yaml.Node) (t action.Table, err error) {
	err = pairs(n, "actions", func(verb string, at, value *yaml.Node) error {
		if value.Kind != yaml.ScalarNode {
			return fmt.Errorf("%w: line %d: %s is one value, like: write when caller.weight > 0", ErrSyntax, value.Line, verb)
		}
		r, err := parseRule(verb, value.Value)
		if err != nil {
			return fmt.Errorf("line %d: %w", value.Line, err)
		}
		t = t.With(r)
		return nil
	})
	return t, err
}

// diffActions lists the rules that differ.
func diffActions(from, to action.Table) (changes []Change) {
	show := func(t action.Table, verb string) string {
		if r, ok := t.Find(verb); ok {
			return writeRule(r)
		}
		return absent
	}
	var both action.Table
	for _, r := range from {
		both = both.With(r)
	}
	for _, r := range to {
		both = both.With(r)
	}
	for _, r := range both {
		if a, b := show(from, r.Verb), show(to, r.Verb); a != b {
			changes = append(changes, Change{"actions." + r.Verb, a, b, "what the verb does, and who may use it"})
		}
	}
	return changes
}
