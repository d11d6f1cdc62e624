package scope

import (
	"bytes"
	"errors"
	"testing"

	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
)

// TestOtherKeysThanTheHeadNames: a store of which a newest version was changed, removed or added, or a delegation, does
// not pass for the state that its head names.
func TestOtherKeysThanTheHeadNames(t *testing.T) {
	r := newRealm(t, nil)
	r.one(r.ops(put("/a/x", "1"), put("/b", "2"), put("/c", "3")))
	r.one(r.ops(put("/b", "4"), del("/c", "")))
	r.delegate(r.decision("/a/", quorum.BFT, "a", "b", "c", "d"))
	if _, err := r.state.Current(); err != nil {
		t.Fatal(err)
	}
	space := r.state.space
	var newest, given []byte
	prefix := append(space.at(atVersion), "/b"...)
	if err := r.r.Scan(prefix, kv.PrefixEnd(prefix), false, func(k, _ []byte) bool { newest = bytes.Clone(k); return false }); err != nil {
		t.Fatal(err)
	}
	if err := r.r.Scan(space.at(atDelegated), space.at(atDelegated+1), false, func(k, _ []byte) bool { given = bytes.Clone(k); return false }); err != nil {
		t.Fatal(err)
	}
	record, _, err := r.r.Get(newest)
	if err != nil || len(given) == 0 {
		t.Fatal(err, given)
	}
	bent := bytes.Clone(record)
	bent[len(bent)-1]++
	added := space.version([]byte("/bb"), revision{r.state.head.Revision, 9})
	for name, op := range map[string]kv.Op{ // order-free: each is checked alone
		"a changed value":      kv.Set(newest, bent),
		"an older version":     kv.Del(newest),
		"another key":          kv.Set(added, record),
		"a delegation is gone": kv.Del(given),
	} {
		o := kv.NewOverlay(r.r)
		o.Apply(op)
		s, err := Open(o, r.g.Hash())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Current(); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.Grown(); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLeanStatesKeepLargeTrees: a tree of few keys is made again from the records, and one of many stays in memory.
func TestLeanStatesKeepLargeTrees(t *testing.T) {
	w := newWorld(t)
	w.one(w.ops(put("a", "1"), put("b", "2")))
	few := *w.state.bounds
	few.LeanKeys = 1
	for _, c := range []struct {
		state *State
		kept  bool
	}{{w.state, false}, {w.state.Within(&few), true}} {
		grown, err := c.state.Grown()
		if err != nil {
			t.Fatal(err)
		}
		if lean := grown.Lean(); grown.IsGrown() != c.kept || lean.IsGrown() != c.kept {
			t.Errorf("in memory: %v, after a rest: %v, want %v", grown.IsGrown(), lean.IsGrown(), c.kept)
		}
	}
}
