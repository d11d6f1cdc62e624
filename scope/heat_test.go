package scope

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// changes are as a test writes them: how many of which key.
type changes map[string]int

// heated has counted changes, in the order of the keys.
func heated(b *Bounds, all ...changes) *heat {
	h := new(heat)
	for _, some := range all {
		for more := true; more; {
			more = false
			for _, key := range slices.Sorted(maps.Keys(some)) {
				if some[key] > 0 {
					some[key]--
					h.change(b, 0, []byte(key))
					more = true
				}
			}
		}
	}
	return h
}

// many are changes of keys of their own below a path.
func many(path string, n int) changes {
	all := make(changes, n)
	for i := range n {
		all[fmt.Sprintf("%s%04d", path, i)] = 1
	}
	return all
}

// TestTheBusyPathIsFound: what becomes a scope is the longest path to which most changes of a busy one go.
func TestTheBusyPathIsFound(t *testing.T) {
	topology := &Topology{Split: ConductAct, Rate: 10, Epochs: 1, Rest: 1, Most: 9}
	for name, c := range map[string]struct {
		all    []changes
		want   string
		reason string
	}{
		"nothing":         {nil, "", "no prefix has 10 changes a second"},
		"too little":      {[]changes{many("/a/", 99)}, "", "no prefix has 10"},
		"one path":        {[]changes{many("/a/", 100)}, "", `nearly all changes are below "/a/"`},
		"one of two":      {[]changes{many("/a/", 100), many("/b/", 20)}, "/a/", ""},
		"nearly all":      {[]changes{many("/a/", 640), many("/b/", 9)}, "", "divide nothing"},
		"enough left":     {[]changes{many("/a/", 640), many("/b/", 12)}, "/a/", ""},
		"below a path":    {[]changes{many("/t/a/", 400), many("/t/b/", 20)}, "/t/a/", ""},
		"the larger":      {[]changes{many("/t/a/", 120), many("/t/b/", 200)}, "/t/b/", ""},
		"spread out":      {[]changes{many("/t/a/", 90), many("/t/b/", 90), many("/t/c/", 90), many("/u/", 9)}, "/t/", ""},
		"one key":         {[]changes{{"/a/k": 500}}, "", `one key, "/a/k"`},
		"one key of some": {[]changes{{"/a/k": 100}, many("/a/", 300), many("/b/", 50)}, "/a/", ""},
		"no path":         {[]changes{many("a", 300)}, "", "no prefix has 10"},
		"the root alone":  {[]changes{many("/", 300)}, "", "no prefix has 10"},
		"deep":            {[]changes{many("/1/2/3/4/5/6/", 300), many("/7/", 30)}, "/1/2/3/4/", ""},
		"long":            {[]changes{many("/"+strings.Repeat("x", heatPrefix)+"/", 300)}, "", "no prefix has 10"},
	} {
		h := heated(&defaults, c.all...)
		hot, reason := h.busyPaths(topology, 10*time.Second)
		got := ""
		if len(hot) > 0 {
			got, reason = string(hot[0].Prefix), ""
		}
		if got != c.want || (reason == "") != (c.reason == "") || !strings.Contains(reason, c.reason) {
			t.Errorf("%s: %q, %q, want %q, %q", name, got, reason, c.want, c.reason)
		}
	}
}

// TestCountsAreBounded holds Space-Saving to what it promises: no count is below the true one, none exceeds it by more
// than its excess, what exceeds one part in so many of all is there, and there are never more counters.
func TestCountsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &Bounds{Heat: rapid.IntRange(2, 12).Draw(t, "counters"), HeatLevels: rapid.IntRange(1, 3).Draw(t, "levels"), HeatPrefix: 64}
		own := rapid.SampledFrom([]string{"", "/a/"}).Draw(t, "own")
		h, truth, all := new(heat), make(map[string]uint64), uint64(0)
		tell := func(prefix string, key bool) {
			truth[fmt.Sprint(prefix, key)]++
			all++
		}
		for _, key := range rapid.SliceOfN(rapid.StringMatching(`(/[ab]){1,4}/?`), 1, 80).Draw(t, "keys") {
			key = own + key
			h.change(b, len(own), []byte(key))
			for i, levels := len(own), 0; i < len(key)-1 && levels < b.HeatLevels; i++ {
				if key[i] == '/' && i > 0 {
					tell(key[:i+1], false)
					levels++
				}
			}
			tell(key, true)
		}
		if len(h.Counters) > b.Heat {
			t.Fatalf("%d counters", len(h.Counters))
		}
		for i := range h.Counters {
			c := &h.Counters[i]
			if is := truth[fmt.Sprint(string(c.Prefix), c.Key)]; c.Count < is || c.sure() > is {
				t.Fatalf("%q counts %d to %d, and there were %d", c.Prefix, c.sure(), c.Count, is)
			}
			delete(truth, fmt.Sprint(string(c.Prefix), c.Key))
		}
		for what, n := range truth { // order-free: each is checked alone
			if n > all/uint64(b.Heat) {
				t.Fatalf("%s is not there, with %d of %d", what, n, all)
			}
		}
		again, err := decodeHeat(h.encode())
		if err != nil || fmt.Sprint(again) != fmt.Sprint(h) {
			t.Fatalf("%v became %v: %v", h, again, err)
		}
	})
}

// TestCountsThatAreNoneAreRefused: what a snapshot or a store claims.
func TestCountsThatAreNoneAreRefused(t *testing.T) {
	good := heated(&defaults, many("/a/", 3), many("/b/", 2))
	good.Streaks = []streak{{Prefix: []byte("/a/"), Epochs: 1}, {Prefix: []byte("/b/"), Epochs: 2}}
	for what, bend := range map[string]func(*heat){
		"order":  func(h *heat) { h.Counters[0], h.Counters[1] = h.Counters[1], h.Counters[0] },
		"twice":  func(h *heat) { h.Counters[1] = h.Counters[0] },
		"streak": func(h *heat) { h.Streaks[0], h.Streaks[1] = h.Streaks[1], h.Streaks[0] },
		"excess": func(h *heat) { h.Counters[0].Excess = h.Counters[0].Count + 1 },
	} {
		h := good.clone()
		bend(h)
		if _, err := decodeHeat(h.encode()); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
	if _, err := decodeHeat(good.encode()); err != nil {
		t.Error(err)
	}
	if _, err := decodeHeat([]byte{0xff}); err == nil {
		t.Error("no encoding is taken")
	}
}

// BenchmarkHeat counts a change of one of many keys, three levels deep.
func BenchmarkHeat(b *testing.B) {
	h, keys := new(heat), make([][]byte, 1000)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "/registry/kind-%d/namespace-%d/name-%d", i%7, i%40, i)
	}
	for i := 0; b.Loop(); i++ {
		h.change(&defaults, 0, keys[i*7919%len(keys)])
	}
	b.ReportMetric(float64(len(h.encode())), "bytes")
}
