package show

import (
	"bytes"
	"strings"
	"testing"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

// TestEqualEpochsAreOneLine: epochs in which nothing moved a score, for one reason, are one line of the table. Others
// have one each.
func TestEqualEpochsAreOneLine(t *testing.T) {
	var r aweighv1.ExplainResponse
	add := func(epoch uint64, before, after uint32, reason string) {
		r.Changes = append(r.Changes, &aweighv1.Change{Epoch: epoch, Height: epoch * 20, Before: before, After: after, Reason: reason})
	}
	add(9, 1000, 1000, "attended 20 of 20")
	add(8, 1000, 1000, "attended 20 of 20")
	add(7, 1000, 1000, "attended 20 of 20")
	add(6, 1000, 1000, "attended 19 of 20")
	add(5, 990, 1000, "attended 20 of 20")
	add(4, 980, 990, "attended 20 of 20")
	add(3, 980, 980, "attended 20 of 20")
	var out bytes.Buffer
	if err := (Printer{Out: &out, Format: Table}).Explain(&aweighv1.Standing{Name: "a"}, &r, Names{}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range strings.Split(strings.TrimSpace(out.String()), "\n")[3:] {
		got = append(got, strings.Join(strings.Fields(l), " "))
	}
	want := []string{
		"9 to 7 180 to 140 1000 -> 1000 attended 20 of 20", "6 120 1000 -> 1000 attended 19 of 20", "5 100 990 -> 1000 attended 20 of 20",
		"4 80 980 -> 990 attended 20 of 20", "3 60 980 -> 980 attended 20 of 20",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
