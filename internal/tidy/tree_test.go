package tidy

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// file is one file of the repository, named by its path from the root with
// forward slashes. syntax is nil unless it is Go.
type file struct {
	path   string
	source []byte
	syntax *ast.File
}

func (f *file) folder() string {
	if d := path.Dir(f.path); d != "." {
		return d
	}
	return ""
}

func (f *file) test() bool { return strings.HasSuffix(f.path, "_test.go") }

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// pure reports whether the file is held to the rules of pure code.
func (f *file) pure() bool {
	if f.syntax == nil || f.test() {
		return false
	}
	d := f.folder()
	return slices.ContainsFunc(held, func(p string) bool { return within(d, p) })
}

// within reports whether folder d is p or below it; only the root itself is
// within the root.
func within(d, p string) bool { return d == p || p != "" && strings.HasPrefix(d, p+"/") }

// tree is the source that the checks look at.
type tree struct {
	fset  *token.FileSet
	files []*file
}

func (t *tree) add(name string, source []byte) error {
	f := &file{path: name, source: source}
	if strings.HasSuffix(name, ".go") {
		var err error
		if f.syntax, err = parser.ParseFile(t.fset, name, source, parser.ParseComments); err != nil {
			return err
		}
	}
	t.files = append(t.files, f)
	return nil
}

// at is a position for people: path:line.
func (t *tree) at(pos token.Pos) string {
	p := t.fset.Position(pos)
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// repository is the tree that this test stands in: all text files but those of
// other modules, test data, hidden folders, and files over 1 MiB.
var repository = sync.OnceValues(func() (*tree, error) {
	const root = "../.."
	t := &tree{fset: token.NewFileSet()}
	return t, filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel == "." {
				return nil
			}
			_, err := os.Stat(filepath.Join(name, "go.mod"))
			if err == nil || strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules" {
				return filepath.SkipDir
			}
			return nil
		}
		if info, err := d.Info(); err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
			return err
		}
		source, err := os.ReadFile(name)
		if err != nil || bytes.IndexByte(source, 0) >= 0 {
			return err
		}
		return t.add(rel, source)
	})
})

// check is one rule of the house: it returns a line for every offence.
type check func(*tree) []string

// holds runs a check on the repository.
func holds(t *testing.T, c check) {
	t.Helper()
	repo, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	for _, offence := range c(repo) {
		t.Error(offence)
	}
}

// finds runs a check on a made-up tree and wants one offence for each of the
// given fragments, in order.
func finds(t *testing.T, c check, files map[string]string, want ...string) {
	t.Helper()
	made := &tree{fset: token.NewFileSet()}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := made.add(name, []byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	got := c(made)
	if len(got) != len(want) {
		t.Fatalf("%d offences found, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range got {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("found %q, want %q", got[i], want[i])
		}
	}
}
