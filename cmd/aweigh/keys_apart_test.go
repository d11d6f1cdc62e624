package main

import (
	"fmt"
	"testing"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

// TestRangesAreCutWhereScopesBegin: the parts come in order, have all keys of the range, and one scope each.
func TestRangesAreCutWhereScopesBegin(t *testing.T) {
	of := func(prefixes ...string) (all []*aweighv1.Scope) {
		for _, p := range prefixes {
			all = append(all, &aweighv1.Scope{Prefix: []byte(p)})
		}
		return all
	}
	for _, c := range []struct {
		all      []*aweighv1.Scope
		key, end string
		want     string
	}{
		{of(""), "\x00", "\x00", `["\x00" "\x00"]`},
		{of("", "/b/"), "\x00", "\x00", `["\x00" "/b/"] ["/b/" "/b0"] ["/b0" "\x00"]`},
		{of("", "/b/", "/b/c/"), "/", "0", `["/" "/b/"] ["/b/" "/b/c/"] ["/b/c/" "/b/c0"] ["/b/c0" "/b0"] ["/b0" "0"]`},
		{of("/b/", "/b0", "/a/", ""), "/b/", "\x00", `["/b/" "/b0"] ["/b0" "/b1"] ["/b1" "\x00"]`},
		{of("", "/b/"), "/b/x", "/b/y", `["/b/x" "/b/y"]`},
		{of("", "/b/"), "/c", "/d", `["/c" "/d"]`},
		{of("", "\xff"), "\x00", "\x00", `["\x00" "\xff"] ["\xff" "\x00"]`},
	} {
		got := ""
		for i, part := range partsOf(c.all, []byte(c.key), []byte(c.end)) {
			if i > 0 {
				got += " "
			}
			got += fmt.Sprintf("[%q %q]", part[0], part[1])
		}
		if got != c.want {
			t.Errorf("%q to %q: %s, want %s", c.key, c.end, got, c.want)
		}
	}
}
