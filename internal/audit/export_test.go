package audit

import (
	"testing"

	"github.com/aweigh/aweigh/lineage"
)

// Forge is the line of a changed entry, with the hash of that.
func Forge(t *testing.T, c Change, change func(*lineage.Entry)) string {
	t.Helper()
	e, err := c.entry()
	if err != nil {
		t.Fatal(err)
	}
	change(&e)
	forged := changeOf(&e, c.Index)
	forged.Block, forged.Time, forged.AuthorName, forged.Final = c.Block, c.Time, c.AuthorName, c.Final
	text, err := Encode(forged)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
