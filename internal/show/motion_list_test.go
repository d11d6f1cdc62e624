package show

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

// A list of motions fits a terminal, marks an open one that would be void, and names the node that answered
// alone.
func TestMotionsAreListedBriefly(t *testing.T) {
	long := "another policy, 107acfe6, takes effect; this one was proposed from the one before, and would undo it: propose it again"
	r := &aweighv1.MotionsResponse{Header: &aweighv1.Header{Height: 7, Node: "oslo"}, Motions: []*aweighv1.Motion{
		{Id: []byte{1, 2, 3, 4}, Subject: "put /a", AuthorName: "oslo", Fate: "open", Doomed: long, Total: 4, Needed: 3},
		{Id: []byte{1, 2, 3, 5}, Subject: "put /b", AuthorName: "oslo", Fate: "superseded", Reason: long, Total: 4, Needed: 3, ClosedNs: 1},
	}}
	var out bytes.Buffer
	if err := (Printer{Out: &out, Format: Table}).Motions(r); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(line); n > 130 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{"would be void ", "superseded ", "as of block 7, reported by oslo alone: no quorum answered"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
	out.Reset()
	r.Motions = nil
	if err := (Printer{Out: &out, Format: Table}).Motions(r); err != nil || !strings.Contains(out.String(), "no motions; as of block 7, reported by oslo alone") {
		t.Errorf("%v: %s", err, out.String())
	}
	r.Header.Linearizable = true
	out.Reset()
	if err := (Printer{Out: &out, Format: Table}).Motions(r); err != nil || out.String() != "no motions\n" {
		t.Errorf("%v: %s", err, out.String())
	}
}
