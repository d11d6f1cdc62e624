package audit

import (
	"encoding/base64"
	"testing"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
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

// Redate is the line of a change with another time, and a header of its block that agrees with it.
func Redate(t *testing.T, c Change) string {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(c.Final)
	if err != nil {
		t.Fatal(err)
	}
	var f scope.Finality
	if err := canon.Decode(raw, &f); err != nil {
		t.Fatal(err)
	}
	f.Header.Time++
	c.Time, c.Block = instant(f.Header.Time), f.Header.Hash().String()
	c.Final = base64.StdEncoding.EncodeToString(canon.Encode(f))
	text, err := Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
