//go:build !noverbs

package action

import (
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
)

// Language is declared where predicates can be asked. Code that executes blocks refers to it, so that it does not
// compile with the build tag noverbs.
type Language struct{}

// language is CEL with the variables of a Facts. The bounds are those of this package:
// the ones of the library stand where no text that it is given reaches them.
var language = sync.OnceValues(func() (*cel.Env, error) {
	options := []cel.EnvOption{
		cel.StdLib(), cel.EnableMacroCallTracking(),
		cel.ParserExpressionSizeLimit(2 * MaxWhen), cel.ParserRecursionLimit(1000 * MaxWhen),
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
	operators.Index, operators.In,
	overloads.Size, overloads.StartsWith, overloads.EndsWith, overloads.Contains,
	overloads.TypeConvertBytes, overloads.TypeConvertString, overloads.TypeConvertInt,
}

// loops are the macros that ask something of each value of a list.
var loops = []string{
	operators.All, operators.Exists, operators.ExistsOne, operators.Filter, operators.Map,
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
