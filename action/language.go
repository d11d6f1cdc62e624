package action

import (
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
)

// language is CEL with the variables of a Facts.
var language = sync.OnceValues(func() (*cel.Env, error) {
	options := []cel.EnvOption{
		cel.StdLib(), cel.ParserExpressionSizeLimit(MaxWhen), cel.ParserRecursionLimit(32),
	}
	for _, v := range variables {
		options = append(options, cel.Variable(v.name, v.kind))
	}
	return cel.NewCustomEnv(options...)
})

// functions are those that all nodes work out alike. Others look at time zones, at
// tables of Unicode that change with the compiler, or make types that are refused.
var functions = []string{
	operators.Conditional, operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Equals, operators.NotEquals,
	operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
	operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo, operators.Negate,
	operators.Index, operators.In, operators.NotStrictlyFalse,
	overloads.Size, overloads.StartsWith, overloads.EndsWith, overloads.Contains,
	overloads.TypeConvertBytes, overloads.TypeConvertString, overloads.TypeConvertInt,
}

// settled says where an expression leaves what all nodes work out alike.
func settled(tree *cel.Ast) (err error) {
	native := tree.NativeRep()
	at := func(e ast.Expr, format string, args ...any) {
		if err == nil {
			place := native.SourceInfo().GetStartLocation(e.ID())
			err = wrong(place.Line(), max(place.Column(), 0), format, args...)
		}
	}
	ast.PostOrderVisit(native.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.CallKind:
			if name := e.AsCall().FunctionName(); !slices.Contains(functions, name) {
				at(e, "predicates do not know %s", strings.Trim(name, "_@"))
				return
			}
		case ast.MapKind, ast.StructKind:
			at(e, "predicates have no maps and messages")
			return
		}
		if t := native.GetType(e.ID()); !plain(t) {
			at(e, "predicates have no values of type %s", t)
		}
	}))
	return err
}

// plain reports whether a type has one value for one meaning.
func plain(t *types.Type) bool {
	switch t.Kind() {
	case types.BoolKind, types.IntKind, types.UintKind, types.StringKind, types.BytesKind:
		return true
	case types.ListKind:
		return plain(t.Parameters()[0])
	}
	return false
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

// sizes tells how large variables can be.
type sizes struct{}

// EstimateSize implements cost.Estimator.
func (sizes) EstimateSize(element cost.AstNode) *cost.SizeEstimate {
	name := strings.Join(element.Path(), ".")
	for _, v := range variables {
		if v.name == name {
			return &cost.SizeEstimate{Min: 0, Max: v.most}
		}
	}
	return nil
}

// EstimateCallCost implements cost.Estimator.
func (sizes) EstimateCallCost(string, string, *cost.AstNode, []cost.AstNode) *cost.CallEstimate {
	return nil
}
