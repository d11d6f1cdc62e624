package show

import (
	"bytes"
	"strings"
	"testing"
	"time"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

// TestApprovedMotionsWaitForTheirTurn: the deadline of an approved motion has no meaning any more.
func TestApprovedMotionsWaitForTheirTurn(t *testing.T) {
	over := time.Unix(1795238989, 0)
	m := &aweighv1.Motion{Id: make([]byte, 32), Fate: "approved", ApprovedHeight: 17, DeadlineNs: over.UnixNano(),
		Total: 3, Approve: 3, Needed: 2}
	for name, show := range map[string]func(Printer) error{
		"show":  func(p Printer) error { return p.Motion(&aweighv1.MotionResponse{Motion: m}) },
		"ls":    func(p Printer) error { return p.Motions(&aweighv1.MotionsResponse{Motions: []*aweighv1.Motion{m}}) },
		"write": func(p Printer) error { return p.Pending(&aweighv1.MotionResponse{Motion: m}) },
	} {
		var table, json bytes.Buffer
		if err := show(Printer{Out: &table, Format: Table}); err != nil {
			t.Fatal(err)
		}
		if err := show(Printer{Out: &json, Format: JSON}); err != nil {
			t.Fatal(err)
		}
		text := table.String()
		if name != "ls" && !strings.Contains(text, "approved, waits for its turn") || strings.Contains(text, instant(m.DeadlineNs)) {
			t.Errorf("%s:\n%s", name, text)
		}
		if name != "write" && !strings.Contains(text, "approved in block 17") {
			t.Errorf("%s does not say since when:\n%s", name, text)
		}
		if text := json.String(); !strings.Contains(text, `"fate": "approved"`) || !strings.Contains(text, `"approved_height": 17`) {
			t.Errorf("%s:\n%s", name, text)
		}
	}
	if s := Progress(m); !strings.HasSuffix(s, "approved, waits for its turn") {
		t.Error(s)
	}
}
