package action

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/aweigh/aweigh/alias"
)

// ErrRule is wrapped by errors about rules that no table can have.
var ErrRule = errors.New("action: not a rule")

// ErrPredicate is wrapped by errors about expressions that are no predicates.
var ErrPredicate = errors.New("action: not a predicate")

// The bounds of a table.
const (
	// MaxRules bounds the rules of a table.
	MaxRules = 64
	// MaxWhen bounds a predicate, in bytes. Denials quote it.
	MaxWhen = 512
)

// Rule is a scope's rule about one verb.
type Rule struct {
	_     struct{} `cbor:",toarray"`
	Verb  string
	Class Class
	When  string // a predicate in CEL; empty: always
}

// String is like `pay (write) when caller.weight > 0`.
func (r Rule) String() string {
	s := r.Verb + " (" + r.Class.String() + ")"
	if r.When == "" {
		return s + " always"
	}
	if strconv.CanBackquote(r.When) {
		return s + " when " + r.When
	}
	return s + " when " + strconv.Quote(r.When)
}

// Check reports whether a table can have the rule, and where its predicate is
// wrong. Errors wrap ErrRule.
func (r Rule) Check() error {
	if err := r.form(); err != nil {
		return err
	}
	_, err := r.compile()
	return err
}

// compile compiles the predicate.
func (r Rule) compile() (*Predicate, error) {
	p, err := Compile(r.When)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrRule, r.Verb, err)
	}
	return p, nil
}

// form checks all but the predicate.
func (r Rule) form() error {
	if err := CheckVerb(r.Verb); err != nil {
		return err
	}
	own := builtin(r.Verb)
	switch {
	case !r.Class.valid():
		return fmt.Errorf("%w: %s of class %d", ErrRule, r.Verb, uint8(r.Class))
	case own != 0 && own != r.Class:
		return fmt.Errorf("%w: %s is of class %s everywhere, not %s", ErrRule, r.Verb, own, r.Class)
	case len(r.When) > MaxWhen:
		return fmt.Errorf("%w: %s has a predicate of %d bytes, at most %d are taken", ErrRule, r.Verb, len(r.When), MaxWhen)
	case !utf8.ValidString(r.When):
		return fmt.Errorf("%w: %s has a predicate that is not UTF-8", ErrRule, r.Verb)
	}
	return nil
}

// CheckVerb reports whether a text is a verb, as package alias reads them. Errors
// wrap ErrRule.
func CheckVerb(verb string) error {
	if err := alias.CheckAction(verb); err != nil {
		return fmt.Errorf("%w: %w", ErrRule, err)
	}
	return nil
}

// builtin is the class of the verbs that every scope knows, 0 for others.
func builtin(verb string) Class {
	switch verb {
	case "read":
		return Read
	case "write":
		return Write
	}
	return 0
}

// Table is the rules of a policy, ordered by their verbs, each of which stands there
// once. The zero value has no opinion.
type Table []Rule

// Check reports whether a policy can have the table. Errors wrap ErrRule.
func (t Table) Check() error {
	if err := t.CheckForm(); err != nil {
		return err
	}
	return Prepare(t).wrong
}

// CheckForm is Check for all but the predicates, which it does not read. Errors wrap ErrRule.
func (t Table) CheckForm() error {
	if len(t) > MaxRules {
		return fmt.Errorf("%w: %d rules, at most %d are taken", ErrRule, len(t), MaxRules)
	}
	for i := range t {
		if i > 0 && t[i-1].Verb >= t[i].Verb {
			return fmt.Errorf("%w: %q and %q are not distinct and in order", ErrRule, t[i-1].Verb, t[i].Verb)
		}
		if err := t[i].form(); err != nil {
			return err
		}
	}
	return nil
}

// Find is the rule about a verb.
func (t Table) Find(verb string) (Rule, bool) {
	i, ok := t.place(verb)
	if !ok {
		return Rule{}, false
	}
	return t[i], true
}

// With is the table with a rule, in place of the one about the same verb.
func (t Table) With(r Rule) Table {
	i, ok := t.place(r.Verb)
	if ok {
		t = slices.Clone(t)
		t[i] = r
		return t
	}
	return slices.Insert(slices.Clone(t), i, r)
}

// Without is the table without the rule about a verb; ok reports that it had one.
func (t Table) Without(verb string) (rest Table, ok bool) {
	i, ok := t.place(verb)
	if !ok {
		return t, false
	}
	if rest = slices.Delete(slices.Clone(t), i, i+1); len(rest) == 0 {
		rest = nil
	}
	return rest, true
}

func (t Table) place(verb string) (int, bool) {
	return slices.BinarySearchFunc(t, verb, func(r Rule, verb string) int { return cmp.Compare(r.Verb, verb) })
}
