package show

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

// TestStatusShowsHowFarASnapshotIs: in words and for programs, and 100 % is all of it.
func TestStatusShowsHowFarASnapshotIs(t *testing.T) {
	for _, c := range []struct {
		of      *aweighv1.Snapshot
		words   string
		percent float64
	}{
		{&aweighv1.Snapshot{Height: 7000, Parts: 1, Of: 3, Bytes: 5 << 20, Peers: []string{"a", "b"}},
			"catching up by snapshot: 33.3 % of the state of height 7000 from 2 peers, 5 MiB", 33.3},
		{&aweighv1.Snapshot{Height: 7000, Parts: 9999, Of: 10000}, "99.9 % of the state of height 7000 from no peer at present, 0 MiB", 99.9},
		{&aweighv1.Snapshot{Height: 7000, Parts: 2, Of: 2, Peers: []string{"a"}}, "100.0 % of the state of height 7000 from 1 peer, 0 MiB", 100},
		{nil, "catching up", -1},
	} {
		s := &aweighv1.StatusResponse{CatchingUp: true, Snapshot: c.of}
		var text, raw bytes.Buffer
		if err := (Printer{Out: &text, Format: Table}).Status(s); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), c.words) {
			t.Errorf("it says\n%s\nand not %q", &text, c.words)
		}
		if err := (Printer{Out: &raw, Format: JSON}).Status(s); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Snapshot *struct{ Percent float64 }
		}
		if err := json.Unmarshal(raw.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if (got.Snapshot == nil) != (c.of == nil) || c.of != nil && got.Snapshot.Percent != c.percent {
			t.Errorf("%v: %+v", c.of, got.Snapshot)
		}
	}
}
