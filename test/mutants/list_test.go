package main

import (
	"strings"
	"testing"
)

// Code changes, and the list must follow it. That the mutants build is shown when
// they are planted.
func TestMutantsApply(t *testing.T) {
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		m := &all[i]
		if _, err := m.sources("../.."); err != nil {
			t.Error(err)
		}
		for j := range m.Edits {
			if strings.HasSuffix(m.Edits[j].File, "_test.go") {
				t.Errorf("%s changes %s: bugs are planted in the program", m.Name, m.Edits[j].File)
			}
		}
	}
}

func TestWrongListsAreRefused(t *testing.T) {
	const good = "a-name: what goes wrong\nfound: within 100 worlds\n--- x.go\n-\told\n+\tnew\n"
	if all, err := parse("c", good); err != nil || len(all) != 1 || all[0].Edits[0] != (Edit{"x.go", "\told\n", "\tnew\n"}) {
		t.Fatalf("a mutant reads as %v, %v", all, err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"a-name: ", "a name: ", "1: a mutant begins"},
		{"within 100 worlds", "soon", "2: say"},
		{"within 100", "within 0", "2: say"},
		{"found: within 100 worlds\n", "", "what is expected"},
		{"worlds\n", "worlds\nnot yet: why\n", "what is expected"},
		{"-\told", "*\told", "4: a line of a file"},
		{"-\told\n", "", "replaces nothing"},
		{"+\tnew", "+\told", "replaces nothing"},
	} {
		if _, err := parse("c", strings.Replace(good, c.old, c.new, 1)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q in place of %q: %v", c.new, c.old, err)
		}
	}
}

func TestEditsApplyOnce(t *testing.T) {
	e := Edit{File: "x.go", Old: "\tb\n", New: "\tc\n"}
	if got, err := e.Apply("\ta\n\tb\n"); err != nil || got != "\ta\n\tc\n" {
		t.Errorf("%q, %v", got, err)
	}
	for _, source := range []string{"\ta\n", "\tb\n\tb\n", "\t\tb\n"} {
		if _, err := e.Apply(source); err == nil {
			t.Errorf("an edit applies to %q", source)
		}
	}
}

func TestSharesCoverTheList(t *testing.T) {
	all := []Mutant{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "e"}}
	seen := make(map[string]int)
	for day := range 3 {
		c := choice{share: "1/3", offset: -1}
		some, err := c.of(all, 700+day)
		if err != nil {
			t.Fatal(err)
		}
		for i := range some {
			seen[some[i].Name]++
		}
	}
	for i := range all {
		if n := seen[all[i].Name]; n != 1 {
			t.Errorf("%s is planted %d times in three days", all[i].Name, n)
		}
	}
}
