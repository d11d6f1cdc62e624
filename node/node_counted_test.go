package node

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestPagesCountAsOneRange: whoever reads in pages, from whatever key, of whatever length and revision, hears of each
// page what a read of all of its range says, whatever is written meanwhile.
func TestPagesCountAsOneRange(t *testing.T) {
	n := startCluster(t, 1, quorum.BFT).nodes[0]
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	key := func() []byte { return fmt.Appendf(nil, "k%02d", random.IntN(40)) }
	write := func() int64 {
		t.Helper()
		txn := putTxn(string(key()), "v")
		if random.IntN(3) == 0 {
			txn = scope.Txn{Success: []scope.Op{{Kind: scope.OpDelete, Key: key()}}}
		}
		r, err := n.Txn(ctx, txn, Once{})
		if err != nil {
			t.Fatal(err)
		}
		return r.Revision
	}
	var newest int64
	for range 60 {
		newest = write()
	}
	read := func(from, end []byte, r scope.Range) scope.RangeResult {
		t.Helper()
		res, _, err := n.Range(ctx, from, end, r, false)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		return res
	}
	remembered := 0
	for range 60 {
		from, end := key(), fmt.Appendf(nil, "k%02d", 30+random.IntN(10))
		r := scope.Range{Revision: newest - random.Int64N(20), Limit: 1 + random.Int64N(9)}
		if random.IntN(4) == 0 {
			r.Revision = 0
		}
		for more := true; more; {
			if random.IntN(4) == 0 {
				newest = write()
			}
			whole := read(from, end, scope.Range{Revision: r.Revision})
			got := read(from, end, r)
			want := min(len(whole.Kvs), int(r.Limit))
			if got.Count != whole.Count || len(got.Kvs) != want || got.More != (len(whole.Kvs) > want) {
				t.Fatalf("seed %d: %d keys from %q to %q as of %d, %d in all, more: %t; want %d of %d",
					seed, len(got.Kvs), from, end, r.Revision, got.Count, got.More, want, whole.Count)
			}
			for i := range got.Kvs {
				if !bytes.Equal(got.Kvs[i].Key, whole.Kvs[i].Key) || got.Kvs[i].ModRevision != whole.Kvs[i].ModRevision {
					t.Fatalf("seed %d: %+v, want %+v", seed, got.Kvs[i], whole.Kvs[i])
				}
			}
			if more = got.More; more {
				from = append(got.Kvs[want-1].Key, 0)
				if r.Revision == 0 {
					r.Revision = got.Revision
				}
				if count, ok := n.views.tails.find(r.Revision, from, end); ok && count == whole.Count-int64(want) {
					remembered++
				}
			}
		}
	}
	if remembered < 60 {
		t.Errorf("seed %d: what follows a page was remembered %d times", seed, remembered)
	}
}

func TestLongTailsAreNotKept(t *testing.T) {
	var all tails
	all.keep(1, make([]byte, tailBytes), []byte{1}, 1)
	if len(all.kept) != 0 {
		t.Error("the ends of a range are kept, however long")
	}
	for i := range int64(3 * tailsKept) {
		all.keep(i, nil, nil, i)
	}
	if _, ok := all.find(2*tailsKept-1, []byte{0}, nil); ok || len(all.kept) != tailsKept {
		t.Errorf("%d are kept", len(all.kept))
	}
	if n, ok := all.find(3*tailsKept-1, []byte{0}, nil); !ok || n != 3*tailsKept-1 {
		t.Errorf("the newest is %d, %t", n, ok)
	}
}
