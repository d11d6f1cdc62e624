package scope

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/votes"
)

// flood opens so many motions of an author, in blocks, and returns what became of each mutation. The author may act
// under grants.
func (w *assembly) flood(author votes.PrivateKey, name string, count int, grants ...[]byte) (out []Outcome) {
	w.t.Helper()
	before := w.author
	defer func() { w.author = before }()
	w.author = author
	for i := 0; i < count; i += 25 {
		var muts []Mutation
		for k := i; k < min(i+25, count); k++ {
			m := w.put(fmt.Sprintf("/secrets/%s/%d", name, k), "1")
			m.Grants = grants
			muts = append(muts, m)
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

// TestUnlistedAuthorsFillTheirOwnRoomAlone: motions of throwaway keys, however many, keep no anchor and no approver
// from opening one.
func TestUnlistedAuthorsFillTheirOwnRoomAlone(t *testing.T) {
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
		t.Fatalf("five unlisted authors opened %d motions", total)
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

// TestCallersOfANodeShareItsRoom: a node signs for all of its clients. One of them fills what room there is, and gives
// way to the others up to an equal share.
func TestCallersOfANodeShareItsRoom(t *testing.T) {
	testshort.Skip(t)
	w := newAssembly(t, 4, func(p *Policy) { p.Approvals[0].Window = 24 * time.Hour })
	w.skip = true
	w.author = w.keys[0]
	opens := func(caller, name string, count int) (n int) {
		for i := 0; i < count; i += 25 {
			var muts []Mutation
			for k := i; k < min(i+25, count); k++ {
				m := w.put(fmt.Sprintf("/secrets/%s/%d", name, k), "1")
				m.Caller = caller
				muts = append(muts, m)
			}
			n += pending(w.step(muts...).Outcomes)
		}
		return n
	}
	open := func() map[string]int {
		by := make(map[string]int)
		err := w.state.eachOpen(func(_ aweigh.Instant, _ votes.MotionID, line indexedMotion) bool {
			by[line.Caller]++
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		return by
	}
	if n := opens("user:loud", "loud", 300); n != motionsOfOne {
		t.Fatalf("one caller opened %d motions", n)
	}
	if n := opens("user:quiet", "quiet", 50); n != 50 {
		t.Errorf("another caller opened %d of 50 motions", n)
	}
	if n := opens("user:loud", "again", 25); n != 0 {
		t.Errorf("the caller with the most opened %d more", n)
	}
	if n := opens("user:third", "third", 300); n != 100 { // each takes the place of one of the caller with the most
		t.Errorf("a third caller opened %d motions", n)
	}
	by := open()
	if by["user:quiet"] != 50 || by["user:loud"]+by["user:third"] != motionsOfOne-50 || by["user:loud"]-by["user:third"] > 1 || by["user:third"]-by["user:loud"] > 1 {
		t.Errorf("open motions: %v", by)
	}
}

// TestListedAuthorsHaveRoomOfTheirOwn: each author that the policy lists by its key has a room for itself, whatever
// authors do that it does not list, and the holders of its grants share that room.
func TestListedAuthorsHaveRoomOfTheirOwn(t *testing.T) {
	testshort.Skip(t)
	ann, bob, reader := testKey(t, 70), testKey(t, 71), testKey(t, 72)
	w := newAssembly(t, 4, func(p *Policy) {
		p.Approvals[0].Window = 24 * time.Hour
		p.Authors = []Author{
			{Name: "all", Who: Anyone},
			{Name: "ann", Who: OneKey, Key: ann.Public(), Prefixes: [][]byte{[]byte("/secrets/ann")}},
			{Name: "bob", Who: OneKey, Key: bob.Public()},
			{Name: "reader", Who: OneKey, Key: reader.Public(), Verbs: []string{VerbRead}},
		}
	})
	w.skip = true
	granted := func(by, to votes.PrivateKey) []byte {
		g, err := SignGrant(by.Signer(), Grant{Scope: w.g.Hash(), To: to.Public(), Name: "ci", NotAfter: w.now.Add(24 * time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		return g.Encode()
	}
	for i, c := range []struct {
		by         votes.PrivateKey
		grants     [][]byte
		asks, want int
	}{
		{testKey(t, 60), nil, 250, 250},
		{testKey(t, 61), nil, 25, 0},
		{reader, nil, 25, 0}, // reading changes nothing: it is no author
		{ann, nil, 275, 250},
		{bob, nil, 200, 200},
		{testKey(t, 80), [][]byte{granted(bob, testKey(t, 80))}, 50, 50},
		{testKey(t, 81), [][]byte{granted(bob, testKey(t, 81))}, 25, 0},
		{ann, [][]byte{granted(bob, ann)}, 25, 0},                                  // in bob's room
		{testKey(t, 82), [][]byte{granted(testKey(t, 62), testKey(t, 82))}, 25, 0}, // an unlisted author's
		{w.keys[0], nil, 100, 100},
	} {
		if n := pending(w.flood(c.by, fmt.Sprint("ann", i), c.asks, c.grants...)); n != c.want {
			t.Errorf("author %d opened %d of %d motions, want %d", i, n, c.asks, c.want)
		}
	}
}

// TestMotionsGiveWayInTheirOrder fills a scope: motions of unlisted authors go first, then those of the author with
// the most.
func TestMotionsGiveWayInTheirOrder(t *testing.T) {
	testshort.Skip(t)
	w := newAssembly(t, 5, func(p *Policy) { p.Approvals[0].Window = 24 * time.Hour })
	w.skip = true
	unlisted := w.flood(testKey(t, 60), "s", 250)
	again := w.flood(testKey(t, 61), "early", 1)
	if again[0].Code != Failed || !strings.Contains(again[0].Reason, "does not know") {
		t.Fatalf("an unlisted author's motion too many: %+v", again[0])
	}
	w.now = w.now.Add(unlistedMotionStay)
	if again = w.flood(testKey(t, 61), "late", 1); again[0].Code != Pending {
		t.Fatalf("an unlisted author's motion when others were open for long: %+v", again[0])
	}
	gone := func(all []Outcome) (n int) {
		t.Helper()
		for i := range all {
			_, end, err := w.state.Motion(votes.MotionID(all[i].Mutation))
			if err != nil {
				t.Fatal(err)
			}
			if end != nil && (end.Fate != MotionExpired || end.Reason != gaveWay) {
				t.Fatalf("motion %d ended as %s", i, end)
			}
			if end != nil {
				n++
			}
		}
		return n
	}
	if gone(unlisted) != 1 {
		t.Fatalf("%d motions of unlisted authors gave way to one", gone(unlisted))
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
	if gone(unlisted) != 250 || gone(again) != 1 || gone(first) != 0 {
		t.Errorf("%d of 250, %d of 1 motions of unlisted authors gave way to anchors, and %d of an anchor's", gone(unlisted), gone(again), gone(first))
	}
	if out := w.flood(testKey(t, 62), "none", 1); out[0].Code != Failed || out[0].Reason == "" {
		t.Errorf("an unlisted author's motion where anchors have filled the room: %+v", out[0])
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
