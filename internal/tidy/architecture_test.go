package tidy

import (
	"bytes"
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestArchitecturePageIsTrue compares docs/architecture.md with the code: the names in it exist, and packages are
// about as long as it states.
func TestArchitecturePageIsTrue(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	code, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range untrue(code, page) {
		t.Error("docs/architecture.md: " + o)
	}
	if got := untrue(code, []byte("`node.Nobody` `quorum.Engine.Walk` `quorum.Engine.Step`\n| `quorum` | 9 | all |\n")); len(got) != 3 {
		t.Errorf("of three faults it finds %d: %v", len(got), got)
	}
}

var (
	named  = regexp.MustCompile("`([a-z]+(?:/[a-z]+)*)\\.(\\w+(?:\\.\\w+)?)`")
	counts = regexp.MustCompile("(?m)^\\| `([a-z/]+)` \\| ([0-9,]+) \\|")
)

// untrue finds names of a page, in the form package.Name or package.Type.Name, that the code does not have, and
// packages that are a tenth longer or shorter than it says.
func untrue(code *tree, page []byte) (faults []string) {
	names, lines := make(map[string]bool), make(map[string]int)
	for _, f := range code.files {
		if f.syntax == nil || f.test() {
			continue
		}
		lines[f.folder()] += bytes.Count(f.source, []byte("\n"))
		for _, d := range f.syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				names[f.folder()+"."+receiver(d)+d.Name.Name] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok {
						names[f.folder()+"."+s.Name.Name] = true
					}
				}
			}
		}
	}
	for _, m := range named.FindAllSubmatch(page, -1) {
		if name := string(m[1]) + "." + string(m[2]); lines[string(m[1])] > 0 && !names[name] {
			faults = append(faults, name+" is not there")
		}
	}
	for _, m := range counts.FindAllSubmatch(page, -1) {
		said, _ := strconv.Atoi(strings.ReplaceAll(string(m[2]), ",", ""))
		if is := lines[string(m[1])]; is*10 < said*9 || is*10 > said*11 {
			faults = append(faults, fmt.Sprintf("%s has %d lines, not about %d", m[1], is, said))
		}
	}
	return faults
}

// receiver is the type of a method's receiver and a dot, empty for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	x := d.Recv.List[0].Type
	if p, ok := x.(*ast.StarExpr); ok {
		x = p.X
	}
	if id, ok := x.(*ast.Ident); ok {
		return id.Name + "."
	}
	return ""
}
