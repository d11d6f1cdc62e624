//go:build !noverbs

package action

import (
	"math"
	"math/bits"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// MaxCost bounds the work of a predicate, in steps: one for each part of it that is
// evaluated, once for each value of the loops around, and one for every ten bytes of text,
// or every value of a list, that such a part looks at or makes. Searching one text in
// another takes as many as the two take, multiplied.
//
// The steps are counted on the expression, for the longest values that its variables can
// have, before it is taken. So evaluation counts no steps.
const MaxCost = 2000

// worth is the most that a part may give.
type worth struct {
	kind types.Kind
	long uint64 // bytes of a text, values of a list; 0 for others
	each *worth // of a list
}

// text is the steps that looking at all of it takes, but for the first.
func (w worth) text() uint64 {
	switch w.kind {
	case types.StringKind, types.BytesKind:
		return w.long/10 + min(w.long%10, 1)
	case types.ListKind:
		return times(w.long, plus(1, w.each.text()))
	}
	return 0
}

// alike reports whether two parts are of one type.
func (w worth) alike(o worth) bool {
	if w.kind != o.kind {
		return false
	}
	return w.kind != types.ListKind || w.each.alike(*o.each)
}

// either is what may be one or the other.
func (w worth) either(o worth) worth {
	w.long = max(w.long, o.long)
	if w.each != nil && o.each != nil {
		each := w.each.either(*o.each)
		w.each = &each
	}
	return w
}

// String is like `list(int)`.
func (w worth) String() string {
	switch w.kind {
	case types.BoolKind:
		return "bool"
	case types.IntKind:
		return "int"
	case types.UintKind:
		return "uint"
	case types.StringKind:
		return "string"
	case types.BytesKind:
		return "bytes"
	case types.ListKind:
		return "list(" + w.each.String() + ")"
	}
	return "nothing"
}

// among reports whether its type is one of some.
func (w worth) among(kinds ...types.Kind) bool { return slices.Contains(kinds, w.kind) }

// costs computes the largest cost of an expression of checked types.
type costs struct {
	tree  *ast.AST
	loops map[string]worth
	err   error // the first part that has a meaning which this package does not know
}

// reckon is the most steps of an expression whose types were checked, and the type of its
// result.
func reckon(tree *ast.AST) (types.Kind, uint64, error) {
	c := &costs{tree: tree, loops: make(map[string]worth)}
	gives, steps := c.of(tree.Expr())
	return gives.kind, steps, c.err
}

// of is the most that a part may give, and the steps to it.
func (c *costs) of(e ast.Expr) (gives worth, steps uint64) {
	p := written(c.tree.SourceInfo(), e)
	if p.each != "" {
		return c.loop(e, p)
	}
	var of []worth
	var took []uint64
	for _, part := range p.parts {
		w, s := c.of(part)
		of, took = append(of, w), append(took, s)
	}
	ok := true
	switch e.Kind() {
	case ast.LiteralKind:
		gives = literal(e)
	case ast.ListKind:
		gives, ok = listed(of)
	case ast.CallKind:
		if gives, steps, ok = called(p.name, of); p.name == operators.Conditional && ok {
			took = []uint64{took[0], max(took[1], took[2])}
		}
	default:
		gives = c.variable(p.name)
	}
	if !ok {
		c.refuse(e, of)
	}
	for _, s := range took {
		steps = plus(steps, s)
	}
	return gives, plus(steps, 1)
}

// refuse keeps the first part that predicates do not have for the types of its parts.
func (c *costs) refuse(e ast.Expr, of []worth) {
	if c.err != nil {
		return
	}
	kinds := make([]string, len(of))
	for i, w := range of {
		kinds[i] = w.String()
	}
	c.err = at(c.tree.SourceInfo(), e, "predicates do not know this of %s", strings.Join(kinds, " and "))
	if len(of) == 0 {
		c.err = at(c.tree.SourceInfo(), e, "predicates have no empty lists: their values have no type")
	}
}

// loop is the largest result of a loop, and its steps: those of its body, for each value.
func (c *costs) loop(e ast.Expr, p part) (gives worth, steps uint64) {
	list, steps := c.of(p.parts[0])
	if list.kind != types.ListKind {
		c.refuse(e, []worth{list})
		return worth{kind: types.BoolKind}, steps
	}
	c.loops[p.each] = *list.each
	defer delete(c.loops, p.each)
	var last worth
	turn := uint64(1)
	for i, part := range p.parts[1:] {
		w, s := c.of(part)
		if last, turn = w, plus(turn, s); w.kind != types.BoolKind && (p.name != operators.Map || i+2 < len(p.parts)) {
			c.refuse(e, []worth{list, w})
		}
	}
	switch p.name {
	case operators.Map:
		gives = worth{kind: types.ListKind, long: list.long, each: &last}
	case operators.Filter:
		gives = list
	default:
		gives = worth{kind: types.BoolKind}
	}
	return gives, plus(1, plus(steps, times(list.long, turn)))
}

// variable is the most that one holds, of a loop or of the facts.
func (c *costs) variable(name string) worth {
	if w, ok := c.loops[name]; ok {
		return w
	}
	for _, v := range variables {
		if v.name == name {
			return worth{kind: v.kind.Kind(), long: v.most}
		}
	}
	return worth{}
}

func literal(e ast.Expr) worth {
	switch v := e.AsLiteral().(type) {
	case types.String:
		return worth{kind: types.StringKind, long: uint64(len(v))}
	case types.Bytes:
		return worth{kind: types.BytesKind, long: uint64(len(v))}
	default:
		t, _ := v.Type().(*cel.Type)
		return worth{kind: t.Kind()}
	}
}

// listed is a list of some values.
func listed(of []worth) (worth, bool) {
	if len(of) == 0 {
		return worth{kind: types.ListKind, each: new(worth)}, false
	}
	each, ok := of[0], true
	for _, w := range of[1:] {
		ok = ok && each.alike(w)
		each = each.either(w)
	}
	return worth{kind: types.ListKind, long: uint64(len(of)), each: &each}, ok
}

// plus is a sum, and the greatest number if that is beyond it.
func plus(a, b uint64) uint64 {
	if sum, over := bits.Add64(a, b, 0); over == 0 {
		return sum
	}
	return math.MaxUint64
}

// times is a product, and the greatest number if that is beyond it.
func times(a, b uint64) uint64 {
	if over, product := bits.Mul64(a, b); over == 0 {
		return product
	}
	return math.MaxUint64
}
