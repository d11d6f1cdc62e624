package action

import (
	"errors"
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
)

// ErrPredicate is wrapped by errors about expressions that are no predicates.
var ErrPredicate = errors.New("action: not a predicate")

// MaxCost bounds the work of a predicate, in the steps that CEL counts: about one for
// each operation, and one for every ten bytes of text looked at.
const MaxCost = 2000

// Predicate is an expression that can be asked. Safe for concurrent use.
type Predicate struct {
	program cel.Program // nil: always
	cost    uint64
	value   bool // it looks at the value
}

// Compile reads a predicate; the empty text holds always. Errors wrap ErrPredicate,
// and say at which line and column of the text.
func Compile(when string) (*Predicate, error) {
	if when == "" {
		return new(Predicate), nil
	}
	env, err := language()
	if err != nil {
		return nil, err
	}
	tree, issues := env.Compile(when)
	if issues != nil && len(issues.Errors()) > 0 {
		first := issues.Errors()[0]
		return nil, wrong(first.Location.Line(), first.Location.Column(), "%s", strings.TrimSpace(first.Message))
	}
	if err := settled(tree); err != nil {
		return nil, err
	}
	if tree.OutputType() != cel.BoolType {
		return nil, wrong(1, 0, "it gives %s, and a predicate gives true or false", tree.OutputType())
	}
	cost, err := env.EstimateCost(tree, sizes{})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPredicate, err)
	}
	if cost.Max > MaxCost {
		return nil, fmt.Errorf("%w: it may take up to %d steps, and %d are the most: compare less text, or nest fewer lists", ErrPredicate, cost.Max, MaxCost)
	}
	program, err := env.Program(tree, cel.CostLimit(MaxCost))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPredicate, err)
	}
	return &Predicate{program: program, cost: cost.Max, value: looksAt(tree, valueName)}, nil
}

// wrong is an error at a place of an expression; columns count from 0.
func wrong(line, column int, format string, args ...any) error {
	return fmt.Errorf("%w: line %d, column %d: %s", ErrPredicate, line, column+1, fmt.Sprintf(format, args...))
}

// Cost is the most steps that asking it may take.
func (p *Predicate) Cost() uint64 { return p.cost }

// Holds asks it. What cannot be worked out, such as a division by zero, does not hold;
// the error, for people alone, says why.
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
