package main

import (
	"slices"
	"testing"
)

func TestPrefixesNarrowToTheKeysOfAScope(t *testing.T) {
	for _, c := range []struct {
		prefixes []string
		below    string
		want     []string
		some     bool
	}{
		{nil, "/a/", nil, true},
		{[]string{"/a/"}, "/a/", nil, true},
		{[]string{"/a/"}, "/a/b/", nil, true},
		{[]string{"/a/b/", "/c/"}, "/a/", []string{"/a/b/"}, true},
		{[]string{"/c/"}, "/a/", nil, false},
	} {
		var in [][]byte
		for _, p := range c.prefixes {
			in = append(in, []byte(p))
		}
		out, some := narrowed(in, []byte(c.below))
		var got []string
		for _, p := range out {
			got = append(got, string(p))
		}
		if !slices.Equal(got, c.want) || some != c.some {
			t.Errorf("%q below %q: %q, %v", c.prefixes, c.below, got, some)
		}
	}
}
