package scope

import (
	"bytes"
	"fmt"
	"testing"
)

// TestSegmentsPartARange: every key of a range is in one segment, under the delegation
// that it falls under; keys outside are in none; segments come in order and alternate.
func TestSegmentsPartARange(t *testing.T) {
	var words [][]byte // all of up to three letters
	for n, letters := 0, []byte{0, 'a', 0xff}; n < 3; n++ {
		for i := range 1 << (2 * (n + 1)) {
			var w []byte
			for j := range n + 1 {
				if l := i >> (2 * j) & 3; l < 3 {
					w = append(w, letters[l])
				}
			}
			if len(w) == n+1 {
				words = append(words, w)
			}
		}
	}
	for _, given := range [][]string{{}, {"a"}, {"\xff"}, {"\x00a", "aa", "a\xff"}, {"a", "\xff\xff"}, {"a\x00", "aa", "\xff"}} {
		var all delegations
		for _, p := range given {
			all = append(all, Delegation{Prefix: []byte(p)})
		}
		for _, key := range words {
			for _, end := range append(words, nil) {
				if len(end) > 0 && !ToEnd(end) && bytes.Compare(key, end) >= 0 {
					continue
				}
				parts := Segments(all, key, end)
				name := fmt.Sprintf("%q of [%q, %q)", given, key, end)
				for i := range parts[1:] {
					if !bytes.Equal(parts[i].End, parts[i+1].Key) || parts[i].Given == parts[i+1].Given {
						t.Fatalf("%s: %v", name, parts)
					}
				}
				for _, k := range words {
					d, under := all.find(k)
					held := 0
					for _, s := range parts {
						if !Within(k, s.Key, s.End) {
							continue
						}
						held++
						if under != (s.Given != nil) || under && string(s.Given.Prefix) != string(d.Prefix) {
							t.Fatalf("%s: %q is in %v", name, k, s)
						}
					}
					if want := Within(k, key, end); held > 1 || want != (held == 1) {
						t.Fatalf("%s: %q is in %d segments", name, k, held)
					}
				}
			}
		}
	}
}

// TestNoScopeHasPartOfNoRange: a range that has no keys touches no scope, wherever it ends.
func TestNoScopeHasPartOfNoRange(t *testing.T) {
	all := []Delegation{{Prefix: []byte("/b/")}}
	for _, c := range []struct {
		key, end string
		touches  bool
	}{
		{"/b/2", "/b/1", false}, {"/b/1", "/b/1", false}, {"/c", "/b/1", false}, {"/b/", "/b/", false},
		{"/b/1", "/b/2", true}, {"/a", "/b/1", true}, {"/b/1", "", true}, {"/b/1", "\x00", true}, {"/a", "/b/", false},
	} {
		if got := len(Touching(all, []byte(c.key), []byte(c.end))) > 0; got != c.touches {
			t.Errorf("[%q, %q) touches a scope: %v", c.key, c.end, got)
		}
	}
}
