package show

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

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

// TestHealthCountsAnchorsThatSign: it names the others, and counts none without weight.
func TestHealthCountsAnchorsThatSign(t *testing.T) {
	anchor := func(name string, weight uint64, state string) *aweighv1.Anchor {
		return &aweighv1.Anchor{Id: []byte(name), Name: name, Weight: weight, State: state, SilentUntil: 3, Reachable: state == "signing"}
	}
	status := func(left int64, last *aweighv1.Anchor) *aweighv1.StatusResponse {
		return &aweighv1.StatusResponse{FailuresLeft: left, Notarize: 267, Finalize: 267, TotalWeight: 400, ReachableWeight: 300, Anchors: []*aweighv1.Anchor{
			anchor("a", 100, "signing"), anchor("b", 100, "signing"), anchor("c", 100, "signing"), last,
		}}
	}
	for want, s := range map[string]*aweighv1.StatusResponse{
		"ok; 1 of 4 anchors may fail": status(1, anchor("d", 100, "signing")),
		"degraded; 3 of 4 anchors sign; no more may fail; d lost its record, and signs nothing before epoch 3":                   status(0, anchor("d", 100, "silenced")),
		"degraded; 3 of 4 anchors sign; no more may fail; d is not connected":                                                    status(0, anchor("d", 100, "away")),
		"degraded; 3 of 4 anchors sign; no more may fail; d did not report yet if it signs":                                      status(0, anchor("d", 100, "of a later version")),
		"NO QUORUM: 3 of 4 anchors sign, fewer than the policy asks for; writes wait; d runs without the key that it votes with": status(-1, anchor("d", 100, "keyless")),
		"ok; none of 3 anchors may fail; 1 anchor of weight 0 not counted":                                                       status(0, anchor("d", 0, "signing")),
	} {
		if got := Health(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestQuorumSaysNothingTwice checks that each combination of anchors that sign, weigh and may fail gives one
// sentence, with "ok" only if all anchors of weight sign.
func TestQuorumSaysNothingTwice(t *testing.T) {
	for _, c := range []struct {
		signing, silent, weightless int
		left                        int64
		weight                      uint64
		want                        string
	}{
		{4, 0, 0, 1, 400, "ok; 1 of 4 anchors may fail"},
		{3, 1, 0, 0, 300, "degraded; 3 of 4 anchors sign; no more may fail"},
		{2, 2, 0, -1, 200, "NO QUORUM: anchors of weight 200 sign, 267 is needed; writes wait"},
		{4, 0, 0, 0, 400, "ok; none of 4 anchors may fail"},                                               // the policy asks for all four
		{3, 1, 0, -1, 300, "NO QUORUM: 3 of 4 anchors sign, fewer than the policy asks for; writes wait"}, // likewise
		{1, 0, 0, 0, 400, "ok; none of 1 anchor may fail"},
		{4, 1, 0, 1, 390, "degraded; 4 of 5 anchors sign; 1 more may fail"}, // as much as if all signed: the silent one is light
		{6, 1, 0, 1, 350, "degraded; 6 of 7 anchors sign; 1 more may fail"},
		{3, 0, 1, 0, 300, "ok; none of 3 anchors may fail"},
		{0, 0, 0, -1, 0, "NO QUORUM: anchors of weight 0 sign, 267 is needed; writes wait"},
	} {
		s := &aweighv1.StatusResponse{FailuresLeft: c.left, Notarize: 267, Finalize: 267, ReachableWeight: c.weight}
		add := func(n int, a *aweighv1.Anchor) {
			for range n {
				s.Anchors = append(s.Anchors, a)
			}
		}
		add(c.signing, &aweighv1.Anchor{Weight: 100, Reachable: true})
		add(c.silent, &aweighv1.Anchor{Weight: 100, Self: true}) // an anchor that lost its record knows it of itself, too
		add(c.weightless, &aweighv1.Anchor{})
		if got := Quorum(s); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestStatusTellsOfATimeAhead, and is silent otherwise.
func TestStatusTellsOfATimeAhead(t *testing.T) {
	for by, told := range map[time.Duration]bool{23 * time.Hour: true, 0: false, -time.Hour: false} { // order-free: each alone
		var text bytes.Buffer
		s := &aweighv1.StatusResponse{BlockTimeNs: time.Now().Add(by).UnixNano()}
		if err := (Printer{Out: &text, Format: Table}).Status(s); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(text.String(), "AHEAD of this machine's clock by 23h0m0s"); got != told {
			t.Errorf("%v ahead: it says\n%s", by, &text)
		}
	}
}
