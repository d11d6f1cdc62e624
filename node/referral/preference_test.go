package referral

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/trust"
)

// TestNearAnchorsWithTrustAreAskedFirst ranks anchors by distance, trust and failures.
func TestNearAnchorsWithTrustAreAskedFirst(t *testing.T) {
	const half, full = trust.MaxScore / 2, trust.MaxScore
	type known struct {
		trust trust.Score
		took  time.Duration
		fails int
	}
	for _, c := range []struct {
		name    string
		anchors [4]known // a, b, c, d
		order   string
	}{
		{"none is known", [4]known{{trust: half}, {trust: full}, {trust: half}, {trust: full}}, "bdac"},
		{"alike in trust: the nearest", [4]known{{half, 40 * time.Millisecond, 0}, {half, time.Millisecond, 0}, {half, 9 * time.Millisecond, 0}, {half, 0, 0}}, "dbca"},
		{"alike in distance: the most trust", [4]known{{half, 3 * time.Millisecond, 0}, {full, 3 * time.Millisecond, 0}, {LeastTrust, 3 * time.Millisecond, 0}, {half, 3 * time.Millisecond, 0}}, "badc"},
		{"full trust is worth half the way", [4]known{{trust.MaxScore / 5, 4 * time.Millisecond, 0}, {full, 30 * time.Millisecond, 0}, {full, 400 * time.Millisecond, 0}, {full, 20 * time.Millisecond, 0}}, "dbac"},
		{"little trust comes last, however near", [4]known{{LeastTrust - 1, 0, 0}, {half, time.Second, 1}, {LeastTrust, time.Second, 0}, {half, time.Second, 0}}, "dcba"},
		{"a failure is as far as a second", [4]known{{full, time.Millisecond, 1}, {full, 900 * time.Millisecond, 0}, {full, time.Millisecond, 2}, {full, 0, 0}}, "dbac"},
	} {
		e := epochOf(t, 4)
		f := &Scope{epoch: e, seen: make(map[aweigh.AnchorID]Conduct)}
		for i, k := range c.anchors {
			a := &e.Roster.Anchors[i]
			a.Score = k.trust
			f.seen[a.Key.ID()] = Conduct{took: k.took, fails: k.fails}
		}
		var got strings.Builder
		for _, p := range f.order() {
			got.WriteString(p.Anchor.Name)
		}
		if got.String() != c.order {
			t.Errorf("%s: asked in the order %s, not %s", c.name, got.String(), c.order)
		}
	}
}

// TestInquiriesTellWhomTheyAsked: each anchor that was asked, in order, with its answer, its failure, or none.
func TestInquiriesTellWhomTheyAsked(t *testing.T) {
	e := epochOf(t, 4)
	f := &Scope{epoch: e, seen: make(map[aweigh.AnchorID]Conduct), cache: make(map[aweigh.Hash]cached)}
	q := f.Inquire(Question{Kind: AskResolve, Newest: true}, 0)
	down := errors.New("down")
	var outrun []Query
	for n := 0; ; n++ {
		x, ok := q.Next()
		if !ok {
			break
		}
		switch n {
		case 0:
			q.Hear(x, time.Second, Answer{}, down)
		case 1:
			outrun = append(outrun, x)
			q.Hedge()
		default:
			q.Hear(x, time.Duration(n)*time.Millisecond, Answer{Epoch: e.Number, Revision: 3, Body: []byte{1}}, nil)
		}
	}
	if _, err, ended := q.Result(); !ended || err != nil {
		t.Fatalf("ended %v: %v", ended, err)
	}
	all := q.Asked()
	if len(all) != 4 || all[0].Err != down || all[1].Err != ErrOutrun || all[2].Err != nil || all[3].Answer != 3*time.Millisecond {
		t.Errorf("asked %+v", all)
	}
	q.Hear(outrun[0], time.Second, Answer{}, ErrOutrun) // too late to count
}
