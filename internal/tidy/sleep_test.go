package tidy

import (
	"go/ast"
	"testing"
)

// TestTestsWaitForConditions: a test waits for a condition (internal/testwait), or a comment gives the reason why
// time itself has to pass.
func TestTestsWaitForConditions(t *testing.T) {
	holds(t, sleepsHaveReasons)
	finds(t, sleepsHaveReasons, map[string]string{
		"node/a_test.go": `package node
			func f() {
				time.Sleep(1) // the pace of a client

				// The clock has to go on.
				time.Sleep(2)

				time.Sleep(3)
				time.Sleep(4) //
			}`,
		"node/a.go": `package node; func f() { time.Sleep(1) }`,
	},
		"node/a_test.go:8: it sleeps",
		"node/a_test.go:9: it sleeps",
	)
}

// sleepsHaveReasons finds calls of time.Sleep in tests that have no comment on their line or the line above.
func sleepsHaveReasons(t *tree) (offences []string) {
	for _, f := range t.files {
		if f.syntax == nil || !f.test() {
			continue
		}
		said := make(map[int]bool) // lines on which a comment ends
		for _, c := range f.syntax.Comments {
			if c.Text() != "" {
				said[t.fset.Position(c.End()).Line] = true
			}
		}
		own := make(map[int]bool) // lines with code
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if s, ok := n.(ast.Stmt); ok {
				own[t.fset.Position(s.Pos()).Line] = true
			}
			return true
		})
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok || s.Sel.Name != "Sleep" {
				return true
			}
			line := t.fset.Position(s.Pos()).Line
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && !said[line] && (!said[line-1] || own[line-1]) {
				offences = append(offences, t.at(s.Pos())+": it sleeps: wait for a condition (internal/testwait), or say in a comment why time has to pass")
			}
			return true
		})
	}
	return offences
}
