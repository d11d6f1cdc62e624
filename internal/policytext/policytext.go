// Package policytext writes a scope's policy as YAML that explains itself, and
// reads it back. Values that a text leaves out stay unchanged.
package policytext

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/aweigh/aweigh/internal/nearest"
	"github.com/aweigh/aweigh/scope"
)

// ErrSyntax is wrapped by errors about text that is no policy.
var ErrSyntax = errors.New("policytext: not a policy")

// Write is a policy as YAML; head is a comment to begin with, of one line or more.
func Write(p scope.Policy, head string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(head, "\n") {
		fmt.Fprintf(&b, "# %s\n", line)
	}
	section := ""
	for _, f := range fields {
		name, key, _ := strings.Cut(f.name, ".")
		if name != section {
			section = name
			fmt.Fprintf(&b, "\n# %s\n%s:\n", strings.ReplaceAll(sections[name], "\n", "\n# "), name)
		}
		fmt.Fprintf(&b, "  %-28s # %s\n", key+": "+f.show(&p), f.about)
	}
	writeAuthors(&b, p.Authors)
	writeActions(&b, p.Actions)
	writePartitions(&b, p.Partitions)
	fmt.Fprintf(&b, "\n# What takes more than a quorum's vote: such writes open a motion, which waits for ballots.\n"+
		"# One a line, as in:  - prefix=/secrets/ threshold=3/4 min-anchors=3 window=72h\n# %s\n",
		strings.ReplaceAll(ApprovalHelp, "\n", "\n# "))
	if len(p.Approvals) == 0 {
		b.WriteString("approvals: []\n")
		return b.String()
	}
	b.WriteString("approvals:\n")
	for _, a := range p.Approvals {
		fmt.Fprintf(&b, "  - %s%s\n", scalar(writeApproval(a)), inWords(&a))
	}
	return b.String()
}

// scalar is a text as YAML has it.
func scalar(s string) string {
	out, err := yaml.Marshal(s)
	if err != nil {
		return strconv.Quote(s)
	}
	return strings.TrimSpace(string(out))
}

// lines are the texts of a list, which has one on each line.
func lines(n *yaml.Node, name, like string) ([]*yaml.Node, error) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil, nil
	}
	if n.Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("%w: line %d: %s is a list, a line with a dash for each", ErrSyntax, n.Line, name)
	}
	for _, item := range n.Content {
		if item.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("%w: line %d: each of the %s is one line of words, like: %s", ErrSyntax, item.Line, name, like)
		}
	}
	return n.Content, nil
}

// approvals reads the list of them.
func approvals(n *yaml.Node) (all []scope.Approval, err error) {
	texts, err := lines(n, "approvals", "prefix=/secrets/ threshold=3/4 window=72h")
	for _, text := range texts {
		a, err := ParseApproval(text.Value)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", text.Line, err)
		}
		all = append(all, a)
	}
	return all, err
}

// Read is a policy with what the text changes. Errors wrap ErrSyntax and name the
// line; scope.Policy.Check checks whether a scope can have the policy.
func Read(text []byte, base scope.Policy) (scope.Policy, error) {
	var root, more yaml.Node
	documents := yaml.NewDecoder(bytes.NewReader(text))
	if err := documents.Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		return base, fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	if len(root.Content) == 0 {
		return base, nil
	}
	if err := documents.Decode(&more); !errors.Is(err, io.EOF) {
		return base, fmt.Errorf("%w: line %d: a second document; a file holds one policy", ErrSyntax, more.Line)
	}
	p := base
	err := pairs(root.Content[0], "a policy", func(name string, at, value *yaml.Node) error {
		if name == "approvals" {
			var err error
			p.Approvals, err = approvals(value)
			return err
		}
		if name == "actions" {
			var err error
			p.Actions, err = actions(value)
			return err
		}
		if name == "authors" {
			var err error
			p.Authors, err = authors(value)
			return err
		}
		if name == "partitions" {
			var err error
			p.Partitions, err = partitions(value)
			return err
		}
		if sections[name] == "" {
			return fmt.Errorf("%w: line %d: unknown section %q%s", ErrSyntax, at.Line, name, meant(name, slices.Concat([]string{"approvals", "actions", "authors", "partitions"}, slices.Collect(maps.Keys(sections)))))
		}
		return pairs(value, name, func(key string, at, value *yaml.Node) error {
			f := find(name + "." + key)
			if f == nil {
				return fmt.Errorf("%w: line %d: %s has no field %q%s", ErrSyntax, at.Line, name, key, meant(key, fieldsOf(name)))
			}
			if value.Kind != yaml.ScalarNode {
				return fmt.Errorf("%w: line %d: %s is one value, like %s", ErrSyntax, value.Line, key, f.show(&base))
			}
			if err := f.read(&p, value.Value); err != nil {
				return fmt.Errorf("%w: line %d: %s: %w", ErrSyntax, value.Line, key, err)
			}
			return nil
		})
	})
	return p, err
}

// meant asks whether a word that is unknown stands for the one that is most like it; "" if none is.
func meant(word string, known []string) string {
	slices.Sort(known)
	near, _ := nearest.Name(word, known, min(2, len(word)-1))
	if near == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", near)
}

// fieldsOf are the names of the fields of a section.
func fieldsOf(section string) (names []string) {
	for i := range fields {
		if name, ok := strings.CutPrefix(fields[i].name, section+"."); ok {
			names = append(names, name)
		}
	}
	return names
}

// pairs visits the fields of a mapping, each of which may stand there once.
func pairs(n *yaml.Node, what string, visit func(key string, at, value *yaml.Node) error) error {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("%w: line %d: %s is made of fields, key: value", ErrSyntax, n.Line, what)
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if seen[key.Value] {
			return fmt.Errorf("%w: line %d: %s stands twice", ErrSyntax, key.Line, key.Value)
		}
		seen[key.Value] = true
		if err := visit(key.Value, key, n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// Change is a field that differs.
type Change struct {
	Field    string
	From, To string
	About    string
}

// Patch is a policy after changes, as Diff lists them. It reads their text alone, so its
// result is the text's. Errors wrap ErrSyntax.
func Patch(base scope.Policy, changes []Change) (p scope.Policy, err error) {
	p = base
	for _, c := range changes {
		if err := c.apply(&p); err != nil {
			return p, fmt.Errorf("%w: %s: %w", ErrSyntax, c.Field, err)
		}
	}
	return p, nil
}

// absent stands for an author, an action or an approval that a policy has not.
const absent = "none"

func (c *Change) apply(p *scope.Policy) error {
	if f := find(c.Field); f != nil {
		return f.read(p, c.To)
	}
	verb, isAction := strings.CutPrefix(c.Field, "actions.")
	name, isAuthor := strings.CutPrefix(c.Field, authorField)
	switch {
	case isAuthor && c.To == absent:
		p.Authors, _ = DropAuthor(p.Authors, name)
		return nil
	case isAuthor:
		a, err := ParseAuthor(c.To)
		p.Authors = SetAuthor(p.Authors, a)
		return err
	case isAction && c.To == absent:
		p.Actions, _ = p.Actions.Without(verb)
		return nil
	case isAction:
		r, err := parseRule(verb, c.To)
		p.Actions = p.Actions.With(r)
		return err
	case strings.HasPrefix(c.Field, partitionField):
		all, err := applyPartition(p.Partitions, c)
		p.Partitions = all
		return err
	case strings.HasPrefix(c.Field, "approvals of ") && c.To == absent:
		a, err := ParseApproval(c.From)
		p.Approvals, _ = dropApproval(p.Approvals, a)
		return err
	case strings.HasPrefix(c.Field, "approvals of "):
		a, err := ParseApproval(c.To)
		p.Approvals = SetApproval(p.Approvals, a)
		return err
	}
	return errors.New("a policy has no such field")
}

// Diff lists what differs between two policies: Patch makes the one of the other with
// it, unless approvals stand in another order. From the zero policy it lists all.
func Diff(from, to scope.Policy) (all []Change) {
	for _, f := range fields {
		if a, b := f.show(&from), f.show(&to); a != b {
			all = append(all, Change{f.name, a, b, f.about})
		}
	}
	all = append(all, diffAuthors(from.Authors, to.Authors)...)
	all = append(all, diffActions(from.Actions, to.Actions)...)
	all = append(all, diffPartitions(from.Partitions, to.Partitions)...)
	return append(all, diffApprovals(from.Approvals, to.Approvals)...)
}

// Fields are a policy's fields as Write has them, by their names.
func Fields(p scope.Policy) map[string]string {
	out := make(map[string]string, len(fields))
	for _, f := range fields {
		out[f.name] = f.show(&p)
	}
	for _, a := range p.Authors {
		out[authorField+a.Name] = writeAuthor(a)
	}
	for _, r := range p.Actions {
		out["actions."+r.Verb] = writeRule(r)
	}
	for i := range p.Partitions {
		out[partitionField+strconv.Quote(string(p.Partitions[i].Prefix))] = writePartition(&p.Partitions[i])
	}
	for i := range p.Approvals {
		out[fieldOf(&p.Approvals[i])] = writeApproval(p.Approvals[i])
	}
	return out
}
