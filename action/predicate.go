//go:build !noverbs

package action

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
)

// allowance bounds the steps of the library when a predicate is asked, by the library's own
// count. It stops what should not be; nothing that was taken comes near to it.
const allowance = 100 * MaxCost

// Predicate is an expression that can be asked. Safe for concurrent use.
type Predicate struct {
	program cel.Program // nil: always
	cost    uint64
	value   bool // it looks at the value
}

// Compile reads a predicate; the empty text holds always. Errors wrap ErrPredicate,
// and have line and column of the text.
func Compile(when string) (*Predicate, error) {
	if when == "" {
		return new(Predicate), nil
	}
	env, err := language()
	if err != nil {
		return nil, err
	}
	tree, err := read(env, when)
	if err != nil {
		return nil, err
	}
	gives, cost, err := reckon(tree.NativeRep())
	switch {
	case err != nil:
		return nil, err
	case gives != types.BoolKind:
		return nil, wrong(1, 0, "it gives %s, and a predicate gives true or false", tree.OutputType())
	case cost > MaxCost:
		return nil, fmt.Errorf("%w: it may take up to %d steps, and %d are the most: compare less text, or fewer values",
			ErrPredicate, cost, MaxCost)
	}
	program, err := env.Program(tree, cel.CostLimit(allowance))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPredicate, err)
	}
	return &Predicate{program: program, cost: cost, value: looksAt(tree, valueName)}, nil
}

// read reads an expression of the shape that predicates have, and finds its types.
func read(env *cel.Env, when string) (*cel.Ast, error) {
	if len(when) > MaxWhen || !utf8.ValidString(when) {
		return nil, fmt.Errorf("%w: %d bytes, and %d of UTF-8 are the most", ErrPredicate, len(when), MaxWhen)
	}
	if line, column, ok := deepest(when); ok {
		return nil, wrong(line, column, "brackets stand more than %d deep in each other", MaxDepth)
	}
	tree, issues := env.Parse(when)
	if err := first(issues); err != nil {
		return nil, err
	}
	if err := shaped(tree.NativeRep()); err != nil {
		return nil, err
	}
	tree, issues = env.Check(tree)
	return tree, first(issues)
}

// first is the first of the library's complaints.
func first(issues *cel.Issues) error {
	if issues == nil || len(issues.Errors()) == 0 {
		return nil
	}
	e := issues.Errors()[0]
	return wrong(e.Location.Line(), max(e.Location.Column(), 0), "%s", strings.TrimSpace(e.Message))
}

// looksAt reports whether an expression has a variable.
func looksAt(tree *cel.Ast, name string) bool {
	for _, r := range tree.NativeRep().ReferenceMap() {
		if r.Name == name {
			return true
		}
	}
	return false
}

// wrong is an error at a place of an expression; columns count from 0.
func wrong(line, column int, format string, args ...any) error {
	return fmt.Errorf("%w: line %d, column %d: %s", ErrPredicate, line, column+1, fmt.Sprintf(format, args...))
}

// Cost is the most steps that asking it may take.
func (p *Predicate) Cost() uint64 { return p.cost }

// Holds evaluates it. A predicate that cannot be evaluated, as with a division by
// zero, does not hold; the error, for people alone, is the reason.
func (p *Predicate) Holds(f *Facts) (bool, error) {
	if p.program == nil {
		return true, nil
	}
	if p.value && len(f.Object.Value) > MaxValue {
		return false, fmt.Errorf("%w: the object has a value of %d bytes, and predicates look at %d at most", ErrPredicate, len(f.Object.Value), MaxValue)
	}
	known := make(map[string]any, len(variables))
	for _, v := range variables {
		known[v.name] = v.of(f)
	}
	out, _, err := p.program.Eval(known)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrPredicate, err)
	}
	return out == types.True, nil
}
