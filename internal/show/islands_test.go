package show

import (
	"bytes"
	"strings"
	"testing"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

// TestIslandsNameMotions: an island shows the motion about each change that was set aside, if there is one.
func TestIslandsNameMotions(t *testing.T) {
	i := &aweighv1.Island{Id: make([]byte, 32), Recorded: true, Stands: 1, Aside: 2, SetAside: []*aweighv1.SetAside{
		{Key: []byte("/a"), Mutation: []byte{1, 1, 1, 1}, Reason: "changed", Motion: []byte{0xab, 0xcd, 0xef, 1, 2}},
		{Key: []byte("/b"), Mutation: []byte{2, 2, 2, 2}, Reason: "denied"},
	}}
	var table, json bytes.Buffer
	for out, format := range map[*bytes.Buffer]Format{&table: Table, &json: JSON} { // order-free
		if err := (Printer{Out: out, Format: format}).Island(&aweighv1.Header{}, i); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"/a   01010101  abcdef01  changed", "/b   02020202  -         denied", "stands     1 mutation\n", "set aside  2 mutations\n"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, &table)
		}
	}
	if want := `"motion": "abcdef0102"`; strings.Count(json.String(), `"motion":`) != 1 || !strings.Contains(json.String(), want) {
		t.Errorf("no %s in\n%s", want, &json)
	}
}

// TestPartitionsAreShown: the status and the list of islands of a scope without a quorum have what becomes of each
// partition, and name --provisional only where an island decides.
func TestPartitionsAreShown(t *testing.T) {
	parts := []*aweighv1.Partition{
		{Prefix: []byte("/ship/"), Island: []byte{0xab, 0xcd, 0xef, 1, 2}},
		{Prefix: []byte("/clinic/"), Why: "no island stands yet"},
	}
	for what, print := range map[string]func(Printer) error{
		"status":  func(p Printer) error { return p.Status(&aweighv1.StatusResponse{Partitions: parts}) },
		"islands": func(p Printer) error { return p.Islands(&aweighv1.IslandsResponse{Partitions: parts}) },
	} {
		var table, json bytes.Buffer
		for out, format := range map[*bytes.Buffer]Format{&table: Table, &json: JSON} { // order-free
			if err := print(Printer{Out: out, Format: format}); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range []string{"/ship/: island abcdef01 decides provisionally, on requests with --provisional\n", "/clinic/: no island stands yet\n"} {
			if !strings.Contains(table.String(), want) {
				t.Errorf("%s has no %q:\n%s", what, want, &table)
			}
		}
		for _, want := range []string{`"prefix": "/ship/"`, `"island": "abcdef0102"`, `"why": "no island stands yet"`} {
			if !strings.Contains(json.String(), want) {
				t.Errorf("%s has no %s:\n%s", what, want, &json)
			}
		}
	}
}
