// Package merge makes one value of two that were made from a third: lines of texts, members of JSON objects, and any
// other content as a whole.
package merge

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/epiclabs-io/diff3"
)

// Conflict is a part that both sides changed, to different contents. Nil means that a side does not have it.
type Conflict struct {
	Path               string // of a JSON object: the names of the members, as a JSON pointer (RFC 6901)
	Base, Ours, Theirs []byte
}

// Kind is how values were compared.
type Kind string

// The kinds of a merge.
const (
	Text   Kind = "text"
	JSON   Kind = "json"
	Binary Kind = "binary"
)

// Result is what a merge makes.
type Result struct {
	Kind      Kind
	Value     []byte // with the preferred side's content of each conflict
	Conflicts []Conflict
	Marked    []byte // Value of a text, with markers around both sides of each conflict

	marks []string // the lines of Marked that begin and end a conflict
}

// Marker returns a line of a value that begins or ends a conflict in Marked, empty if there is none.
func (r *Result) Marker(value []byte) string {
	for _, line := range lines(value) {
		if line = strings.TrimRight(line, "\r\n"); slices.Contains(r.marks, line) {
			return line
		}
	}
	return ""
}

// Side is whose content a conflict gets.
type Side int

// The sides of a merge.
const (
	Ours Side = iota
	Theirs
)

// Labels name the sides in markers.
type Labels struct{ Ours, Theirs string }

// Merge merges ours and theirs, which were made from base. A nil base is one that is not known: then nothing shows
// which side changed what, and all that differs is a conflict.
func Merge(base, ours, theirs []byte, prefer Side, labels Labels) Result {
	known := base != nil || bytes.Equal(ours, theirs)
	if known {
		if r, ok := mergeJSON(base, ours, theirs, prefer); ok {
			return r
		}
	}
	if (known || len(ours) > 0 && len(theirs) > 0) && isText(base) && isText(ours) && isText(theirs) {
		if r, ok := mergeText(base, ours, theirs, prefer, labels); ok {
			return r
		}
	}
	r := Result{Kind: Binary}
	switch {
	case bytes.Equal(ours, theirs), base != nil && bytes.Equal(base, theirs):
		r.Value = ours
	case base != nil && bytes.Equal(base, ours):
		r.Value = theirs
	default:
		r.Conflicts = []Conflict{{Base: base, Ours: ours, Theirs: theirs}}
		r.Value = prefer.of(ours, theirs)
	}
	return r
}

func (s Side) of(ours, theirs []byte) []byte {
	if s == Theirs {
		return theirs
	}
	return ours
}

func isText(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }

// mostSteps bounds what the library does: for each pair of equal lines of two texts, a look at each line. So many take
// some seconds.
const mostSteps = 1 << 31

// mergeText merges lines; ok is false for texts of too many lines, or too many equal ones.
func mergeText(base, ours, theirs []byte, prefer Side, labels Labels) (r Result, ok bool) {
	r = Result{Kind: Text, Value: []byte{}, marks: []string{"<<<<<<< " + labels.Ours, ">>>>>>> " + labels.Theirs}}
	o, a, b := lines(base), lines(ours), lines(theirs)
	head := same(o, a, b, func(all []string, i int) string { return all[i] })
	o, a, b = o[head:], a[head:], b[head:]
	tail := same(o, a, b, func(all []string, i int) string { return all[len(all)-1-i] })
	end := a[len(a)-tail:]
	begin := lines(ours)[:head]
	o, a, b = o[:len(o)-tail], a[:len(a)-tail], b[:len(b)-tail]
	if max(steps(o, a), steps(o, b)) > mostSteps {
		return r, false
	}
	keep := func(part []string) {
		text := strings.Join(part, "")
		r.Value, r.Marked = append(r.Value, text...), append(r.Marked, text...)
	}
	keep(begin)
	for _, part := range diff3.Diff3Merge(a, o, b, true) {
		c := part.Conflict
		if c == nil {
			keep(part.Ok)
			continue
		}
		x := Conflict{Base: joined(c.O), Ours: joined(c.A), Theirs: joined(c.B)}
		r.Conflicts = append(r.Conflicts, x)
		r.Value = append(r.Value, prefer.of(x.Ours, x.Theirs)...)
		for _, marked := range []struct{ mark, content string }{
			{r.marks[0], string(x.Ours)}, {"||||||| base", string(x.Base)}, {"=======", string(x.Theirs)}, {r.marks[1], ""},
		} {
			r.Marked = append(r.Marked, ended(marked.mark)+ended(marked.content)...)
		}
	}
	keep(end)
	return r, true
}

// same is how many lines are equal in three texts, from the first on as at orders them.
func same(a, b, c []string, at func([]string, int) string) (n int) {
	for most := min(len(a), len(b), len(c)); n < most && at(a, n) == at(b, n) && at(a, n) == at(c, n); n++ {
	}
	return n
}

// steps is what the library does for two texts.
func steps(a, b []string) (n int64) {
	times := make(map[string]int64)
	for _, line := range a {
		times[line]++
	}
	for _, line := range b {
		n += times[line]
	}
	return n * int64(min(len(a), len(b)))
}

// lines are the lines of a text, each with its end.
func lines(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	all := strings.SplitAfter(string(text), "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

func joined(lines []string) []byte { return []byte(strings.Join(lines, "")) }

// ended is a text whose last line has an end.
func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
