package lineage_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
)

// empty is a store with nothing in it.
type empty struct{}

func (empty) Get([]byte) ([]byte, bool, error)                               { return nil, false, nil }
func (empty) Scan(_, _ []byte, _ bool, _ func(key, value []byte) bool) error { return nil }

// broken is a store that fails.
type broken struct{}

var errDisk = errors.New("disk")

func (broken) Get([]byte) ([]byte, bool, error)                               { return nil, false, errDisk }
func (broken) Scan(_, _ []byte, _ bool, _ func(key, value []byte) bool) error { return errDisk }

func newStore() *kv.Overlay { return kv.NewOverlay(empty{}) }

var prefix = []byte("log/")

// anEntry is the i-th of distinct entries.
func anEntry(i int) lineage.Entry {
	return lineage.Entry{
		Scope:         aweigh.Sum([]byte("scope")),
		Height:        aweigh.Height(i / 10),
		Index:         uint32(i % 10),
		Class:         lineage.Update,
		Mutation:      aweigh.Sum([]byte{byte(i)}),
		Key:           fmt.Appendf(nil, "/org/%d", i),
		Object:        aweigh.NewUID(aweigh.Hash{1}, uint32(i)),
		Revision:      int64(i) + 1,
		Justification: "because", Caller: "cert:alice", Principal: bytes.Repeat([]byte{9}, 32),
	}
}

func entries(from, to int) (out []lineage.Entry) {
	for i := from; i < to; i++ {
		out = append(out, anEntry(i))
	}
	return out
}

// grown is a log of n entries, all in the store.
func grown(t testing.TB, n int) (*lineage.Log, *kv.Overlay) {
	t.Helper()
	store := newStore()
	log := lineage.Open(store, prefix, 0)
	ops, err := log.Append(entries(0, n)...)
	if err != nil {
		t.Fatal(err)
	}
	store.Apply(ops...)
	return log, store
}

// slowRoot is RFC 6962, section 2.1, word for word.
func slowRoot(leaves []aweigh.Hash) aweigh.Hash {
	switch n := len(leaves); n {
	case 0:
		return aweigh.Sum()
	case 1:
		return leaves[0]
	default:
		k := 1
		for k*2 < n {
			k *= 2
		}
		left, right := slowRoot(leaves[:k]), slowRoot(leaves[k:])
		return aweigh.Sum([]byte{1}, left[:], right[:])
	}
}

func slowRootOf(n int) aweigh.Hash {
	leaves := make([]aweigh.Hash, n)
	for i, e := range entries(0, n) {
		leaves[i] = aweigh.Sum([]byte{0}, e.Encode())
	}
	return slowRoot(leaves)
}

func TestEmptyLogHasTheRootOfNothing(t *testing.T) {
	head, err := lineage.Open(empty{}, prefix, 0).Head()
	if err != nil || head.Size != 0 || head.Root.String() != "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" {
		t.Errorf("%v, %v", head, err)
	}
}

// TestRootIsThatOfRFC6962 grows logs by random steps, in which the ops of some
// steps reach the store late and the log is sometimes opened afresh or forked.
func TestRootIsThatOfRFC6962(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := newStore()
		log := lineage.Open(store, prefix, 0)
		var late []kv.Op
		for log.Size() < 300 && rapid.IntRange(0, 9).Draw(t, "more") > 0 {
			n := int(log.Size())
			ops, err := log.Append(entries(n, n+rapid.IntRange(0, 40).Draw(t, "step"))...)
			if err != nil {
				t.Fatal(err)
			}
			late = append(late, ops...)
			switch rapid.IntRange(0, 3).Draw(t, "then") {
			case 0:
				store.Apply(late...)
				late = nil
				log = lineage.Open(store, prefix, log.Size())
			case 1:
				log = log.Fork(store)
			}
			root, err := log.Root()
			if want := slowRootOf(int(log.Size())); err != nil || root != want {
				t.Fatalf("root of %d is %s, want %s (%v)", log.Size(), root, want, err)
			}
		}
		store.Apply(late...)
		for i := range log.Size() {
			e, ok, err := log.Entry(i)
			if err != nil || !ok || !reflect.DeepEqual(e, anEntry(int(i))) {
				t.Fatalf("entry %d is %+v, %v, %v", i, e, ok, err)
			}
		}
	})
}

// TestStoreHoldsWhatTlogWouldStore compares with package tlog's own appending.
func TestStoreHoldsWhatTlogWouldStore(t *testing.T) {
	const n = 200
	var want []tlog.Hash
	read := tlog.HashReaderFunc(func(indexes []int64) (out []tlog.Hash, err error) {
		for _, i := range indexes {
			out = append(out, want[i])
		}
		return out, nil
	})
	for i := range n {
		h, err := tlog.StoredHashes(int64(i), anEntry(i).Encode(), read)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, h...)
	}
	for _, step := range []int{1, 3, 64, 65, n} { // appended at a time
		store := newStore()
		log := lineage.Open(store, prefix, 0)
		for i := 0; i < n; i += step {
			ops, err := log.Append(entries(i, min(i+step, n))...)
			if err != nil {
				t.Fatal(err)
			}
			if step == n && len(ops) > 8 {
				t.Errorf("%d entries take %d pairs", n, len(ops))
			}
			store.Apply(ops...)
		}
		var got []byte
		from := []byte("log/h")
		if err := store.Scan(from, kv.PrefixEnd(from), false, func(_, run []byte) bool {
			got = append(got, run...)
			return true
		}); err != nil {
			t.Fatal(err)
		}
		for i, h := range want {
			if len(got) != len(want)*len(h) || string(got[i*len(h):(i+1)*len(h)]) != string(h[:]) {
				t.Fatalf("by %d: stored hash %d of %d bytes is not %x", step, i, len(got), h)
			}
		}
		again := lineage.Open(store, prefix, n)
		for i := range n {
			e, ok, err := again.Entry(int64(i))
			if err != nil || !ok || string(e.Encode()) != string(anEntry(i).Encode()) {
				t.Fatalf("by %d: entry %d: %v, %v", step, i, ok, err)
			}
		}
		if root, err := again.Root(); err != nil || root != slowRootOf(n) {
			t.Errorf("by %d: root %v, %v", step, root, err)
		}
	}
}

func TestForksGrowApart(t *testing.T) {
	log, store := grown(t, 5)
	fork := log.Fork(store)
	if _, err := log.Append(anEntry(5)); err != nil {
		t.Fatal(err)
	}
	if _, err := fork.Append(anEntry(6), anEntry(7), anEntry(8)); err != nil {
		t.Fatal(err)
	}
	if root, _ := log.Root(); root != slowRootOf(6) || log.Size() != 6 {
		t.Error("appending to a fork changed the log")
	}
}

func TestBadEntriesLeaveTheLogAlone(t *testing.T) {
	for name, spoil := range map[string]func(*lineage.Entry){
		"no class":           func(e *lineage.Entry) { e.Class = 0 },
		"unknown class":      func(e *lineage.Entry) { e.Class = lineage.Closed + 1 },
		"follows itself":     func(e *lineage.Entry) { e.Prev = 5 },
		"negative previous":  func(e *lineage.Entry) { e.Prev = -1 },
		"negative revision":  func(e *lineage.Entry) { e.Revision = -1 },
		"bad justification":  func(e *lineage.Entry) { e.Justification = "\xff" },
		"short principal":    func(e *lineage.Entry) { e.Principal = []byte{1} },
		"bad caller":         func(e *lineage.Entry) { e.Caller = "\xff" },
		"bad failure reason": func(e *lineage.Entry) { e.Reason = "\xff" },
	} {
		t.Run(name, func(t *testing.T) {
			log, _ := grown(t, 3)
			bad := anEntry(4)
			spoil(&bad)
			if _, err := log.Append(anEntry(3), bad); !errors.Is(err, lineage.ErrEntry) {
				t.Fatalf("error %v", err)
			}
			if root, _ := log.Root(); root != slowRootOf(3) || log.Size() != 3 {
				t.Error("the log changed")
			}
		})
	}
}

func TestBrokenStoreIsNoticed(t *testing.T) {
	if _, err := lineage.Open(broken{}, prefix, 3).Root(); !errors.Is(err, errDisk) {
		t.Errorf("a failing store: %v", err)
	}
	lost := lineage.Open(empty{}, prefix, 3)
	if _, err := lost.Append(anEntry(3)); !errors.Is(err, lineage.ErrCorrupt) || lost.Size() != 3 {
		t.Errorf("a store without hashes: %v", err)
	}
	if _, _, err := lost.Entry(1); !errors.Is(err, lineage.ErrCorrupt) {
		t.Errorf("a store without entries: %v", err)
	}
	if _, err := lost.Prove(1, 3); !errors.Is(err, lineage.ErrCorrupt) {
		t.Errorf("a proof from nothing: %v", err)
	}
	log, store := grown(t, 3)
	store.Apply(kv.Set(append([]byte("log/e"), 0, 0, 0, 0, 0, 0, 0, 2), []byte("garbage")))
	if _, _, err := log.Entry(1); !errors.Is(err, lineage.ErrCorrupt) {
		t.Errorf("a spoilt entry: %v", err)
	}
}

func TestEntryOutsideTheLogIsNotThere(t *testing.T) {
	log, _ := grown(t, 3)
	for _, i := range []int64{-1, 3, 1 << 60} {
		if _, ok, err := log.Entry(i); ok || err != nil {
			t.Errorf("entry %d: %v, %v", i, ok, err)
		}
	}
}

func TestChainWalksOneObjectBackwards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := newStore()
		log := lineage.Open(store, prefix, 0)
		last := map[byte]int64{}      // by object, as Entry.Prev counts
		history := map[byte][]int64{} // by object, oldest first
		for i, object := range rapid.SliceOfN(rapid.ByteRange(0, 4), 1, 60).Draw(t, "objects") {
			e := anEntry(i)
			e.Object, e.Prev = aweigh.UID{object}, last[object]
			ops, err := log.Append(e)
			if err != nil {
				t.Fatal(err)
			}
			store.Apply(ops...)
			history[object] = append(history[object], int64(i))
			last[object] = int64(i) + 1
		}
		for object, want := range history {
			err := log.Chain(last[object], func(index int64, e lineage.Entry) bool {
				if e.Object != (aweigh.UID{object}) || len(want) == 0 || want[len(want)-1] != index {
					t.Fatalf("object %d: entry %d of object %s, want the last of %v", object, index, e.Object, want)
				}
				want = want[:len(want)-1]
				return true
			})
			if err != nil || len(want) > 0 {
				t.Fatalf("object %d: %v, not visited %v", object, err, want)
			}
		}
	})
}

func TestChainStops(t *testing.T) {
	log, _ := grown(t, 3)
	calls := 0
	count := func(int64, lineage.Entry) bool { calls++; return false }
	if err := log.Chain(0, count); err != nil || calls != 0 {
		t.Errorf("no entries: %d calls, %v", calls, err)
	}
	if err := log.Chain(3, count); err != nil || calls != 1 {
		t.Errorf("asked to stop: %d calls, %v", calls, err)
	}
	for _, last := range []int64{-1, 4} {
		if err := log.Chain(last, count); !errors.Is(err, lineage.ErrRange) {
			t.Errorf("from %d: %v", last, err)
		}
	}
}

func BenchmarkAppend100(b *testing.B) {
	log, _ := grown(b, 1000)
	block := entries(1000, 1100)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := log.Append(block...); err != nil {
			b.Fatal(err)
		}
		if _, err := log.Root(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestRunsOfNonsenseAreNoticed: a store that shows a run where none can be is
// corrupt, and no reason to panic.
func TestRunsOfNonsenseAreNoticed(t *testing.T) {
	_, store := grown(t, 3)
	store.Apply(
		kv.Del(append([]byte("log/h"), 0, 0, 0, 0, 0, 0, 0, 3)),
		kv.Set(append([]byte("log/h"), 0x07, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), make([]byte, 64)),
	)
	if _, err := lineage.Open(store, prefix, 3).Root(); !errors.Is(err, lineage.ErrCorrupt) {
		t.Errorf("a run of hashes far away: %v", err)
	}
}
