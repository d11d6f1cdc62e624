package show

import (
	"bytes"
	"strings"
	"testing"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

// Lists cut cells for a terminal, and nowhere else.
func TestCellsAreCutForTerminalsAlone(t *testing.T) {
	long := strings.Repeat("long", 20)
	r := &aweighv1.MotionsResponse{Header: &aweighv1.Header{Linearizable: true}, Motions: []*aweighv1.Motion{
		{Id: []byte{1, 2, 3, 4}, Subject: long + "-subject", AuthorName: long + "-author", Fate: "open", Total: 4, Needed: 3},
		{Id: []byte{1, 2, 3, 5}, Subject: "put /site/a", ScopePrefix: []byte("/site/"), Fate: "open"},
	}}
	for _, whole := range []bool{false, true} {
		var out bytes.Buffer
		if err := (Printer{Out: &out, Format: Table, Whole: whole}).Motions(r); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), long+"-subject") && strings.Contains(out.String(), long+"-author"); got != whole {
			t.Errorf("whole %v:\n%s", whole, out.String())
		}
	}
}

// Lines of tables end with their last letter.
func TestTablesHaveNoTrailingBlanks(t *testing.T) {
	var out bytes.Buffer
	if err := (Printer{Out: &out, Format: Table}).table([]string{"NAME", "COMMENT"}, []string{"a", ""}, []string{"b", "words"}); err != nil {
		t.Fatal(err)
	}
	if want := "NAME  COMMENT\na\nb     words\n"; out.String() != want {
		t.Errorf("%q, not %q", out.String(), want)
	}
}

// The role root permits everything by its name, in JSON as in the table.
func TestRootMayDoEverything(t *testing.T) {
	var out bytes.Buffer
	err := Printer{Out: &out, Format: JSON}.Users(&aweighv1.UsersResponse{Roles: []*aweighv1.Role{{Name: "root"}}})
	if err != nil || !strings.Contains(out.String(), `"keys": "all"`) {
		t.Errorf("%v: %s", err, out.String())
	}
}
