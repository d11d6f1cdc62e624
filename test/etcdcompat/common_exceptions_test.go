package etcdcompat

import (
	"os"
	"path"
	"strings"
	"testing"
)

// exception is a test that is expected to fail, or to be skipped.
type exception struct {
	test   string // its name, where * stands for what a slash ends; all that it consists of too
	reason string
	says   string // part of what it prints then
}

type exceptions []exception

// readExceptions reads a file of groups with an empty line between them. Lines that
// start with "#" are the reason of all that follow in the group, and one that starts
// with ">" is what those print that follow, up to the next.
func readExceptions(t *testing.T, file string) (all exceptions) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var group exception
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			group = exception{}
		case strings.HasPrefix(line, "#"):
			group.reason = strings.TrimSpace(group.reason + " " + strings.TrimSpace(line[1:]))
		case strings.HasPrefix(line, ">"):
			group.says = strings.TrimSpace(line[1:])
		case group.reason == "" || group.says == "":
			t.Fatalf("%s: %s has no reason, or no text that it prints", file, line)
		default:
			group.test = line
			all = append(all, group)
		}
	}
	return all
}

// of are those about a test and what it consists of.
func (x exceptions) of(name string) (some exceptions) {
	for _, e := range x {
		if top, _, _ := strings.Cut(e.test, "/"); top == name {
			some = append(some, e)
		}
	}
	return some
}

// find is the one about a test, or nil.
func (x exceptions) find(test string) *exception {
	for i := range x {
		if x[i].covers(test) {
			return &x[i]
		}
	}
	return nil
}

// covers reports whether the exception is about a test.
func (e exception) covers(test string) bool {
	names := strings.Split(test, "/")
	names = names[:min(len(names), 1+strings.Count(e.test, "/"))]
	matches, err := path.Match(e.test, strings.Join(names, "/"))
	return matches && err == nil
}
