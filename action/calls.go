//go:build !noverbs

package action

import (
	"slices"

	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
)

// called is the most that a function gives of some values, and its steps beyond the first;
// not ok if predicates do not have it for values of such types, even if a library does.
func called(name string, of []worth) (gives worth, steps uint64, ok bool) {
	if name == operators.LogicalAnd || name == operators.LogicalOr {
		other := func(w worth) bool { return w.kind != types.BoolKind }
		return worth{kind: types.BoolKind}, 0, !slices.ContainsFunc(of, other)
	}
	switch len(of) {
	case 1:
		return ofOne(name, of[0])
	case 2:
		return ofTwo(name, of[0], of[1])
	case 3:
		ok = name == operators.Conditional && of[0].kind == types.BoolKind && of[1].alike(of[2])
		return of[1].either(of[2]), 0, ok
	}
	return worth{}, 0, false
}

func ofOne(name string, a worth) (gives worth, steps uint64, ok bool) {
	switch name {
	case operators.LogicalNot:
		return a, 0, a.kind == types.BoolKind
	case operators.Negate:
		return a, 0, a.kind == types.IntKind
	case overloads.Size:
		if a.kind == types.StringKind { // of which characters are counted
			steps = a.text()
		}
		return worth{kind: types.IntKind}, steps, a.among(types.StringKind, types.BytesKind, types.ListKind)
	case overloads.TypeConvertString:
		return worth{kind: types.StringKind, long: max(a.long, longestNumber)}, a.text(), a.kind != types.ListKind
	case overloads.TypeConvertBytes:
		return worth{kind: types.BytesKind, long: a.long}, a.text(), a.among(types.StringKind, types.BytesKind)
	case overloads.TypeConvertInt:
		return worth{kind: types.IntKind}, a.text(), a.among(types.IntKind, types.UintKind, types.StringKind)
	}
	return worth{}, 0, false
}

// longestNumber is the bytes of the longest text of a number, or of a truth.
const longestNumber = 20

func ofTwo(name string, a, b worth) (gives worth, steps uint64, ok bool) {
	truth := worth{kind: types.BoolKind}
	number := a.among(types.IntKind, types.UintKind) && a.kind == b.kind
	text := a.among(types.StringKind, types.BytesKind) && a.kind == b.kind
	switch name {
	case operators.Equals, operators.NotEquals:
		return truth, min(a.text(), b.text()), a.alike(b)
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return truth, min(a.text(), b.text()), number || text || a.kind == types.BoolKind && b.kind == types.BoolKind
	case operators.Add:
		sum := a.either(b)
		sum.long = plus(a.long, b.long)
		return sum, plus(a.text(), b.text()), number || text || a.kind == types.ListKind && a.alike(b)
	case operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo:
		return worth{kind: a.kind}, 0, number
	case operators.Index:
		if a.kind != types.ListKind {
			return worth{}, 0, false
		}
		return *a.each, 0, b.kind == types.IntKind
	case operators.In:
		if b.kind != types.ListKind {
			return truth, 0, false
		}
		return truth, times(b.long, plus(1, min(a.text(), b.each.text()))), a.alike(*b.each)
	case overloads.StartsWith, overloads.EndsWith:
		return truth, min(a.text(), b.text()), text && a.kind == types.StringKind
	case overloads.Contains:
		return truth, times(a.text(), b.text()), text && a.kind == types.StringKind
	}
	return worth{}, 0, false
}
