package tidy

import (
	"fmt"
	"go/ast"
	"go/types"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestPureCodeWalksNoMap(t *testing.T) {
	holds(t, noMapWalks)
	finds(t, noMapWalks, map[string]string{
		"aweigh.go": `package aweigh
			type Set map[Hash]bool
			type Hash [32]byte`,
		"scope/a.go": `package scope
			import ("github.com/aweigh/aweigh"; "maps"; "slices"; "elsewhere")
			type state struct { set aweigh.Set; odd map[elsewhere.Thing]int }
			func (s *state) f(list []int) {
				for range s.set {}
				for range s.odd {}
				for range list {}
				for range maps.Keys(s.set) {}
				_ = slices.Sorted(maps.Keys(s.set))
				_ = slices.Collect(maps.Values(s.set))
				// order-free: it only counts
				for range s.set {}
				for range s.set {} // order-free: it only counts
				// order-free:
				for range s.set {}
			}
			func g[M map[string]int](m M) { for range m {} }`,
	},
		"scope/a.go:5 ranges over a map",
		"scope/a.go:6 ranges over a map",
		"scope/a.go:8 calls maps.Keys",
		"scope/a.go:10 calls maps.Values",
		"scope/a.go:15 ranges over a map",
		"scope/a.go:17 ranges over a map",
	)
}

// orderFree is the comment that allows a walk, on its line or the one above.
var orderFree = regexp.MustCompile(`^// order-free: \S`)

// noMapWalks finds ranges over maps, and iterators over them that are not
// sorted at once. Types come from this module's own sources; a range over what
// another module's function returns goes unseen.
func noMapWalks(t *tree) (offences []string) {
	known := newSources(t)
	for _, f := range t.files {
		if !f.pure() {
			continue
		}
		allowed := make(map[int]bool)
		for _, group := range f.syntax.Comments {
			for _, c := range group.List {
				if line := t.fset.Position(c.Pos()).Line; orderFree.MatchString(c.Text) {
					allowed[line], allowed[line+1] = true, true
				}
			}
		}
		info := known.info(f.folder())
		report := func(n ast.Node, what string) {
			if !allowed[t.fset.Position(n.Pos()).Line] {
				offences = append(offences, fmt.Sprintf("%s %s, whose order is random; sort, or say // order-free: why", t.at(n.Pos()), what))
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.RangeStmt:
				if isMap(info.TypeOf(n.X)) {
					report(n, "ranges over a map")
				}
			case *ast.CallExpr:
				if pkg, _ := selector(n.Fun); pkg == "slices.Sorted" || pkg == "slices.SortedFunc" {
					return false
				}
				if name, ok := selector(n.Fun); ok && slices.Contains([]string{"maps.Keys", "maps.Values", "maps.All"}, name) {
					report(n, "calls "+name)
				}
			}
			return true
		})
	}
	return offences
}

// selector is the text of x.Sel, like "maps.Keys".
func selector(e ast.Expr) (string, bool) {
	if sel, ok := e.(*ast.SelectorExpr); ok {
		if x, ok := sel.X.(*ast.Ident); ok {
			return x.Name + "." + sel.Sel.Name, true
		}
	}
	return "", false
}

func isMap(t types.Type) bool {
	if t == nil {
		return false
	}
	if p, ok := t.(*types.TypeParam); ok {
		found := false
		if c, ok := p.Constraint().Underlying().(*types.Interface); ok {
			for e := range c.EmbeddedTypes() {
				found = found || isUnionOfMaps(e)
			}
		}
		return found
	}
	_, ok := t.Underlying().(*types.Map)
	return ok
}

func isUnionOfMaps(t types.Type) bool {
	if u, ok := t.(*types.Union); ok {
		for term := range u.Terms() {
			if isMap(term.Type()) {
				return true
			}
		}
		return false
	}
	return isMap(t)
}

// sources type-checks the packages of this module from their syntax. Packages
// of others are empty, and whatever depends on them has no type: that needs
// neither network nor compiled packages, and takes milliseconds.
type sources struct {
	t     *tree
	done  map[string]*types.Package
	infos map[string]*types.Info
}

func newSources(t *tree) *sources {
	return &sources{t, make(map[string]*types.Package), make(map[string]*types.Info)}
}

// Import implements types.Importer.
func (s *sources) Import(name string) (*types.Package, error) {
	if name == module || strings.HasPrefix(name, module+"/") {
		return s.check(strings.TrimPrefix(strings.TrimPrefix(name, module), "/")), nil
	}
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}

func (s *sources) info(folder string) *types.Info {
	s.check(folder)
	return s.infos[folder]
}

func (s *sources) check(folder string) *types.Package {
	if p := s.done[folder]; p != nil {
		return p
	}
	var files []*ast.File
	for _, f := range s.t.files {
		if f.syntax != nil && !f.test() && f.folder() == folder {
			files = append(files, f.syntax)
		}
	}
	s.done[folder] = types.NewPackage(path.Join(module, folder), path.Base(folder)) // should imports turn in a circle
	info := &types.Info{Types: make(map[ast.Expr]types.TypeAndValue), Uses: make(map[*ast.Ident]types.Object), Defs: make(map[*ast.Ident]types.Object)}
	conf := types.Config{Importer: s, Error: func(error) {}}
	p, _ := conf.Check(path.Join(module, folder), s.t.fset, files, info) // errors are expected: see above
	s.done[folder], s.infos[folder] = p, info
	return p
}
