package lineage_test

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
)

func headOf(n int) lineage.Head { return lineage.Head{Size: int64(n), Root: slowRootOf(n)} }

func TestEveryEntryCanBeProvenAtEverySize(t *testing.T) {
	const n = 40
	log, _ := grown(t, n)
	for size := 1; size <= n; size++ {
		head := headOf(size)
		for i := range size {
			p, err := log.Prove(int64(i), int64(size))
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Verify(anEntry(i).Hash(), head); err != nil {
				t.Errorf("entry %d of %d: %v", i, size, err)
			}
			if got := p.Before(); got != headOf(i) {
				t.Errorf("before entry %d of %d is %v, want %v", i, size, got, headOf(i))
			}
			if again, err := lineage.DecodeInclusion(p.Encode()); err != nil || again.Verify(anEntry(i).Hash(), head) != nil {
				t.Errorf("entry %d of %d after encoding: %v", i, size, err)
			}
		}
	}
}

// TestTamperedInclusionFails flips each bit of the entry, the path, and the
// numbers in turn.
func TestTamperedInclusionFails(t *testing.T) {
	log, _ := grown(t, 100)
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 100).Draw(t, "size")
		i := rapid.IntRange(0, size-1).Draw(t, "index")
		p, err := log.Prove(int64(i), int64(size))
		if err != nil {
			t.Fatal(err)
		}
		leaf, head := anEntry(i).Hash(), headOf(size)
		fails := func(what string, p lineage.Inclusion, leaf aweigh.Hash, head lineage.Head) {
			if err := p.Verify(leaf, head); !errors.Is(err, lineage.ErrProof) {
				t.Fatalf("%s: entry %d of %d: %v", what, i, size, err)
			}
		}
		raw := anEntry(i).Encode()
		bit := rapid.IntRange(0, len(raw)*8-1).Draw(t, "entry bit")
		raw[bit/8] ^= 1 << (bit % 8)
		fails("entry", p, aweigh.Sum([]byte{0}, raw), head)
		flip := func(h aweigh.Hash, bit int) aweigh.Hash { h[bit/8] ^= 1 << (bit % 8); return h }
		for bit := range 256 {
			fails("leaf", p, flip(leaf, bit), head)
			fails("root", p, leaf, lineage.Head{Size: head.Size, Root: flip(head.Root, bit)})
			for at := range p.Path {
				q := p
				q.Path = append([]aweigh.Hash(nil), p.Path...)
				q.Path[at] = flip(q.Path[at], bit)
				fails("path", q, leaf, head)
			}
		}
		for bit := range 64 {
			q := p
			q.Index ^= 1 << bit
			fails("index", q, leaf, head)
			q = p
			q.Size ^= 1 << bit
			fails("size", q, leaf, head)
			fails("head's size", p, leaf, lineage.Head{Size: head.Size ^ 1<<bit, Root: head.Root})
			fails("both sizes", q, leaf, lineage.Head{Size: q.Size, Root: aweigh.Hash{}})
		}
		longer := p
		longer.Path = append(append([]aweigh.Hash(nil), p.Path...), leaf)
		fails("longer path", longer, leaf, head)
		if len(p.Path) > 0 {
			shorter := p
			shorter.Path = p.Path[1:]
			fails("shorter path", shorter, leaf, head)
		}
	})
}

// TestRootAloneDoesNotFixTheSize is why Verify wants a Head: with the root of
// three entries, a proof can be bent to place the third entry second of two.
func TestRootAloneDoesNotFixTheSize(t *testing.T) {
	log, _ := grown(t, 3)
	p, err := log.Prove(2, 3)
	if err != nil {
		t.Fatal(err)
	}
	leaf, root := anEntry(2).Hash(), slowRootOf(3)
	p.Index, p.Size = 1, 2
	if err := p.Verify(leaf, lineage.Head{Size: 2, Root: root}); err != nil {
		t.Fatalf("the example no longer shows the danger: %v", err)
	}
	if err := p.Verify(leaf, lineage.Head{Size: 3, Root: root}); !errors.Is(err, lineage.ErrProof) {
		t.Errorf("the head's size did not help: %v", err)
	}
}

func TestLogsAreConsistentWithTheirPast(t *testing.T) {
	const n = 33
	log, _ := grown(t, n)
	for size := 0; size <= n; size++ {
		for old := 0; old <= size; old++ {
			c, err := log.ProveConsistency(int64(old), int64(size))
			if err != nil {
				t.Fatal(err)
			}
			if c, err = lineage.DecodeConsistency(c.Encode()); err != nil {
				t.Fatal(err)
			}
			older, newer := headOf(old), headOf(size)
			if err := c.Verify(older, newer); err != nil {
				t.Errorf("%d within %d: %v", old, size, err)
			}
			wrong := older
			wrong.Root[0] ^= 1
			if err := c.Verify(wrong, newer); !errors.Is(err, lineage.ErrProof) {
				t.Errorf("%d within %d, another past: %v", old, size, err)
			}
			wrong = newer
			wrong.Root[0] ^= 1
			if err := c.Verify(older, wrong); old > 0 && !errors.Is(err, lineage.ErrProof) {
				t.Errorf("%d within %d, another present: %v", old, size, err)
			}
			longer := c
			longer.Path = append(append([]aweigh.Hash(nil), c.Path...), older.Root)
			if err := longer.Verify(older, newer); !errors.Is(err, lineage.ErrProof) {
				t.Errorf("%d within %d, longer path: %v", old, size, err)
			}
			for at := range c.Path {
				bent := c
				bent.Path = append([]aweigh.Hash(nil), c.Path...)
				bent.Path[at][31] ^= 1
				if err := bent.Verify(older, newer); !errors.Is(err, lineage.ErrProof) {
					t.Errorf("%d within %d, bent path: %v", old, size, err)
				}
			}
			c.Old++
			if err := c.Verify(older, newer); !errors.Is(err, lineage.ErrProof) {
				t.Errorf("%d within %d, another old size: %v", old, size, err)
			}
		}
	}
}

func TestRewrittenHistoryIsNotConsistent(t *testing.T) {
	honest, _ := grown(t, 10)
	forged := lineage.Open(newStore(), prefix, 0)
	if _, err := forged.Append(append(entries(1, 9), entries(20, 31)...)...); err != nil {
		t.Fatal(err)
	}
	older, _ := honest.Head()
	newer, _ := forged.Head()
	log, _ := grown(t, 19)
	c, err := log.ProveConsistency(10, 19)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Verify(older, newer); !errors.Is(err, lineage.ErrProof) {
		t.Errorf("another history was taken for the same: %v", err)
	}
}

func TestProofsBeyondTheLogAreRefused(t *testing.T) {
	log, _ := grown(t, 3)
	for _, c := range [][2]int64{{-1, 3}, {3, 3}, {0, 4}, {0, 0}, {1, -1}} {
		if _, err := log.Prove(c[0], c[1]); !errors.Is(err, lineage.ErrRange) {
			t.Errorf("prove %d of %d: %v", c[0], c[1], err)
		}
	}
	for _, c := range [][2]int64{{-1, 3}, {3, 2}, {0, 4}} {
		if _, err := log.ProveConsistency(c[0], c[1]); !errors.Is(err, lineage.ErrRange) {
			t.Errorf("consistency of %d with %d: %v", c[0], c[1], err)
		}
	}
}

// TestHugeSizesEndQuickly holds proofs from others against sizes at which the
// arithmetic of package tlog would overflow and never end.
func TestHugeSizesEndQuickly(t *testing.T) {
	const huge = 1<<63 - 1
	head := lineage.Head{Size: huge}
	if err := (lineage.Inclusion{Index: 1, Size: huge}).Verify(aweigh.Hash{}, head); !errors.Is(err, lineage.ErrProof) {
		t.Error(err)
	}
	if err := (lineage.Consistency{Old: 1, Size: huge}).Verify(lineage.Head{Size: 1}, head); !errors.Is(err, lineage.ErrProof) {
		t.Error(err)
	}
	if _, err := lineage.Open(empty{}, prefix, huge).Root(); !errors.Is(err, lineage.ErrRange) {
		t.Error(err)
	}
}

func TestEntryDecodesToItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := anEntry(rapid.IntRange(0, 1<<20).Draw(t, "i"))
		e.Class = lineage.Class(rapid.Uint8Range(1, uint8(lineage.Failed)).Draw(t, "class"))
		e.Reason = rapid.String().Draw(t, "reason")
		e.Justification = rapid.String().Draw(t, "justification")
		raw := e.Encode()
		again, err := lineage.DecodeEntry(raw)
		if err != nil || !bytes.Equal(again.Encode(), raw) || again.Hash() != aweigh.Sum([]byte{0}, raw) {
			t.Fatalf("%+v became %+v, %v", e, again, err)
		}
	})
}

func TestClassesHaveDistinctNames(t *testing.T) {
	seen := map[string]bool{}
	for c := lineage.Insert; c.Valid(); c++ {
		if s := c.String(); s == "" || seen[s] {
			t.Errorf("class %d is called %q", c, s)
		}
		seen[c.String()] = true
	}
	if len(seen) != 17 || lineage.Class(0).String() != "class(0)" {
		t.Errorf("%d classes; 0 is %s", len(seen), lineage.Class(0))
	}
}

// once checks every decoder's duty: to refuse with its own error, or to accept
// only the encoding that it would write itself.
func once[T interface{ Encode() []byte }](t *testing.T, data []byte, decode func([]byte) (T, error), refuse error) {
	v, err := decode(data)
	switch {
	case err != nil && !errors.Is(err, refuse):
		t.Fatalf("%v is not %v", err, refuse)
	case err == nil && !bytes.Equal(v.Encode(), data):
		t.Fatal("two encodings of one value")
	}
}

func FuzzDecodeEntry(f *testing.F) {
	f.Add(anEntry(7).Encode())
	f.Add(lineage.Entry{Class: lineage.Failed, Reason: "no"}.Encode())
	f.Add(canon.Encode(lineage.Entry{}))
	f.Fuzz(func(t *testing.T, data []byte) { once(t, data, lineage.DecodeEntry, lineage.ErrEntry) })
}

func FuzzDecodeProof(f *testing.F) {
	log, _ := grown(f, 20)
	p, _ := log.Prove(7, 20)
	c, _ := log.ProveConsistency(7, 20)
	f.Add(p.Encode())
	f.Add(c.Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		once(t, data, lineage.DecodeInclusion, lineage.ErrProof)
		once(t, data, lineage.DecodeConsistency, lineage.ErrProof)
		// Whatever decodes can be held against any head without harm.
		if p, err := lineage.DecodeInclusion(data); err == nil {
			_ = p.Verify(aweigh.Hash{}, lineage.Head{Size: p.Size})
		}
		if c, err := lineage.DecodeConsistency(data); err == nil {
			_ = c.Verify(lineage.Head{Size: c.Old}, lineage.Head{Size: c.Size})
		}
	})
}
