package scope

import (
	"testing"

	"github.com/aweigh/aweigh/kv"
)

// TestCacheTellsWhatTheStoreTells compares a cache that was there from the start,
// and one that is opened later, with the store, for every receipt and key.
func TestCacheTellsWhatTheStoreTells(t *testing.T) {
	w := newWorld(t)
	base := kv.NewOverlay(w.r)
	early, err := NewCache(base, w.g.Hash())
	if err != nil {
		t.Fatal(err)
	}
	freed, err := NewCache(base, w.g.Hash())
	if err != nil {
		t.Fatal(err)
	}
	var muts []Mutation
	keys := []string{"a", "b", "a\x00", "c"}
	compare := func(when string, c *Cache) {
		t.Helper()
		plain, err := Open(base, w.g.Hash())
		if err != nil {
			t.Fatal(err)
		}
		cached, err := Open(c, w.g.Hash())
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range w.sign(muts...) {
			for i := range b.Mutations() {
				id := b.Mutations()[i].ID
				want, there, err := plain.Outcome(id)
				got, ok, gotErr := cached.Outcome(id)
				if got != want || ok != there || err != nil || gotErr != nil {
					t.Fatalf("%s: mutation %s: %v, want %v", when, id.Short(), ok, there)
				}
			}
		}
		for _, key := range keys {
			want, there, err := plain.newest([]byte(key))
			got, ok, gotErr := cached.newest([]byte(key))
			if got.ModRevision != want.ModRevision || string(got.Value) != string(want.Value) || got.UID != want.UID || ok != there || err != nil || gotErr != nil {
				t.Fatalf("%s: %q is %v %+v, want %v %+v", when, key, ok, got, there, want)
			}
		}
	}
	apply := func(m ...Mutation) {
		ops := w.step(m...).Ops
		base.Apply(ops...)
		early.Applied(ops)
		freed.FreeMemory()
		freed.Applied(ops)
		muts = append(muts, m...)
	}
	for i, m := range []Mutation{
		w.put("a", "1"), w.put("b", "2"), w.ops(del("a", "")), w.put("a", "3"), w.put("a\x00", "4"), w.put("c", "5"), w.ops(del("c", "")),
	} {
		apply(m)
		compare("early", early)
		compare("freed", freed)
		late, err := NewCache(base, w.g.Hash())
		if err != nil {
			t.Fatal(err)
		}
		compare("late", late)
		if i == 4 {
			apply(w.compaction(w.state.Head().Revision))
			apply()
			compare("compacted", early)
		}
	}
}
