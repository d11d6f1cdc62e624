//go:build !noverbs

package action

import (
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// The bounds of a predicate's shape. They hold for the text as written, however a library
// expands loops and long chains of && and ||.
const (
	// MaxParts bounds the literals, variables, operators, lists, calls and loops.
	MaxParts = 128
	// MaxDepth bounds how deep they stand in each other, and how deep brackets do; a chain
	// of && or || is one of them.
	MaxDepth = 24
	// MaxLoops bounds how deep loops stand in each other.
	MaxLoops = 3
)

// deepest is the place in a text, if there is one, of the first bracket that stands deeper
// than MaxDepth. Brackets within quotes count.
func deepest(when string) (line, column int, over bool) {
	depth := 0
	line = 1
	for _, c := range when {
		switch c {
		case '(', '[', '{':
			if depth++; depth > MaxDepth {
				return line, column, true
			}
		case ')', ']', '}':
			depth = max(depth-1, 0)
		}
		if column++; c == '\n' {
			line, column = line+1, 0
		}
	}
	return 0, 0, false
}

// part is a piece of an expression as it was written.
type part struct {
	name  string     // of a call or a loop, as CEL calls it; of a variable, with its dots
	parts []ast.Expr // that it is made of: the object of a call first, the list of a loop first
	each  string     // what a loop calls each value of the list; empty: it is no loop
	wrong string     // why no predicate has it; empty: predicates do
}

// written reads a piece of an expression.
func written(source *ast.SourceInfo, e ast.Expr) part {
	if macro, ok := source.GetMacroCall(e.ID()); ok {
		call := macro.AsCall()
		p, args := part{name: call.FunctionName()}, call.Args()
		if !slices.Contains(loops, p.name) || len(args) < 2 || args[0].Kind() != ast.IdentKind {
			p.wrong = "predicates do not know " + p.name
			return p
		}
		p.each, p.parts = args[0].AsIdent(), append([]ast.Expr{call.Target()}, args[1:]...)
		return p
	}
	switch e.Kind() {
	case ast.LiteralKind:
		if t, ok := e.AsLiteral().Type().(*cel.Type); !ok || !plain(t) {
			return part{wrong: "predicates have no values of type " + e.AsLiteral().Type().TypeName()}
		}
		return part{}
	case ast.IdentKind, ast.SelectKind:
		if name, ok := dotted(e); ok {
			return part{name: name}
		}
		return part{wrong: "predicates have no values with fields"}
	case ast.ListKind:
		if len(e.AsList().OptionalIndices()) > 0 {
			return part{wrong: "predicates have no optional values"}
		}
		return part{parts: e.AsList().Elements()}
	case ast.CallKind:
		call := e.AsCall()
		p := part{name: call.FunctionName(), parts: call.Args()}
		if call.IsMemberFunction() {
			p.parts = append([]ast.Expr{call.Target()}, p.parts...)
		}
		switch {
		case !slices.Contains(functions, p.name):
			p.wrong = "predicates do not know " + strings.Trim(p.name, "_@")
		case p.name == operators.LogicalAnd || p.name == operators.LogicalOr:
			p.parts = chain(source, p.name, p.parts)
		}
		return p
	}
	return part{wrong: "predicates have no maps and messages"}
}

// dotted is the name that a chain of fields spells.
func dotted(e ast.Expr) (string, bool) {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent(), true
	case ast.SelectKind:
		name, ok := dotted(e.AsSelect().Operand())
		return name + "." + e.AsSelect().FieldName(), ok && !e.AsSelect().IsTestOnly()
	}
	return "", false
}

// chain is all that one operator joins, however the reader of the text put it into pairs.
func chain(source *ast.SourceInfo, operator string, parts []ast.Expr) (flat []ast.Expr) {
	for _, e := range parts {
		if _, ok := source.GetMacroCall(e.ID()); !ok && e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operator {
			flat = append(flat, chain(source, operator, e.AsCall().Args())...)
		} else {
			flat = append(flat, e)
		}
	}
	return flat
}

// shaped reports where an expression that was read leaves what all nodes take alike. It
// wants no types, so that it comes before the work of finding them.
func shaped(tree *ast.AST) error {
	s := &shape{source: tree.SourceInfo()}
	return s.check(tree.Expr(), 1)
}

// shape holds an expression against the bounds, and against what predicates have.
type shape struct {
	source *ast.SourceInfo
	parts  int
	each   []string // the variables of the loops around
}

func (s *shape) check(e ast.Expr, depth int) error {
	p := written(s.source, e)
	s.parts++
	switch {
	case s.parts > MaxParts:
		return at(s.source, e, "it has more than %d parts", MaxParts)
	case depth > MaxDepth:
		return at(s.source, e, "its parts stand more than %d deep in each other", MaxDepth)
	case p.wrong != "":
		return at(s.source, e, "%s", p.wrong)
	case p.each != "":
		return s.loop(e, p, depth)
	case p.name != "" && e.Kind() != ast.CallKind && !slices.Contains(append(VariableNames(), s.each...), p.name):
		return at(s.source, e, "predicates do not know %s", p.name)
	}
	return s.all(p.parts, depth)
}

func (s *shape) all(parts []ast.Expr, depth int) error {
	for _, e := range parts {
		if err := s.check(e, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (s *shape) loop(e ast.Expr, p part, depth int) error {
	// A name that hides a part of a variable's may mean either, as the library likes.
	hides := func(v string) bool { return v == p.each || strings.HasPrefix(v, p.each+".") }
	switch {
	case slices.ContainsFunc(VariableNames(), hides) || slices.Contains(s.each, p.each):
		return at(s.source, e, "%s is a name already, and no loop can have it for its values", p.each)
	case len(s.each) == MaxLoops:
		return at(s.source, e, "more than %d loops stand in each other", MaxLoops)
	}
	if err := s.check(p.parts[0], depth+1); err != nil {
		return err
	}
	s.each = append(s.each, p.each)
	defer func() { s.each = s.each[:len(s.each)-1] }()
	return s.all(p.parts[1:], depth)
}

// at is an error at a piece of an expression.
func at(source *ast.SourceInfo, e ast.Expr, format string, args ...any) error {
	for e.Kind() == ast.SelectKind { // which would be at its last dot
		e = e.AsSelect().Operand()
	}
	place := source.GetStartLocation(e.ID())
	return wrong(max(place.Line(), 1), max(place.Column(), 0), format, args...)
}
