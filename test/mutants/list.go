package main

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

//go:embed list
var lists embed.FS

// load reads the list.
func load() (all []Mutant, err error) {
	files, err := fs.Glob(lists, "list/*.diff")
	if err != nil {
		return nil, err
	}
	names := make(map[string]bool)
	for _, file := range files {
		raw, err := lists.ReadFile(file)
		if err != nil {
			return nil, err
		}
		some, err := parse(strings.TrimSuffix(path.Base(file), ".diff"), string(raw))
		if err != nil {
			return nil, fmt.Errorf("%s:%w", file, err)
		}
		for i := range some {
			if names[some[i].Name] {
				return nil, fmt.Errorf("%s: two mutants are called %s", file, some[i].Name)
			}
			names[some[i].Name] = true
		}
		all = append(all, some...)
	}
	return all, nil
}

// parse reads the mutants of a class. Empty lines stand between them, and lines
// that begin with # are for readers. A mutant reads:
//
//	name: what the program does wrong
//	found: within 100 worlds (or: "not yet: " and the reason)
//	--- a file, from the root of the repository
//	 a line that stays
//	-a line that goes
//	+a line that comes
func parse(class, text string) (all []Mutant, err error) {
	var m *Mutant
	for i, line := range strings.Split(text, "\n") {
		switch {
		case line == "":
			m = nil
		case m == nil && strings.HasPrefix(line, "#"):
		case m == nil:
			all = append(all, Mutant{Class: class})
			m = &all[len(all)-1]
			var ok bool
			if m.Name, m.About, ok = strings.Cut(line, ": "); !ok || strings.Contains(m.Name, " ") {
				err = fmt.Errorf("a mutant begins with its name, a colon and a sentence")
			}
		default:
			err = m.take(line)
		}
		if err != nil {
			return nil, fmt.Errorf("%d: %w", i+1, err)
		}
	}
	for i := range all {
		if err := all[i].check(); err != nil {
			return nil, fmt.Errorf(" %s: %w", all[i].Name, err)
		}
	}
	return all, nil
}

// take reads a line of a mutant after its first.
func (m *Mutant) take(line string) error {
	if file, ok := strings.CutPrefix(line, "--- "); ok {
		m.Edits = append(m.Edits, Edit{File: file})
		return nil
	}
	if len(m.Edits) == 0 {
		return m.expect(line)
	}
	e, text := &m.Edits[len(m.Edits)-1], line[1:]+"\n"
	switch line[0] {
	case ' ':
		e.Old, e.New = e.Old+text, e.New+text
	case '-':
		e.Old += text
	case '+':
		e.New += text
	default:
		return fmt.Errorf("a line of a file begins with a space, - or +")
	}
	return nil
}

// expect reads what is expected of a sweep.
func (m *Mutant) expect(line string) (err error) {
	if why, ok := strings.CutPrefix(line, "not yet: "); ok {
		m.Why = why
		return nil
	}
	of, ok := strings.CutPrefix(line, "found: within ")
	of, worlds := strings.CutSuffix(of, " worlds")
	if m.Within, err = strconv.Atoi(of); !ok || !worlds || err != nil || m.Within < 1 {
		return fmt.Errorf("say \"found: within N worlds\", or \"not yet: \" and why")
	}
	return nil
}

func (m *Mutant) check() error {
	if (m.Within > 0) == (m.Why != "") || len(m.Edits) == 0 {
		return fmt.Errorf("a mutant says what is expected of a sweep, once, and changes a file")
	}
	for i := range m.Edits {
		if e := &m.Edits[i]; e.Old == "" || e.Old == e.New {
			return fmt.Errorf("an edit of %s replaces nothing", e.File)
		}
	}
	return nil
}
