package scope

import (
	"fmt"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/store/diskstore"
	"github.com/aweigh/aweigh/votes"
)

// BenchmarkExecute puts 256-byte values, 100 mutations to a block, over 10,000
// keys that are there already: on a store in memory, on Pebble, and on Pebble
// with three blocks not yet final on top. One operation is one mutation.
func BenchmarkExecute(b *testing.B) {
	b.Run("memory", func(b *testing.B) {
		w := newWorld(b)
		benchmarkExecute(b, w, 0, func(ops []kv.Op) { w.flat.Apply(ops...) })
	})
	for _, depth := range []int{0, 3} {
		b.Run(fmt.Sprintf("pebble/depth=%d", depth), func(b *testing.B) {
			p, err := diskstore.Open(b.TempDir(), diskstore.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close()
			w := newWorld(b)
			commit := func(ops []kv.Op) {
				if err := p.Commit(ops, false); err != nil {
					b.Fatal(err)
				}
			}
			commit(w.flat.Ops())
			w.flat, w.r = kv.NewOverlay(p), p
			benchmarkExecute(b, w, depth, commit)
		})
	}
}

func benchmarkExecute(b *testing.B, w *world, depth int, commit func([]kv.Op)) {
	const perBlock, keys = 100, 10_000
	value := fmt.Sprintf("%0256d", 7)
	key := func(i int) string { return fmt.Sprintf("/registry/pods/default/pod-%06d", i%keys) }
	var pending []*kv.Overlay // blocks that are not final yet
	base := w.r
	next := func(muts []Mutation) (time.Duration, error) {
		w.now = w.now.Add(time.Millisecond)
		block := w.block(w.sign(muts...))
		start := time.Now()
		res, err := w.state.Execute(block)
		took := time.Since(start)
		if err != nil {
			return 0, err
		}
		if depth == 0 {
			commit(res.Ops)
		} else {
			o := kv.NewOverlay(w.r)
			o.Apply(res.Ops...)
			w.r = o
			if pending = append(pending, o); len(pending) > depth {
				commit(pending[0].Ops())
				pending[1].Rebase(base)
				pending = pending[1:]
			}
		}
		w.open()
		w.state = w.state.Sharing(res.State(w.r)) // as a node, which keeps the tree of what keys hold
		return took, nil
	}
	for i := 0; i < keys; i += 1000 {
		var muts []Mutation
		for j := range 1000 {
			muts = append(muts, w.put(key(i+j), value))
		}
		if _, err := next(muts); err != nil {
			b.Fatal(err)
		}
	}
	var took time.Duration
	n := 0
	for b.Loop() {
		if n%perBlock == 0 {
			var muts []Mutation
			for i := range perBlock {
				muts = append(muts, w.put(key(n*7919+i*104729), value))
			}
			d, err := next(muts)
			if err != nil {
				b.Fatal(err)
			}
			took += d
		}
		n++
	}
	b.ReportMetric(float64(took)/float64(n), "exec-ns/op")
}

// BenchmarkCheckBundle decodes and checks 100 puts of 256 bytes, but for the
// signature. One operation is one mutation.
func BenchmarkCheckBundle(b *testing.B) {
	w := newWorld(b)
	var muts []Mutation
	for i := range 100 {
		muts = append(muts, w.put(fmt.Sprintf("/registry/pods/default/pod-%06d", i), fmt.Sprintf("%0256d", i)))
	}
	raw := w.sign(muts...)[0].Raw()
	unverified := func(votes.PublicKey, votes.Context, []byte, []byte) error { return nil }
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if n%len(muts) != 0 {
			continue
		}
		if _, err := CheckBundle(raw, DefaultLimits(), unverified); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRange100(b *testing.B) {
	w := newWorld(b)
	w.skip = true
	var muts []Mutation
	for i := range 100 {
		muts = append(muts, w.put(fmt.Sprintf("/registry/pods/default/pod-%06d", i), "value"))
	}
	w.step(muts...)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.state.Range([]byte("/registry/"), []byte("/registry0"), Range{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeHeader(b *testing.B) {
	raw := canon.Encode(Header{Format: Format, Height: 7, State: aweigh.Sum([]byte("state"))})
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		var h Header
		if err := canon.Decode(raw, &h); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkVerifyProof verifies what a scope two levels below the root's wrote, from the network's
// identity alone: the way through three scopes of four anchors.
func BenchmarkVerifyProof(b *testing.B) {
	r, wrote, _ := proveBelow(b)
	network, raw := r.g.Hash(), wrote.Encode()
	b.ReportAllocs()
	for b.Loop() {
		p, err := DecodeKeyProof(raw)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Verify(network); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/3, "µs/scope")
	b.ReportMetric(float64(len(raw)), "bytes")
}
