package scope

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/votes"
)

// flood opens so many motions of an author, in blocks, and returns what became of each mutation.
func (w *assembly) flood(author votes.PrivateKey, name string, count int) (out []Outcome) {
	w.t.Helper()
	before := w.author
	defer func() { w.author = before }()
	w.author = author
	for i := 0; i < count; i += 25 {
		var muts []Mutation
		for k := i; k < min(i+25, count); k++ {
			muts = append(muts, w.put(fmt.Sprintf("/secrets/%s/%d", name, k), "1"))
		}
		out = append(out, w.step(muts...).Outcomes...)
	}
	return out
}

func pending(out []Outcome) (n int) {
	for i := range out {
		if out[i].Code == Pending {
			n++
		}
	}
	return n
}

// TestStrangersFillTheirOwnRoomAlone: motions of throwaway keys, however many, keep no anchor and no approver from
// opening one.
func TestStrangersFillTheirOwnRoomAlone(t *testing.T) {
	testshort.Skip(t)
	approver := testKey(t, 50)
	w := newAssembly(t, 4, func(p *Policy) {
		p.Approvals[0].Window = 24 * time.Hour
		p.Approvals[0].Approvers = []Approver{{Name: "judith", Key: approver.Public(), Share: 1}}
	})
	w.skip = true
	total := 0
	for i := range 5 {
		total += pending(w.flood(testKey(t, byte(60+i)), fmt.Sprintf("flood%d", i), 250))
	}
	if total != motionsOfOne {
		t.Fatalf("five strangers opened %d motions", total)
	}
	for i, key := range append([]votes.PrivateKey{approver}, w.keys...) {
		if n := pending(w.flood(key, fmt.Sprintf("mine%d", i), 150)); n != 150 {
			t.Errorf("author %d opened %d of 150 motions", i, n)
		}
	}
	if d := w.state.Head().Docket; d.Open != 1000 {
		t.Errorf("docket %+v", d)
	}
}

// TestMotionsGiveWayInTheirOrder fills a scope: strangers' motions go first, then those of the author with the most.
func TestMotionsGiveWayInTheirOrder(t *testing.T) {
	testshort.Skip(t)
	w := newAssembly(t, 5, func(p *Policy) { p.Approvals[0].Window = 24 * time.Hour })
	w.skip = true
	stranger := w.flood(testKey(t, 60), "s", 250)
	again := w.flood(testKey(t, 61), "early", 1)
	if again[0].Code != Failed || !strings.Contains(again[0].Reason, "does not know") {
		t.Fatalf("a stranger's motion too many: %+v", again[0])
	}
	w.now = w.now.Add(strangerMotionStay)
	if again = w.flood(testKey(t, 61), "late", 1); again[0].Code != Pending {
		t.Fatalf("a stranger's motion when others were open for long: %+v", again[0])
	}
	gone := func(all []Outcome) (n int) {
		t.Helper()
		for i := range all {
			_, end, err := w.state.Motion(votes.MotionID(all[i].Mutation))
			if err != nil {
				t.Fatal(err)
			}
			if end != nil && (end.Fate != Lapsed || end.Reason != gaveWay) {
				t.Fatalf("motion %d ended as %s", i, end)
			}
			if end != nil {
				n++
			}
		}
		return n
	}
	if gone(stranger) != 1 {
		t.Fatalf("%d motions of strangers gave way to one", gone(stranger))
	}
	var first []Outcome
	for i := range 4 {
		out := w.flood(w.keys[i], fmt.Sprint("a", i), 250)
		if pending(out) != 250 {
			t.Fatalf("anchor %d opened %d motions of 250", i, pending(out))
		}
		if i == 0 {
			first = out
		}
	}
	if gone(stranger) != 250 || gone(again) != 1 || gone(first) != 0 {
		t.Errorf("%d of 250, %d of 1 motions of strangers gave way to anchors, and %d of an anchor's", gone(stranger), gone(again), gone(first))
	}
	if out := w.flood(testKey(t, 62), "none", 1); out[0].Code != Failed || out[0].Reason == "" {
		t.Errorf("a stranger's motion where anchors have filled the room: %+v", out[0])
	}
	last := w.flood(w.keys[4], "b", 100)
	if pending(last) != 100 || w.state.Head().Docket.Open != 1000 {
		t.Errorf("the fifth anchor opened %d motions of 100; docket %+v", pending(last), w.state.Head().Docket)
	}
	if n := gone(first); n != 25 { // those with the most give way in turns
		t.Errorf("%d of its motions came from the first anchor's", n)
	}
	if out := w.flood(w.keys[0], "c", 26); pending(out) != 0 && gone(last) > 0 {
		t.Errorf("%d motions of an author that gave way made %d of a smaller one give way", pending(out), gone(last))
	}
}
