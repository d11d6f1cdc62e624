package show

import (
	"fmt"
	"strconv"

	"github.com/aweigh/aweigh/sim/scenario"
	"github.com/aweigh/aweigh/sim/sweep"
)

type diffJSON struct {
	Equal  bool     `json:"equal"`
	Line   uint64   `json:"line"` // the first that differs; of equal traces, how many there are
	Common []string `json:"common,omitempty"`
	A      []string `json:"a,omitempty"`
	B      []string `json:"b,omitempty"`
}

// Diff writes where two traces, of the names a and b, part.
func (p Printer) Diff(d sweep.TraceDiff, a, b string) error {
	if p.Format == JSON {
		return p.JSON(diffJSON(d))
	}
	if d.Equal {
		_, err := fmt.Fprintf(p.Out, "equal: %s lines\n", Grouped(d.Line))
		return err
	}
	var rows [][]string
	add := func(mark string, from uint64, lines []string) {
		for i, l := range lines {
			rows = append(rows, []string{mark, strconv.FormatUint(from+uint64(i), 10), l})
		}
	}
	end := func(mark string, lines []string) {
		if len(lines) == 0 {
			rows = append(rows, []string{mark, strconv.FormatUint(d.Line, 10), "(the trace has ended)"})
		}
	}
	add("", d.Line-uint64(len(d.Common)), d.Common)
	add("A", d.Line, d.A)
	end("A", d.A)
	add("B", d.Line, d.B)
	end("B", d.B)
	fmt.Fprintf(p.Out, "A: %s\nB: %s\n\n", Line(a), Line(b))
	return p.table(rows...)
}

type namedJSON struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

// Scenarios writes a library.
func (p Printer) Scenarios(all []scenario.Named) error {
	if p.Format == JSON {
		out := make([]namedJSON, len(all))
		for i, n := range all {
			out[i] = namedJSON(n)
		}
		return p.JSON(out)
	}
	rows := [][]string{{"NAME", "WHAT HAPPENS"}}
	for _, n := range all {
		rows = append(rows, []string{n.Name, n.About})
	}
	return p.table(rows...)
}
