package tidy

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"testing"
)

func TestExportedStructsEmbedNone(t *testing.T) {
	holds(t, func(t *tree) []string { return embeds(t, plainData) })
	finds(t, func(t *tree) []string {
		return embeds(t, map[string]string{"node.Entry": "one more field", "node.Gone": "it was"})
	}, map[string]string{
		"node/node.go":      "package node\ntype Node struct { *Part; log int }\ntype Part struct{ Name string; part }\ntype part struct{ Part }\n",
		"node/entry.go":     "package node\ntype Entry struct { lineage.Entry; Index int }\ntype Error struct { error }\n",
		"node/sub/sub.go":   "package sub\ntype Of[T any] struct { List[T] }\ntype In interface { Part }\n",
		"node/node_test.go": "package node\ntype Test struct { Node }\n",
		"scope/scope.go":    "package scope\ntype Scope struct { Part }\n",
	},
		"node/node.go:2: Node embeds Part",
		"node/sub/sub.go:2: Of embeds List",
		"node.Gone embeds nothing",
	)
}

// embeds finds exported structs in and below node that embed an exported type, apart from those in the table. Their
// methods would be methods of the outer type, so that a reader does not see for what a call stands.
func embeds(t *tree, except map[string]string) (offences []string) {
	used := make(map[string]bool)
	for _, f := range t.files {
		if f.syntax == nil || f.test() || !within(f.folder(), "node") {
			continue
		}
		for _, d := range f.syntax.Decls {
			g, _ := d.(*ast.GenDecl)
			if g == nil {
				continue
			}
			for _, s := range g.Specs {
				spec, _ := s.(*ast.TypeSpec)
				if spec == nil || !spec.Name.IsExported() {
					continue
				}
				outer, _ := spec.Type.(*ast.StructType)
				if outer == nil {
					continue
				}
				for _, field := range outer.Fields.List {
					inner := nameOf(field.Type)
					if len(field.Names) > 0 || !ast.IsExported(inner) {
						continue
					}
					if name := f.syntax.Name.Name + "." + spec.Name.Name; except[name] != "" {
						used[name] = true
						continue
					}
					offences = append(offences, fmt.Sprintf("%s: %s embeds %s: give the field a name", t.at(field.Pos()), spec.Name, inner))
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(except)) {
		if !used[name] {
			offences = append(offences, name+" embeds nothing: take it out of the table")
		}
	}
	return offences
}

// nameOf is the name that an embedded field has.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.StarExpr:
		return nameOf(e.X)
	case *ast.IndexExpr:
		return nameOf(e.X)
	case *ast.IndexListExpr:
		return nameOf(e.X)
	}
	return ""
}
