package show_test

import (
	"strings"
	"testing"
	"time"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/show"
)

// TestTopologyTellsWhatIsNext: the table names the prefix, why nothing is done, and leaves out what is cold.
func TestTopologyTellsWhatIsNext(t *testing.T) {
	r := &aweighv1.TopologyResponse{
		Header: &aweighv1.Header{Epoch: 7, Linearizable: true}, Split: "advise", Rate: 50, Epochs: 1, Rest: 4, Most: 3, Changes: 100, SinceNs: int64(2 * time.Second), Busy: 100,
		Heat: []*aweighv1.Heat{{Prefix: []byte("/a/"), Least: 40, Most: 42, Streak: 1}, {Prefix: []byte("/a/\x00"), Key: true, Least: 4, Most: 4}, {Prefix: []byte("/b/"), Least: 50, Most: 50}},
		Next: []byte("/b/"), Reason: "the policy lets the scope advise alone",
	}
	write := func(f show.Format) string {
		var out strings.Builder
		if err := (show.Printer{Out: &out, Format: f}).Topology(r); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	text := write(show.Table)
	for _, want := range []string{
		"advise: a prefix is busy from 50 changes a second on, and is split off after 1 busy epoch in a row", "0 of 3 splits, at least 4 epochs apart",
		"7, with 100 changes in 2s so far", `/b/, but not now: the policy lets the scope advise alone; "aweigh scope create /b/" makes it one`,
		"/b/    50        25.0      50.0 %  -", "/a/    40 to 42  20.0      40.0 %  1 epoch",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "(key)") {
		t.Errorf("a cold key is there:\n%s", text)
	}
	if j := write(show.JSON); !strings.Contains(j, `"next": "/b/"`) || !strings.Contains(j, `"prefix_hex": "2f612f00"`) || !strings.Contains(j, `"reason"`) {
		t.Errorf("as JSON:\n%s", j)
	}
	r.Split, r.Next, r.Heat, r.Reason = "off", nil, nil, "the policy has topology.split off"
	if text := write(show.Table); !strings.Contains(text, "next   nothing: the policy has topology.split off") {
		t.Errorf("off:\n%s", text)
	}
}
