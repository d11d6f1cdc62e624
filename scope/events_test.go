package scope

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

// TestPlacesOfOneRevisionAreBounded deletes many keys in one revision. What is listed at a time is bounded,
// one place stands for the rest, and all parts together are all changes, of all keys and of some, once and in order.
func TestPlacesOfOneRevisionAreBounded(t *testing.T) {
	const keys, perBlock = 3000, 100
	w := newWorld(t)
	w.skip = true
	key := func(i int) []byte { return fmt.Appendf(nil, "k%04d%s", i, bytes.Repeat([]byte{'-'}, 100)) }
	for i := 0; i < keys; {
		var ops []Op
		for range perBlock {
			ops = append(ops, put(string(key(i)), "v"))
			i++
		}
		w.one(w.ops(ops...))
	}
	w.one(w.ops(del("k", "l")))
	at := w.state.Head().Revision
	w.one(w.put("k", "after"))
	for _, c := range []struct{ from, to int }{{0, keys}, {keys / 2, keys}, {10, 20}, {keys - 1, keys}} {
		from, end := key(c.from), key(c.to)
		places, next, err := w.state.Places(at, at+1, from, end, 1000)
		if err != nil || next != at+1 && next != at+2 {
			t.Fatalf("next is %d: %v", next, err)
		}
		listed, parts := 0, 1
		for ; len(places) > 0; places = places[1:] {
			size := 0
			for _, p := range places {
				size += 64 + len(p.Key)
			}
			if size > placesBytes+1024 {
				t.Fatalf("places of %d bytes are listed at a time", size)
			}
			for len(places) > 1 {
				p := places[0]
				if p.Remainder || p.Revision != at || !bytes.Equal(p.Key, key(c.from+listed)) {
					t.Fatalf("in place %d stands %q of revision %d", listed, p.Key, p.Revision)
				}
				places = places[1:]
				listed++
			}
			if last := places[0]; last.Remainder {
				parts++
				rest, err := w.state.Remainder(last, from, end)
				if err != nil {
					t.Fatal(err)
				}
				places = slices.Concat(places, rest)
				continue
			}
			listed++
		}
		if many := c.to-c.from > 1000; listed != c.to-c.from || many != (parts > 1) {
			t.Errorf("%d changes in %d parts, want %d", listed, parts, c.to-c.from)
		}
		events, _, err := w.state.Events(at, at, from, end, 1)
		if err != nil || len(events) != listed {
			t.Errorf("%d events of %d places: %v", len(events), listed, err)
		}
	}
	// A place may stand for no change of other keys.
	places, _, err := w.state.Places(at, at, []byte{0}, []byte{0}, 1)
	if err != nil || !places[len(places)-1].Remainder {
		t.Fatalf("%d places: %v", len(places), err)
	}
	if none, err := w.state.Remainder(places[len(places)-1], key(0), nil); err != nil || len(none) > 0 {
		t.Errorf("the rest has %d changes of the first key: %v", len(none), err)
	}
	w.one(w.compaction(at + 1))
	if _, err := w.state.Remainder(places[len(places)-1], []byte{0}, []byte{0}); err != ErrCompacted {
		t.Errorf("the rest of a compacted revision: %v", err)
	}
}
