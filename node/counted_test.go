package node

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// countsSeed repeats what a failed test drew. The times of a real node do not repeat.
var countsSeed = flag.Uint64("counts.seed", 0, "of what TestCountsAreThoseOfAllKeys draws; 0 draws one")

// TestCountsAreThoseOfAllKeys: counts, and pages from any key, of any length and as of any revision, say what a read of
// all of the range says, whatever was counted before and is written meanwhile.
func TestCountsAreThoseOfAllKeys(t *testing.T) {
	testshort.Skip(t)
	n := startCluster(t, 1, quorum.BFT).nodes[0]
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	seed := *countsSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-counts.seed=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	const keys = 900
	key := func(i int) []byte { return fmt.Appendf(nil, "k%03d", i) }
	write := func(ops ...scope.Op) int64 {
		t.Helper()
		r, err := n.Txn(ctx, scope.Txn{Success: ops}, Once{})
		if err != nil || r.Code != scope.Applied {
			t.Fatalf("%+v, %v", r, err)
		}
		return r.Revision
	}
	change := func() int64 {
		i := random.IntN(keys)
		if random.IntN(2) == 0 { // some come and go all the time
			i = 300 + random.IntN(3)
		}
		k := key(i)
		switch random.IntN(4) {
		case 0, 3:
			return write(scope.Op{Kind: scope.OpDelete, Key: k})
		case 1: // and another, in one revision
			gone := scope.Op{Kind: scope.OpDelete, Key: k, End: append(k, '0')}
			return write(gone, scope.Op{Kind: scope.OpPut, Key: key((i + 1) % keys), Value: k})
		}
		return write(scope.Op{Kind: scope.OpPut, Key: k, Value: k})
	}
	var newest int64
	for i := 0; i < keys; i += 100 {
		var ops []scope.Op
		for j := i; j < i+100; j++ {
			ops = append(ops, scope.Op{Kind: scope.OpPut, Key: key(j), Value: []byte("v")})
		}
		newest = write(ops...)
	}
	oldest := newest
	read := func(from, end []byte, r scope.Range) scope.RangeResult {
		t.Helper()
		res, _, err := n.Range(ctx, from, end, r, false)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		return res
	}
	put, del := scope.Op{Kind: scope.OpPut, Key: key(7)}, scope.Op{Kind: scope.OpDelete, Key: key(7)}
	for _, c := range []struct {
		ops  []scope.Op // that change one key, one after another
		gone int64
	}{{nil, 0}, {[]scope.Op{del, put, del}, 1}, {[]scope.Op{put, del, put}, 0}} {
		for _, op := range c.ops {
			newest = write(op)
		}
		if got := read(key(0), key(keys), scope.Range{CountOnly: true}).Count; got != keys-c.gone {
			t.Fatalf("%d keys, want %d", got, keys-c.gone)
		}
	}
	known := 0
	for range 40 {
		from, end := key(100*random.IntN(3)), key(keys-100*random.IntN(3))
		r := scope.Range{Revision: max(oldest, newest-random.Int64N(20)), Limit: 40 + random.Int64N(200)}
		if random.IntN(4) == 0 {
			r.Revision = 0
		}
		r.CountOnly = random.IntN(2) == 0
		for more := true; more; {
			for range random.IntN(10) {
				newest = change()
			}
			v, err := n.root.Read(ctx, false)
			if err != nil {
				t.Fatal(err)
			}
			at := r.Revision
			if at == 0 {
				at = v.Head().Revision
			}
			if _, ok, err := v.count(at, from, end); err != nil {
				t.Fatal(err)
			} else if ok {
				known++
			}
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
			whole := read(from, end, scope.Range{Revision: r.Revision})
			got := read(from, end, r)
			want := min(len(whole.Kvs), int(r.Limit))
			if r.CountOnly {
				want = 0
			}
			if got.Count != whole.Count || got.Count != int64(len(whole.Kvs)) || len(got.Kvs) != want ||
				got.Revision != whole.Revision || got.More != (!r.CountOnly && len(whole.Kvs) > want) {
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
			}
		}
	}
	if known < 20 {
		t.Errorf("seed %d: %d counts followed from earlier ones", seed, known)
	}
	read(key(0), key(keys), scope.Range{CountOnly: true, Revision: oldest})
	if _, err := n.Compact(ctx, newest, Once{}); err != nil {
		t.Fatal(err)
	}
	for _, revision := range []int64{oldest, newest + 1000} {
		for _, how := range []scope.Range{{CountOnly: true}, {Limit: 1}} {
			how.Revision = revision
			if res, _, err := n.Range(ctx, key(0), key(keys), how, false); err == nil {
				t.Errorf("seed %d: %d keys as of %d, which is compacted or to come", seed, res.Count, revision)
			}
		}
	}
}

func TestFewCountsAreKept(t *testing.T) {
	var all rangeCounts
	all.keep(1, make([]byte, countBytes), []byte{1}, countFrom)
	all.keep(1, nil, []byte{1}, countFrom-1)
	if len(all.kept) != 0 {
		t.Error("the ends of a range are kept however long, or the count of a few keys is")
	}
	for i := range int64(3 * countsKept) {
		all.keep(i, nil, nil, countFrom+i)
	}
	if k, ok := all.find(0, 2*countsKept-1, nil, nil); ok || len(all.kept) != countsKept {
		t.Errorf("%d are kept, %+v among them", len(all.kept), k)
	}
	k, ok := all.find(0, math.MaxInt64, nil, nil)
	if !ok || k.revision != 3*countsKept-1 || k.count != countFrom+k.revision {
		t.Errorf("the newest is %+v, %t", k, ok)
	}
}
