package scope

import (
	"bytes"
	"testing"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/kv"
)

// TestCompactionIsBoundedInBytes compacts many large values at once: each block removes no more of them than a bound,
// and in the end all are removed, with the changes that named them.
func TestCompactionIsBoundedInBytes(t *testing.T) {
	testshort.Skip(t)
	const puts, size = 40, 1 << 20
	w := newWorld(t)
	for i := range puts {
		w.one(w.put("k", string(bytes.Repeat([]byte{byte(i)}, size))))
	}
	w.one(w.put("z", ""))
	w.one(w.compaction(w.state.Head().Revision))
	blocks := 0
	for before := w.state.Head().Bytes; before > 2*size; before = w.state.Head().Bytes {
		w.step()
		blocks++
		if gone := before - w.state.Head().Bytes; gone > collectBytes+2*size || gone < size {
			t.Fatalf("block %d removes %d bytes, about %d are the bound", blocks, gone, collectBytes)
		}
		w.checkDigest()
	}
	if least := (puts - 1) * size / (collectBytes + 2*size); blocks < least {
		t.Errorf("%d bytes are gone after %d blocks", puts*size, blocks)
	}
	w.step()
	left, prefix := 0, w.state.space.at(atChange)
	if err := w.r.Scan(prefix, kv.PrefixEnd(prefix), false, func(_, _ []byte) bool { left++; return true }); err != nil {
		t.Fatal(err)
	}
	if left != 1 || w.state.cursor != first(w.state.head.Compacted+1) {
		t.Errorf("%d runs of changes are left, and the cursor is %v", left, w.state.cursor)
	}
}
