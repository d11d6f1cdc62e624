package scope

import (
	"strings"
	"testing"
	"time"
)

// TestP54OldIslandsGiveWay: once the scope has as many islands on record as it keeps, the one of the oldest base gives
// way to a newer one when all of it was taken or no island waits for it any more, and does not come back.
func TestP54OldIslandsGiveWay(t *testing.T) {
	r := newShip(t)
	b := DefaultBounds()
	b.Islands = 2
	announced := func(c *isle) Outcome {
		re := c.source().Announcement()
		r.state = r.state.Within(&b)
		return r.rejoin("a", re)
	}
	r.one(r.put("/ship/log", "1"))
	var all []*isle
	for _, key := range []string{"/ship/0", "/ship/1", "/ship/2", "/ship/3"} {
		c := r.isle("a", "b")
		c.do(c.put(key, "island"), c.put("/ship/log", key))
		all = append(all, c)
		r.one(r.put("/ship/log", key))
	}
	for _, i := range []int{1, 2} {
		if out := announced(all[i]); out.Code != Applied {
			t.Fatalf("island %d: %s %s", i, out.Code, out.Reason)
		}
	}
	refused := func(i int, want string) {
		t.Helper()
		if out := announced(all[i]); out.Code != Failed || !strings.Contains(out.Reason, want) {
			t.Errorf("island %d: %s %q, want %q", i, out.Code, out.Reason, want)
		}
	}
	refused(3, "the oldest is not complete")
	refused(0, reason(ErrIslandOld))
	r.now = r.now.Add(10 * time.Second)
	for _, i := range []int{2, 1} { // the newer base goes first
		re, err := all[i].source().Next(all[i].g.Descent.Keys, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		r.state = r.state.Within(&b)
		if out := r.rejoin("a", re); out.Code != Applied {
			t.Fatalf("%s %s", out.Code, out.Reason)
		}
	}
	if out := announced(all[3]); out.Code != Applied {
		t.Errorf("instead of one that is complete: %s %s", out.Code, out.Reason)
	}
	refused(1, reason(ErrIslandOld))
	left, err := r.state.Islands()
	if err != nil || len(left) != 2 {
		t.Errorf("on record: %+v, %v", left, err)
	}
	if err := r.state.AsideOf(all[1].g.Hash(), func(key []byte, _ SetAside) bool {
		t.Errorf("what was set aside of %s is still on record", key)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	r.now = r.now.Add(11 * 10 * time.Second) // no island waits for the second any more
	newest := r.isle("a", "b")
	newest.do(newest.put("/ship/log", "newest"))
	if out := announced(newest); out.Code != Applied {
		t.Errorf("instead of one that no island waits for: %s %s", out.Code, out.Reason)
	}
}
