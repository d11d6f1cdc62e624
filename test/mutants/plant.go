package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// Many mutants share a program, since a build takes longer than most sweeps. A
// function that some of them change stands in it once for each of them and once as
// it is, and the function of its name calls the one that the environment asks for:
//
//	func (p *purse) take(units int64) bool {
//		if planted == 3 {
//			return p.take_3(units)
//		}
//		return p.take_0(units)
//	}
//
// A mutant that changes something else, as a constant, has a program of its own.

// variable is the environment variable that says which mutant is planted.
const variable = "AWEIGH_MUTANT"

// chooser is a file that each changed package gets.
const chooser = "planted_by_mutants.go"

func chooserOf(pkg string) string {
	return fmt.Sprintf("package %s\n\nimport (\n\t\"os\"\n\t\"strconv\"\n)\n\nvar planted, _ = strconv.Atoi(os.Getenv(%q))\n", pkg, variable)
}

// source is a file, and the functions in it.
type source struct {
	text   string
	pkg    string
	funcs  map[string]function
	order  []string // of funcs
	others string   // all but functions and imports
	pulls  []string // imports
}

// function is a function of a file.
type function struct {
	text    string
	name    int // where its name stands in text
	id      string
	call    string // what calls it, after its name
	on      string // receiver and a dot
	head    string // all before the body
	gives   bool
	unnamed bool // a parameter without a name: it cannot be passed on
}

// split reads a file.
func split(name, text string) (*source, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	at := func(p token.Pos) int { return set.Position(p).Offset }
	s := &source{text: text, pkg: f.Name.Name, funcs: make(map[string]function)}
	for _, i := range f.Imports {
		s.pulls = append(s.pulls, text[at(i.Pos()):at(i.End())])
	}
	var others strings.Builder
	for _, d := range f.Decls {
		body := text[at(d.Pos()):at(d.End())]
		fn, ok := d.(*ast.FuncDecl)
		switch g, is := d.(*ast.GenDecl); {
		case is && g.Tok == token.IMPORT:
		case !ok || fn.Body == nil || fn.Type.TypeParams != nil:
			others.WriteString(body)
		default:
			x := function{
				text: body, name: at(fn.Name.Pos()) - at(fn.Pos()), id: fn.Name.Name,
				head: text[at(fn.Pos()):at(fn.Body.Lbrace)], gives: fn.Type.Results.NumFields() > 0,
			}
			x.call, x.unnamed = passed(fn.Type.Params)
			key := x.id
			if fn.Recv != nil {
				r := fn.Recv.List[0]
				key = text[at(r.Type.Pos()):at(r.Type.End())] + "." + key
				if len(r.Names) == 0 || r.Names[0].Name == "_" {
					x.unnamed = true
				} else {
					x.on = r.Names[0].Name + "."
				}
			}
			s.funcs[key] = x
			s.order = append(s.order, key)
		}
	}
	s.others = others.String()
	return s, nil
}

// passed is how a function passes its parameters on.
func passed(params *ast.FieldList) (call string, unnamed bool) {
	var names []string
	for _, p := range params.List {
		_, rest := p.Type.(*ast.Ellipsis)
		if len(p.Names) == 0 {
			unnamed = true
		}
		for _, n := range p.Names {
			unnamed = unnamed || n.Name == "_"
			if names = append(names, n.Name); rest {
				names[len(names)-1] += "..."
			}
		}
	}
	return "(" + strings.Join(names, ", ") + ")", unnamed
}

// named is the text of the function under another name.
func (f *function) named(n int) string {
	return fmt.Sprintf("%s%s_%d%s", f.text[:f.name], f.id, n, f.text[f.name+len(f.id):])
}

// sharing are mutants of one program.
type sharing struct {
	read  func(file string) (string, error)
	files map[string]*source // as they are
	with  map[string]map[int]*source
}

func newSharing(read func(file string) (string, error)) *sharing {
	return &sharing{read: read, files: make(map[string]*source), with: make(map[string]map[int]*source)}
}

// add adds a mutant under a number above 0, and reports whether it can share.
func (s *sharing) add(n int, changed map[string]string) (bool, error) {
	fresh := make(map[string]*source)
	for file, text := range changed {
		if s.files[file] == nil {
			whole, err := s.read(file)
			if err == nil {
				s.files[file], err = split(file, whole)
			}
			if err != nil {
				return false, err
			}
		}
		was := s.files[file]
		is, err := split(file, text)
		if err != nil {
			return false, err
		}
		if is.others != was.others {
			return false, nil
		}
		for key, f := range was.funcs {
			if g, ok := is.funcs[key]; !ok || g.head != f.head || f.unnamed && g.text != f.text {
				return false, nil
			}
		}
		fresh[file] = is
	}
	for file, is := range fresh {
		if s.with[file] == nil {
			s.with[file] = make(map[int]*source)
		}
		s.with[file][n] = is
	}
	return true, nil
}

// sources are the files of the program, by name.
func (s *sharing) sources() map[string]string {
	out := make(map[string]string)
	for file, with := range s.with {
		was := s.files[file]
		dir := file[:strings.LastIndexByte(file, '/')+1]
		out[dir+chooser] = chooserOf(was.pkg)
		text, tail := was.text, new(bytes.Buffer)
		for _, n := range slices.Sorted(maps.Keys(with)) {
			for _, pull := range with[n].pulls {
				if !slices.Contains(was.pulls, pull) && !strings.Contains(text, "import "+pull+"\n") {
					text = strings.Replace(text, "package "+was.pkg+"\n", "package "+was.pkg+"\n\nimport "+pull+"\n", 1)
				}
			}
		}
		for _, key := range was.order {
			f := was.funcs[key]
			var calls strings.Builder
			for _, n := range slices.Sorted(maps.Keys(with)) {
				g := with[n].funcs[key]
				if g.text == f.text {
					continue
				}
				fmt.Fprintf(tail, "\n%s\n", g.named(n))
				fmt.Fprintf(&calls, "\tif planted == %d {\n\t\t%s\n\t\treturn\n\t}\n", n, f.calls(n))
			}
			if calls.Len() == 0 {
				continue
			}
			front := f.head + "{\n" + calls.String() + "\t" + f.calls(0) + "\n}\n"
			if f.gives {
				front = strings.ReplaceAll(front, "\n\t\treturn\n", "\n")
			}
			text = strings.Replace(text, f.text, front, 1)
			fmt.Fprintf(tail, "\n%s\n", f.named(0))
		}
		for _, n := range slices.Sorted(maps.Keys(with)) {
			for _, key := range with[n].order {
				if _, old := was.funcs[key]; !old {
					fmt.Fprintf(tail, "\n%s\n", with[n].funcs[key].text)
				}
			}
		}
		out[file] = text + tail.String()
	}
	return out
}

// calls is the statement that calls the function under another name.
func (f *function) calls(n int) string {
	c := fmt.Sprintf("%s%s_%d%s", f.on, f.id, n, f.call)
	if f.gives {
		return "return " + c
	}
	return c
}
