package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Mutant is a bug to plant.
type Mutant struct {
	Class, Name string
	About       string // one sentence: what the program does wrong
	Within      int    // worlds in which a sweep finds it; 0: none does yet
	Why         string // none does yet
	Edits       []Edit
}

// Edit replaces lines of a file.
type Edit struct {
	File     string // from the root of the repository
	Old, New string // whole lines
}

// Apply is the content of the file with the edit in place. The old lines must
// stand in the file exactly once.
func (e *Edit) Apply(source string) (string, error) {
	lines, old := "\n"+source, "\n"+e.Old
	at := strings.Index(lines, old)
	if at < 0 {
		return "", fmt.Errorf("%s has no such lines:\n%s", e.File, e.Old)
	}
	if strings.Contains(lines[at+1:], old) {
		return "", fmt.Errorf("%s has these lines more than once; add lines around them:\n%s", e.File, e.Old)
	}
	return source[:at] + e.New + source[at+len(e.Old):], nil
}

// sources are the files of a tree with the mutant planted, by name.
func (m *Mutant) sources(root string) (map[string]string, error) {
	files := make(map[string]string)
	for i := range m.Edits {
		e := &m.Edits[i]
		source, ok := files[e.File]
		if !ok {
			raw, err := os.ReadFile(filepath.Join(root, e.File))
			if err != nil {
				return nil, fmt.Errorf("%s/%s: %w", m.Class, m.Name, err)
			}
			source = string(raw)
		}
		changed, err := e.Apply(source)
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", m.Class, m.Name, err)
		}
		files[e.File] = changed
	}
	return files, nil
}

// edge reports whether the mutant is about what is around machines, so that worlds of test/edge look for it.
func (m *Mutant) edge() bool { return m.Class == "edge" }

// packages are the folders that the mutant changes.
func (m *Mutant) packages() (all []string) {
	seen := make(map[string]bool)
	for i := range m.Edits {
		if p := "./" + filepath.Dir(m.Edits[i].File); !seen[p] {
			seen[p], all = true, append(all, p)
		}
	}
	return all
}
