package report

import (
	"html/template"
	"strings"
)

// figure is a drawing with its text and its numbers.
type figure struct {
	ID      string
	Title   string
	Caption string
	Drawing template.HTML // empty: there is nothing to draw, and Caption has the reason
	Wide    bool          // scrolls on small screens
	Steps   []string      // what happened, in order
	Key     []keyEntry
	Tables  []table
	Source  *Source
}

// keyEntry is a sign of a drawing with its meaning.
type keyEntry struct {
	Sign template.HTML
	Text string
}

// table is rows below a head.
type table struct {
	Title   string // "" for "The numbers"
	Head    []string
	Rows    [][]string
	Note    string
	Numbers bool // all columns but the first are numbers
}

// mostRows bounds a table.
const mostRows = 200

// cut keeps the table within bounds.
func (t table) cut() table {
	if len(t.Rows) > mostRows {
		t.Note = "The first " + plural(mostRows, "row") + " of " + grouped(uint64(len(t.Rows))) + "."
		t.Rows = t.Rows[:mostRows]
	}
	return t
}

// Source states where the data of a figure comes from.
type Source struct {
	Seeds   string // like 1 to 5
	Command string // that makes the figure again
	World   string // one of the worlds behind it, as YAML; may be empty
}

// Which is the seeds in words.
func (s Source) Which() string {
	if strings.Contains(s.Seeds, " ") {
		return "Seeds " + s.Seeds + "."
	}
	return "Seed " + s.Seeds + "."
}
