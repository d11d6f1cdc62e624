package machine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// TestEveryTagHasAClass: each tag that message.go declares has a name of its own and a class, and nothing else has.
func TestEveryTagHasAClass(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "message.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	tags := make(map[string]string) // to the name of its constant
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(s.Names[0].Name, "Tag") {
			tag, err := strconv.Unquote(s.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			tags[tag] = s.Names[0].Name
		}
		return true
	})
	if len(tags) == 0 {
		t.Fatal("message.go declares no tag")
	}
	names := make(map[string]bool)
	for tag := range 256 {
		f := []byte{byte(tag)}
		declared, kind := tags[string(f)], FrameKind(f)
		if declared == "" && (FrameClassOf(f) != 0 || kind != "") {
			t.Errorf("%q has a kind, %q, and message.go does not declare it", f, kind)
		}
		if declared != "" && (FrameClassOf(f) == 0 || kind == "" || names[kind]) {
			t.Errorf("%s: class %b, name %q", declared, FrameClassOf(f), kind)
		}
		names[kind] = true
	}
	if got := FrameKinds(); len(got) != len(tags) {
		t.Errorf("%d tags, and kinds %v", len(tags), got)
	}
	if FrameClassOf(nil) != 0 || FrameKind(nil) != "" || FrameWork(nil) != 0 {
		t.Error("an empty frame has a kind")
	}
}
