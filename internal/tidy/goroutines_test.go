package tidy

import (
	"go/ast"
	"path"
	"slices"
	"testing"
)

// TestGoroutinesOfANodeHaveAnOwner: in package node, only tasks.Go starts a goroutine that outlives its function. A
// sync.WaitGroup of a function is the other way: the function waits for it.
func TestGoroutinesOfANodeHaveAnOwner(t *testing.T) {
	holds(t, goroutinesHaveOwners)
	finds(t, goroutinesHaveOwners, map[string]string{
		"node/a.go": `package node
			func f(n *Node) {
				go f()
				func() { go f() }()
				n.tasks.Go("f", f)
				var all sync.WaitGroup
				all.Go(f)
				func() { all.Wait() }()
			}
			func g() {
				var all sync.WaitGroup
				defer all.Wait()
				for { all.Go(f) }
			}
			func h() {
				func() {
					var all sync.WaitGroup
					all.Go(f)
					all.Wait()
				}()
			}
			func i(n *Node) {
				n.all.Go(f)
				n.all.Wait()
			}
			func j() {
				var all sync.WaitGroup
				defer all.Wait()
				start := func() { all.Go(f) }
				start()
			}`,
		"node/tasks.go":     `package node; func (t *tasks) Go(f func()) { t.all.Go(f) }`,
		"node/a_test.go":    `package node; func f() { go f() }`,
		"node/machine/a.go": `package machine; func f() { go f() }`,
	},
		"node/a.go:3: ", "node/a.go:4: ", "node/a.go:7: ", "node/a.go:23: ",
	)
}

// goroutinesHaveOwners finds go statements in package node, and calls of the method Go of a WaitGroup for which neither
// the function nor one around it waits. Tasks have a name, which tells the two methods apart.
func goroutinesHaveOwners(t *tree) (offences []string) {
	for _, f := range t.files {
		if f.syntax == nil || f.test() || path.Dir(f.path) != "node" || f.path == "node/tasks.go" {
			continue
		}
		for _, d := range f.syntax.Decls {
			offences = append(offences, unowned(t, d, nil)...)
		}
	}
	return offences
}

// unowned finds the goroutines without an owner in a function. around are the WaitGroups that functions around it wait
// for.
func unowned(t *tree, function ast.Node, around []string) (offences []string) {
	awaited := slices.Clip(around)
	inBody(function, func(n ast.Node) {
		if group, method, ok := called(n); ok && method == "Wait" && group != "" {
			awaited = append(awaited, group)
		}
	})
	inBody(function, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.FuncLit:
			offences = append(offences, unowned(t, n.Body, awaited)...)
		case *ast.GoStmt:
			offences = append(offences, t.at(n.Pos())+": a go statement: tasks.Go starts the goroutines of a node")
		case *ast.CallExpr:
			group, method, ok := called(n)
			if ok && method == "Go" && len(n.Args) == 1 && !slices.Contains(awaited, group) {
				offences = append(offences, t.at(n.Pos())+": no function waits for this goroutine: tasks.Go starts those that go on")
			}
		}
	})
	return offences
}

// inBody visits the nodes of a function, but not those of functions in it.
func inBody(function ast.Node, visit func(ast.Node)) {
	ast.Inspect(function, func(n ast.Node) bool {
		if n != nil {
			visit(n)
		}
		_, inner := n.(*ast.FuncLit)
		return !inner
	})
}

// called returns the variable and the method of a call like all.Wait(), and no variable for a call like n.all.Wait().
func called(n ast.Node) (variable, method string, ok bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return "", "", false
	}
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", "", false
	}
	if x, local := s.X.(*ast.Ident); local {
		variable = x.Name
	}
	return variable, s.Sel.Name, true
}
