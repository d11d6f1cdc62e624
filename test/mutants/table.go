package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// summary is what came of a class, or of all.
type summary struct {
	Class          string
	Mutants, Found int
	Median, Most   int            // worlds until found, of those that were
	By             map[string]int // how many were found by what
}

func summarize(class string, all []Report) summary {
	s := summary{Class: class, By: make(map[string]int)}
	var worlds []int
	for i := range all {
		if r := &all[i]; class == "" || r.Class == class {
			s.Mutants++
			if r.Found {
				s.Found++
				s.By[r.By]++
				worlds = append(worlds, r.Worlds)
			}
		}
	}
	if slices.Sort(worlds); len(worlds) > 0 {
		s.Median, s.Most = worlds[len(worlds)/2], worlds[len(worlds)-1]
	}
	return s
}

// summaries are those of all classes, and of all together.
func summaries(all []Report) (out []summary) {
	var classes []string
	for i := range all {
		if c := all[i].Class; !slices.Contains(classes, c) {
			classes = append(classes, c)
		}
	}
	slices.Sort(classes)
	for _, c := range classes {
		out = append(out, summarize(c, all))
	}
	total := summarize("", all)
	total.Class = "all"
	return append(out, total)
}

// finders are what found the mutants of a class, most of them first.
func (s *summary) finders() string {
	names := make([]string, 0, len(s.By))
	for name := range s.By {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if d := s.By[b] - s.By[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for i, name := range names {
		if n := s.By[name]; n > 1 {
			names[i] = fmt.Sprintf("%s %d", name, n)
		}
	}
	return strings.Join(names, ", ")
}

func (s *summary) cells() []string {
	median, most := "–", "–"
	if s.Found > 0 {
		median, most = strconv.Itoa(s.Median), strconv.Itoa(s.Most)
	}
	return []string{s.Class, strconv.Itoa(s.Mutants), strconv.Itoa(s.Found), median, most, s.finders()}
}

var columns = []string{"class", "bugs", "found", "median", "most", "by"}

// asMarkdown is the table of docs/simulation.md.
func asMarkdown(w io.Writer, all []Report) {
	row := func(cells []string) { _, _ = fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }
	row(columns)
	row(slices.Repeat([]string{"---"}, len(columns)))
	for _, s := range summaries(all) {
		row(s.cells())
	}
	_, _ = fmt.Fprintf(w, "\nNot found yet:\n\n")
	for i := range all {
		if r := &all[i]; !r.Found {
			_, _ = fmt.Fprintf(w, "* %s/%s: %s. %s\n", r.Class, r.Name, r.About, r.Why)
		}
	}
}

// asText is for terminals.
func asText(w io.Writer, all []Report) {
	_, _ = fmt.Fprintf(w, "\n%-16s %5s %5s %6s %5s  %s\n", "class", "bugs", "found", "median", "most", "by")
	for _, s := range summaries(all) {
		c := s.cells()
		_, _ = fmt.Fprintf(w, "%-16s %5s %5s %6s %5s  %s\n", c[0], c[1], c[2], c[3], c[4], c[5])
	}
}

// asLine is one mutant, when it is done.
func asLine(w io.Writer, r *Report) {
	mark, what := "    ", fmt.Sprintf("not found in %d worlds", r.Worlds)
	switch {
	case r.Error != "":
		mark, what = "BAD ", r.Error
	case r.Found:
		what = fmt.Sprintf("world %d: %s", r.Worlds, r.By)
	}
	switch {
	case r.Error == "" && r.missed():
		mark, what = "LOST", fmt.Sprintf("%s; it was found within %d", what, r.Expected)
	case r.Found && r.Expected > 0 && r.Worlds > r.Expected:
		mark, what = "LATE", fmt.Sprintf("%s; expected within %d", what, r.Expected)
	case r.Found && r.Expected == 0:
		mark = "NEW "
	}
	if r.Tests != "" {
		what += "; tests: " + r.Tests
	}
	_, _ = fmt.Fprintf(w, "%s  %-44s %s\n", mark, r.Class+"/"+r.Name, what)
}

func asJSON(w io.Writer, all []Report) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(all)
}
