package scope

import (
	"fmt"
	"testing"
	"time"

	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/store/diskstore"
)

// BenchmarkLists reads 50,000 keys with values of 1 KiB on Pebble: their count; a page of 500, with the count of all;
// all of them in such pages, as of one revision; what changed last; and their names.
func BenchmarkLists(b *testing.B) {
	const keys, page = 50_000, 500
	p, err := diskstore.Open(b.TempDir(), diskstore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	w := newWorld(b)
	w.skip = true
	ops := w.flat.Ops()
	value := fmt.Sprintf("%01024d", 7)
	for i := 0; i < keys; i += 1000 {
		if err := p.Commit(ops, false); err != nil {
			b.Fatal(err)
		}
		w.flat, w.r = kv.NewOverlay(p), p
		w.open()
		var muts []Mutation
		for j := i; j < i+1000; j++ {
			muts = append(muts, w.put(fmt.Sprintf("/registry/pods/default/pod-%06d", j), value))
		}
		w.now = w.now.Add(time.Second)
		res, err := w.state.Execute(w.block(w.sign(muts...)))
		if err != nil {
			b.Fatal(err)
		}
		ops = res.Ops
	}
	if err := p.Commit(ops, true); err != nil {
		b.Fatal(err)
	}
	snapshot := p.Snapshot()
	defer snapshot.Close()
	s, err := Open(snapshot, w.g.Hash())
	if err != nil {
		b.Fatal(err)
	}
	all, newest := []byte("/registry0"), s.Head().Revision
	read := func(b *testing.B, from []byte, r Range, want int64) RangeResult {
		res, err := s.Range(from, all, r)
		if err != nil || res.Count != want {
			b.Fatalf("a count of %d, want %d: %v", res.Count, want, err)
		}
		return res
	}
	for name, r := range map[string]Range{
		"count": {CountOnly: true}, "page": {Limit: page}, "names": {KeysOnly: true},
		"changed": {MinMod: newest - 10, Limit: page},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				read(b, []byte("/registry/"), r, keys)
			}
		})
	}
	b.Run("pages", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			from := []byte("/registry/")
			for left := int64(keys); left > 0; left -= page {
				res := read(b, from, Range{Revision: newest, Limit: page}, left)
				from = append(res.Kvs[page-1].Key, 0)
			}
		}
	})
}
