package scope

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aweigh/aweigh/kv"
)

// frugal is a Sifter that counts the values which it gives away.
type frugal struct {
	kv.Reader
	read *int
}

func (f frugal) Sift(from, to []byte, want func([]byte, int) bool, visit func(k, v []byte) bool) error {
	return kv.Sift(f.Reader, from, to, want, func(k, v []byte) bool {
		*f.read++
		return visit(k, v)
	})
}

// TestValuesAreReadWhereTheyAreAskedFor: counts, what lies beyond a limit, and what revisions leave out, cost no value.
// A store keeps long ones apart.
func TestValuesAreReadWhereTheyAreAskedFor(t *testing.T) {
	w := newWorld(t)
	value := strings.Repeat("v", 100)
	for i := range 20 {
		w.step(w.put(fmt.Sprintf("a%02d", i), value))
	}
	w.step(w.ops(del("a03", "a05")))
	newest := w.state.Head().Revision
	read := 0
	s, err := Open(frugal{w.flat, &read}, w.g.Hash())
	if err != nil {
		t.Fatal(err)
	}
	const live, gone = 18, 2 // what is short may be a deletion, and has to be looked at
	for _, c := range []struct {
		r        Range
		kvs, are int
	}{
		{Range{}, live, live + gone},
		{Range{CountOnly: true}, 0, gone},
		{Range{Limit: 3}, 3, 4 + gone},
		{Range{MinMod: newest - 1}, 1, 1 + gone},
		{Range{MaxMod: 4, Limit: 1}, 1, 3 + gone},
	} {
		read = 0
		res, err := s.Range([]byte("a"), []byte("b"), c.r)
		if err != nil || len(res.Kvs) != c.kvs || res.Count != live {
			t.Errorf("%+v: %d of %d keys, %v; want %d of %d", c.r, len(res.Kvs), res.Count, err, c.kvs, live)
		}
		if read > c.are {
			t.Errorf("%+v: %d values were read, want %d at most", c.r, read, c.are)
		}
	}
}
