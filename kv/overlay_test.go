package kv

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// empty is a Reader of nothing.
type empty struct{}

func (empty) Get([]byte) ([]byte, bool, error)                               { return nil, false, nil }
func (empty) Scan(_, _ []byte, _ bool, _ func(key, value []byte) bool) error { return nil }

// TestOverlaysReadAsOneStore: a stack of overlays reads as if all their ops had
// been applied, in order, to one plain map.
func TestOverlaysReadAsOneStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.ByteRange('a', 'c'), 1, 3)
		oracle := make(map[string]string)
		var top Reader = empty{}
		for range rapid.IntRange(0, 4).Draw(t, "depth") {
			o := NewOverlay(top)
			if rapid.Bool().Draw(t, "reset") {
				o.Apply(Set([]byte("a"), nil), Del([]byte("b")))
				o.Reset()
			}
			for range rapid.IntRange(0, 8).Draw(t, "ops") {
				k := key.Draw(t, "key")
				if rapid.Bool().Draw(t, "delete") {
					o.Apply(Del(k))
					delete(oracle, string(k))
				} else {
					v := rapid.SliceOfN(rapid.Byte(), 0, 2).Draw(t, "value")
					o.Apply(Set(k, v))
					oracle[string(k)] = string(v)
				}
			}
			top = o
		}
		k := key.Draw(t, "read")
		v, ok, err := top.Get(k)
		if want, there := oracle[string(k)]; err != nil || ok != there || string(v) != want && ok {
			t.Fatalf("get %q: %q %v %v, want %q %v", k, v, ok, err, want, there)
		}
		from, to := key.Draw(t, "from"), key.Draw(t, "to")
		if rapid.Bool().Draw(t, "to the end") {
			to = nil
		}
		reverse := rapid.Bool().Draw(t, "reverse")
		most := rapid.IntRange(1, 30).Draw(t, "most")
		var want, got []string
		for k := range oracle {
			if k >= string(from) && (to == nil || k < string(to)) {
				want = append(want, k)
			}
		}
		slices.Sort(want)
		if reverse {
			slices.Reverse(want)
		}
		want = want[:min(most, len(want))]
		err = top.Scan(from, to, reverse, func(k, v []byte) bool {
			if !bytes.Equal(v, []byte(oracle[string(k)])) {
				t.Fatalf("scan: %q is %q, want %q", k, v, oracle[string(k)])
			}
			got = append(got, string(k))
			return len(got) < most
		})
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("scan [%q, %q) reverse %v: %q, want %q (%v)", from, to, reverse, got, want, err)
		}
	})
}

func TestPrefixEnd(t *testing.T) {
	for prefix, want := range map[string]string{"a": "b", "a\xff": "b", "": "", "\xff\xff": "", "ab": "ac"} {
		if got := PrefixEnd([]byte(prefix)); string(got) != want || (want == "") != (got == nil) {
			t.Errorf("after %q: %q, want %q", prefix, got, want)
		}
	}
}
