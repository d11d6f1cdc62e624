package main

import (
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

const purse = `package x

import "fmt"

type purse struct{ units int }

func (p *purse) take(units int, from ...string) bool {
	p.units -= units
	return p.units >= 0
}

func (p *purse) tell() { fmt.Println(p.units) }

func empty(_ int) int { return 0 }

const most = 9
`

// share plants variants of one file in one program.
func share(t *testing.T, variants ...string) (text string, shared []bool) {
	t.Helper()
	s := newSharing(func(string) (string, error) { return purse, nil })
	for i, v := range variants {
		ok, err := s.add(i+1, map[string]string{"x/purse.go": v})
		if err != nil {
			t.Fatal(err)
		}
		shared = append(shared, ok)
	}
	return s.sources()["x/purse.go"], shared
}

func TestMutantsShareAProgram(t *testing.T) {
	text, shared := share(t,
		strings.Replace(purse, "p.units >= 0", "p.units > 0", 1),
		strings.Replace(purse, "p.units >= 0", "p.units >= 1", 1),
		strings.Replace(purse, "fmt.Println(p.units)", "", 1),
		strings.Replace(purse, "most = 9", "most = 10", 1), // no function
		strings.Replace(purse, "return 0", "return 1", 1),  // its parameter has no name
		strings.Replace(purse, "units int,", "units int64,", 1),
	)
	for i, want := range []bool{true, true, true, false, false, false} {
		if shared[i] != want {
			t.Errorf("mutant %d shares: %v", i+1, shared[i])
		}
	}
	if _, err := parser.ParseFile(token.NewFileSet(), "purse.go", text, 0); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	for _, want := range []string{
		"if planted == 1 {\n\t\treturn p.take_1(units, from...)\n\t}\n\tif planted == 2 {\n\t\treturn p.take_2(units, from...)\n\t}\n\treturn p.take_0(units, from...)\n}",
		"if planted == 3 {\n\t\tp.tell_3()\n\t\treturn\n\t}\n\tp.tell_0()\n}",
		"func (p *purse) take_0(units int, from ...string) bool {\n\tp.units -= units\n\treturn p.units >= 0\n}",
		"func (p *purse) take_2(units int, from ...string) bool {\n\tp.units -= units\n\treturn p.units >= 1\n}",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the program lacks:\n%s\nit is:\n%s", want, text)
		}
	}
}

// A mutant that does not compile must not keep the others from being planted.
func TestWhatDoesNotCompileIsBlamed(t *testing.T) {
	text, _ := share(t, strings.Replace(purse, "p.units >= 0", "p.units > 0", 1), strings.Replace(purse, "p.units >= 0", "p.bytes > 0", 1))
	line := strings.Count(text[:strings.Index(text, "p.bytes")], "\n") + 1
	wrong := blame(map[string]string{"x/purse.go": text}, "/tmp/x_purse.go:"+strconv.Itoa(line)+":9: p.bytes undefined")
	if len(wrong) != 1 || wrong[2] != "p.bytes undefined" {
		t.Errorf("blamed: %v", wrong)
	}
}

// The whole list, as one program, must at least be Go.
func TestTheListParsesAsOneProgram(t *testing.T) {
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	s := newSharing(func(file string) (string, error) {
		raw, err := os.ReadFile("../../" + file)
		return string(raw), err
	})
	alone := 0
	for i := range all {
		files, err := all[i].sources("../..")
		if err != nil {
			t.Fatal(err)
		}
		ok, err := s.add(i+1, files)
		if err != nil {
			t.Fatalf("%s: %v", all[i].Name, err)
		}
		if !ok {
			alone++
		}
	}
	for file, text := range s.sources() {
		if _, err := parser.ParseFile(token.NewFileSet(), file, text, 0); err != nil {
			t.Error(err)
		}
	}
	if alone > len(all)/10 {
		t.Errorf("%d of %d mutants need a program of their own", alone, len(all))
	}
}
