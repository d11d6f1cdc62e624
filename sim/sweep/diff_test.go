package sweep

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
)

func TestDiffShowsWhereTracesPart(t *testing.T) {
	for _, c := range []struct {
		name, a, b string
		want       TraceDiff
	}{
		{"equal", "1\n2\n3\n", "1\n2\n3", TraceDiff{Equal: true, Line: 3}},
		{"empty", "", "", TraceDiff{Equal: true}},
		{"in the middle", "1\n2\n3\n4\n5\n6\n7\n", "1\n2\n3\nx\n\ny\n", TraceDiff{Line: 4, Common: []string{"2", "3"}, A: []string{"4", "5"}, B: []string{"x", ""}}},
		{"at once", "a\n", "b\n", TraceDiff{Line: 1, A: []string{"a"}, B: []string{"b"}}},
		{"one ends", "1\n2\n", "1\n", TraceDiff{Line: 2, Common: []string{"1"}, A: []string{"2"}}},
		{"an empty line more", "1\n", "1\n\n", TraceDiff{Line: 2, Common: []string{"1"}, B: []string{""}}},
	} {
		got, err := DiffTraces(strings.NewReader(c.a), strings.NewReader(c.b), 2)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, %v, want %+v", c.name, got, err, c.want)
		}
	}
}

// endless is a trace of one line, again and again, until something breaks.
type endless struct {
	line string
	left int
	err  error
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left--; e.left < 0 {
		return 0, e.err
	}
	return copy(p, e.line), nil
}

func TestDiffHoldsAFewLinesAtATime(t *testing.T) {
	a, b := &endless{"a line\n", 100_000, io.EOF}, &endless{"a line\n", 100_001, io.EOF}
	d, err := DiffTraces(a, b, 3)
	if err != nil || d.Line != 100_001 || len(d.Common) != 3 || cap(d.Common) > 64 {
		t.Errorf("got %+v (capacity %d), %v", d, cap(d.Common), err)
	}
}

func TestDiffReportsTracesThatCannotBeRead(t *testing.T) {
	broken, long := errors.New("broken"), strings.Repeat("x", 1000)
	for _, c := range []struct {
		a, b io.Reader
		want error
	}{
		{&endless{"x\n", 3, broken}, &endless{"x\n", 5, io.EOF}, broken},
		{&endless{"x\n", 5, io.EOF}, &endless{"x\n", 3, broken}, broken},
		{&endless{"x\n", 3, broken}, &endless{"y\n", 9, io.EOF}, broken},
		{&endless{long, maxTraceLine, io.EOF}, &endless{long, maxTraceLine, io.EOF}, bufio.ErrTooLong},
	} {
		if d, err := DiffTraces(c.a, c.b, 9); !errors.Is(err, c.want) {
			t.Errorf("got %s, %v, want %v", fmt.Sprintf("%.80v", d), err, c.want)
		}
	}
}
