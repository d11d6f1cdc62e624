package alias_test

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh/alias"
)

// slowMatch tries every prefix of key, longest first.
func slowMatch(bound map[string]int, key []byte) (v int, prefix []byte, ok bool) {
	for n := len(key); n >= 0; n-- {
		if v, ok := bound[string(key[:n])]; ok {
			return v, key[:n], true
		}
	}
	return 0, nil, false
}

// aKey draws short keys of few letters, so that many are prefixes of others.
func aKey() *rapid.Generator[[]byte] {
	return rapid.SliceOfN(rapid.SampledFrom([]byte{0, 'a', 'b', '/', 0xff}), 0, 6)
}

func TestTreeFindsTheLongestPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tree alias.Tree[int]
		bound := map[string]int{}
		t.Repeat(map[string]func(*rapid.T){
			"bind": func(t *rapid.T) {
				p, v := aKey().Draw(t, "prefix"), rapid.Int().Draw(t, "value")
				tree.Bind(p, v)
				bound[string(p)] = v
			},
			"unbind": func(t *rapid.T) {
				p := aKey().Draw(t, "prefix")
				_, was := bound[string(p)]
				delete(bound, string(p))
				if tree.Unbind(p) != was {
					t.Fatalf("unbinding %q, bound: %v", p, was)
				}
			},
			"match": func(t *rapid.T) {
				key := aKey().Draw(t, "key")
				v, p, ok := tree.Match(key)
				wantV, wantP, wantOK := slowMatch(bound, key)
				if v != wantV || ok != wantOK || !bytes.Equal(p, wantP) {
					t.Fatalf("%q matches %q: %d, %v; want %q: %d, %v", key, p, v, ok, wantP, wantV, wantOK)
				}
			},
			"": func(t *rapid.T) {
				var last []byte
				n := 0
				for p, v := range tree.All() {
					if w, ok := bound[string(p)]; !ok || v != w || n > 0 && bytes.Compare(last, p) >= 0 {
						t.Fatalf("%q: %d after %q", p, v, last)
					}
					last, n = p, n+1
				}
				if n != len(bound) || n != tree.Len() {
					t.Fatalf("%d prefixes, want %d", n, len(bound))
				}
			},
		})
	})
}

func TestTreeKeepsItsOwnCopyOfPrefixes(t *testing.T) {
	var tree alias.Tree[int]
	p := []byte("/a")
	tree.Bind(p, 1)
	p[1] = 'b'
	if _, _, ok := tree.Match([]byte("/a/x")); !ok {
		t.Error("the caller's slice is the tree's")
	}
}

// FuzzMatch reads prefixes and a key from lines.
func FuzzMatch(f *testing.F) {
	f.Add([]byte("/\n/a\n/a/b\n/b\n/a/c"))
	f.Add([]byte("\na\naa\nab"))
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := bytes.Split(data, []byte("\n"))
		var tree alias.Tree[int]
		bound := map[string]int{}
		key := lines[len(lines)-1]
		for i, p := range lines[:len(lines)-1] {
			tree.Bind(p, i)
			bound[string(p)] = i
		}
		v, p, ok := tree.Match(key)
		wantV, wantP, wantOK := slowMatch(bound, key)
		if v != wantV || ok != wantOK || !bytes.Equal(p, wantP) {
			t.Fatalf("%q matches %q: %d, %v; want %q: %d, %v", key, p, v, ok, wantP, wantV, wantOK)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	var tree alias.Tree[int]
	for i := range 1000 {
		tree.Bind([]byte{'/', byte(i), '/', byte(i >> 8)}, i)
	}
	key := []byte{'/', 7, '/', 1, '/', 'x'}
	for b.Loop() {
		tree.Match(key)
	}
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, err := alias.Parse("read org@wikipedia.en/articles/42.v3"); err != nil {
			b.Fatal(err)
		}
	}
}
