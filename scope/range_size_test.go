package scope

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestRangesAreWeighedAsTheyAreRead: what a range weighs is what its answer has, whatever stands before it, and values
// that are read in vain cost looks.
func TestRangesAreWeighedAsTheyAreRead(t *testing.T) {
	w := newWorld(t)
	const value = 10 << 10
	for i := range 20 {
		w.step(w.put(fmt.Sprintf("a%02d", i), strings.Repeat("v", value)))
	}
	w.step(w.ops(del("a00", "a05"))) // deletions do not use up a limit
	w.step(w.put("a05", ""))         // nor is a short value one
	const all = 1 << 30
	for _, c := range []struct {
		r      Range
		values int // in the answer, one more where there is a limit
		looks  int // more than versions
	}{
		{Range{}, 14, 0},
		{Range{Limit: 3}, 3, 0}, // with the short one
		{Range{Limit: 3, Sort: ByMod, Order: Ascending}, 14, 0},
		{Range{CountOnly: true}, 0, 0},
		{Range{KeysOnly: true}, 0, 14 * value / lookBytes},
		{Range{KeysOnly: true, Sort: ByValue}, 14, 0},
		{Range{KeysOnly: true, Limit: 3}, 0, 3 * value / lookBytes},
	} {
		size, seen, err := w.state.RangeSize([]byte("a"), []byte("b"), &c.r, all, all)
		if err != nil || size/value != c.values || seen < 26+c.looks || seen > 30+c.looks {
			t.Errorf("%+v: %d bytes and %d looks, %v", c.r, size, seen, err)
		}
		res, err := w.state.Range([]byte("a"), []byte("b"), c.r)
		if err != nil {
			t.Fatal(err)
		}
		bytes := 0
		for i := range res.Kvs {
			bytes += len(res.Kvs[i].Value)
		}
		if bytes > size {
			t.Errorf("%+v: the answer has %d bytes, and weighs %d", c.r, bytes, size)
		}
		if c.values > 0 {
			if _, _, err := w.state.RangeSize([]byte("a"), []byte("b"), &c.r, c.values*value-1, all); !errors.Is(err, ErrTooMuch) {
				t.Errorf("%+v within less: %v", c.r, err)
			}
		}
		if _, _, err := w.state.RangeSize([]byte("a"), []byte("b"), &c.r, all, 10); !errors.Is(err, ErrTooMuch) {
			t.Errorf("%+v with few looks: %v", c.r, err)
		}
	}
}
