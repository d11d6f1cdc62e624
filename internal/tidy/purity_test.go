package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"strconv"
	"strings"
	"testing"
)

func TestPureCodeImportsNothingImpure(t *testing.T) {
	holds(t, noImpureImports)
	finds(t, noImpureImports, map[string]string{
		"quorum/a.go":         `package quorum; import (_ "fmt"; _ "log/slog"; _ "math/rand/v2"; _ "sync/atomic")`,
		"quorum/a_test.go":    `package quorum; import _ "os"`,
		"quorum/model/b.go":   `package model; import _ "net/http"`,
		"node/machine/m.go":   `package machine; import _ "context"`,
		"node/run.go":         `package node; import _ "context"`,
		"store/store.go":      `package store; import _ "os"`,
		"scope/name.go":       `package scope; import _ "netlike"`,
		"internal/canon/c.go": `package canon; import _ "unsafe"`,
	},
		"internal/canon/c.go imports unsafe",
		"node/machine/m.go imports context: nothing in here waits",
		"quorum/a.go imports log/slog",
		"quorum/a.go imports math/rand/v2",
		"quorum/a.go imports sync/atomic",
		"quorum/model/b.go imports net/http",
	)
}

func noImpureImports(t *tree) (offences []string) {
	used := make([]bool, len(exceptions))
	seen := make(map[string]bool)
	for _, f := range t.files {
		if !f.pure() {
			continue
		}
		seen[f.path] = true
	imports:
		for _, spec := range f.syntax.Imports {
			target, _ := strconv.Unquote(spec.Path.Value)
			for i, e := range exceptions {
				if e.file == f.path && e.path == target {
					used[i] = true
					continue imports
				}
			}
			for _, rule := range impure {
				if within(target, rule.path) {
					offences = append(offences, fmt.Sprintf("%s imports %s: %s", f.path, target, rule.reason))
				}
			}
		}
	}
	for i, e := range exceptions {
		if seen[e.file] && !used[i] {
			offences = append(offences, fmt.Sprintf("the exception of %s for %s is not needed", e.path, e.file))
		}
	}
	return offences
}

func TestPureCodeReadsNoClockAndPrintsNothing(t *testing.T) {
	holds(t, noImpureNames)
	finds(t, noImpureNames, map[string]string{
		"trust/a.go": `package trust
			import ("fmt"; clock "time")
			func f() clock.Duration { fmt.Println(); return clock.Since(clock.Now()) }`,
		"trust/b.go": `package trust
			import "time"
			type now struct{ Now int }
			func g(x now) time.Duration { return time.Duration(x.Now) }
			func h(time now) int { return time.Now }`,
	},
		"trust/a.go:3 uses fmt.Println: no I/O",
		"trust/a.go:3 uses time.Since",
		"trust/a.go:3 uses time.Now",
	)
}

func noImpureNames(t *tree) (offences []string) {
	for _, f := range t.files {
		if !f.pure() {
			continue
		}
		names := make(map[string]string) // what an import is called here, to its path
		for _, spec := range f.syntax.Imports {
			target, _ := strconv.Unquote(spec.Path.Value)
			name := path.Base(target)
			if spec.Name != nil {
				name = spec.Name.Name
			}
			names[name] = target
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok || local(x) {
				return true
			}
			for _, rule := range impureNames {
				for _, name := range rule.names {
					if names[x.Name] == rule.path && sel.Sel.Name == name {
						offences = append(offences, fmt.Sprintf("%s uses %s.%s: %s", t.at(sel.Pos()), rule.path, name, rule.reason))
					}
				}
			}
			return true
		})
	}
	return offences
}

// local reports whether x names something declared in its file, and not an import.
func local(x *ast.Ident) bool { return x.Obj != nil } //nolint:staticcheck // enough here, and needs no types

func TestPureCodeHasNoFloatsAndNoGoroutines(t *testing.T) {
	holds(t, noFloatsNorGoroutines)
	finds(t, noFloatsNorGoroutines, map[string]string{
		"votes/a.go": `package votes
			var x = 1.5
			func f(y float64) complex128 { return 0 }
			func g(c chan int) {
				go g(nil)
				c <- 1
				<-c
				select {}
			}`,
		"store/a.go":      `package store; var x = 1.5`,
		"votes/a_test.go": `package votes; var y = 1.5`,
		"votes/b.go":      `package votes; const z = 0x10 // 1.5 float64`,
	},
		"votes/a.go:2 has a floating point",
		"votes/a.go:3 has a floating point",
		"votes/a.go:3 has a floating point",
		"votes/a.go:4 has concurrency: a channel",
		"votes/a.go:5 has concurrency: a goroutine",
		"votes/a.go:6 has concurrency: a send",
		"votes/a.go:7 has concurrency: a receive",
		"votes/a.go:8 has concurrency: a select",
	)
}

func noFloatsNorGoroutines(t *tree) (offences []string) {
	for _, f := range t.files {
		if !f.pure() {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			what := ""
			switch n := n.(type) {
			case *ast.BasicLit:
				if n.Kind == token.FLOAT || n.Kind == token.IMAG {
					what = "a floating point literal"
				}
			case *ast.Ident:
				if strings.HasPrefix(n.Name, "float") || strings.HasPrefix(n.Name, "complex") {
					switch n.Name {
					case "float32", "float64", "complex64", "complex128":
						what = "a floating point type"
					}
				}
			case *ast.GoStmt:
				what = "concurrency: a goroutine"
			case *ast.SelectStmt:
				what = "concurrency: a select"
			case *ast.SendStmt:
				what = "concurrency: a send"
			case *ast.ChanType:
				what = "concurrency: a channel"
			case *ast.UnaryExpr:
				if n.Op == token.ARROW {
					what = "concurrency: a receive"
				}
			}
			if what != "" {
				offences = append(offences, fmt.Sprintf("%s has %s, and the package is pure", t.at(n.Pos()), what))
			}
			return true
		})
	}
	return offences
}
