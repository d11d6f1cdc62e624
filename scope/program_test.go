package scope

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
)

// Keys with zero bytes, with 0xff, and prefixes of one another: what an
// encoding that does not keep order stumbles over.
var someKeys = []string{"a", "a\x00", "a\x00\x00", "a\x00\x01", "a\x00\xff", "a\x01", "ab", "b", "\x00", "\x00\x01", "\xff", "\xff\xff"}

func drawKey(t *rapid.T) []byte { return []byte(rapid.SampledFrom(someKeys).Draw(t, "key")) }

func drawEnd(t *rapid.T) []byte {
	return []byte(rapid.SampledFrom(append([]string{"", "", "\x00"}, someKeys...)).Draw(t, "end"))
}

func drawRange(t *rapid.T, rev int64) Range {
	near := rapid.Int64Range(0, rev+1)
	r := Range{
		Limit:     rapid.Int64Range(0, 4).Draw(t, "limit"),
		Sort:      SortBy(rapid.IntRange(0, int(ByValue)).Draw(t, "sort")),
		Order:     Order(rapid.IntRange(0, int(Descending)).Draw(t, "order")),
		KeysOnly:  rapid.Bool().Draw(t, "keys only"),
		CountOnly: rapid.IntRange(0, 4).Draw(t, "count only") == 0,
	}
	switch rapid.IntRange(0, 5).Draw(t, "bound") {
	case 0:
		r.MinMod = near.Draw(t, "min mod")
	case 1:
		r.MaxMod = near.Draw(t, "max mod")
	case 2:
		r.MinCreate, r.MaxCreate = near.Draw(t, "min create"), near.Draw(t, "max create")
	}
	if rapid.Bool().Draw(t, "old") {
		r.Revision = near.Draw(t, "revision")
	}
	return r
}

func drawOp(t *rapid.T, rev int64, depth int) Op {
	most := 9
	if depth > 1 {
		most = 7
	}
	switch n := rapid.IntRange(0, most).Draw(t, "op"); {
	case n < 4:
		op := Op{Kind: OpPut, Key: drawKey(t), Prev: rapid.Bool().Draw(t, "prev")}
		switch rapid.IntRange(0, 9).Draw(t, "put") {
		case 0:
			op.IgnoreValue = true
		case 1:
			op.IgnoreLease, op.Value = true, []byte("kept lease")
		case 2, 3, 4:
			op.Lease, op.Value = drawLease(t), []byte(rapid.SampledFrom([]string{"", "leased"}).Draw(t, "value"))
		default:
			op.Value = []byte(rapid.SampledFrom([]string{"", "1", "2", "\x00", "long enough"}).Draw(t, "value"))
		}
		return op
	case n < 6:
		return Op{Kind: OpDelete, Key: drawKey(t), End: drawEnd(t), Prev: rapid.Bool().Draw(t, "prev")}
	case n < 8:
		op := Op{Kind: OpRange, Key: drawKey(t), End: drawEnd(t)}
		if r := drawRange(t, rev); r != (Range{}) {
			op.Range = &r
		}
		return op
	default:
		inner := drawTxn(t, rev, depth+1)
		return Op{Kind: OpTxn, Txn: &inner}
	}
}

func drawTxn(t *rapid.T, rev int64, depth int) (x Txn) {
	for range rapid.IntRange(0, 2).Draw(t, "compares") {
		c := Compare{
			Target:   Target(rapid.IntRange(1, 5).Draw(t, "target")),
			Relation: Relation(rapid.IntRange(1, 4).Draw(t, "relation")),
			Key:      drawKey(t),
		}
		if rapid.IntRange(0, 3).Draw(t, "ranged") == 0 {
			c.End = drawEnd(t)
		}
		if c.Target == OnValue {
			c.Value = []byte(rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "value"))
		} else {
			c.Number = rapid.Int64Range(0, 4).Draw(t, "number")
		}
		x.Compare = append(x.Compare, c)
	}
	for range rapid.IntRange(0, 4).Draw(t, "success") {
		x.Success = append(x.Success, drawOp(t, rev, depth))
	}
	for range rapid.IntRange(0, 2).Draw(t, "failure") {
		x.Failure = append(x.Failure, drawOp(t, rev, depth))
	}
	return x
}

// drawMutation is a well-formed mutation.
func drawMutation(t *rapid.T, w *world, rev int64) Mutation {
	switch rapid.IntRange(0, 9).Draw(t, "class") {
	case 0:
		return w.compaction(rapid.Int64Range(0, rev+1).Draw(t, "compaction"))
	case 1, 2:
		return w.mutation(Lease, drawLeaseRequest(t, w))
	}
	x := drawTxn(t, rev, 0)
	if x.Check(w.g.Policy.Limits) != nil {
		return w.ops(Op{Kind: OpPut, Key: drawKey(t), Value: []byte("simple")})
	}
	return w.txn(x)
}

// TestBlocksDoNotMatter splits the same mutations into blocks in different
// ways: keys, values and revisions are the same.
func TestBlocksDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source := newWorld(t)
		var muts []Mutation
		for i := range rapid.IntRange(1, 12).Draw(t, "mutations") {
			muts = append(muts, drawMutation(t, source, int64(i)))
		}
		whole, split := newWorld(t), newWorld(t)
		split.flat = nil // and how deep overlays are stacked does not matter
		all := whole.step(muts...)
		var parts []Outcome
		for rest := muts; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "block")
			parts = append(parts, split.step(rest[:n]...).Outcomes...)
			rest = rest[n:]
		}
		for i := range parts {
			a, b := all.Outcomes[i], parts[i]
			a.Responses, b.Responses = normal(a.Responses), normal(b.Responses)
			if !reflect.DeepEqual(a, b) {
				t.Fatalf("mutation %d\nin one block %+v\nin many %+v", i, a, b)
			}
		}
		a, err1 := whole.state.Range([]byte{0}, []byte{0}, Range{})
		b, err2 := split.state.Range([]byte{0}, []byte{0}, Range{})
		if err1 != nil || err2 != nil || !reflect.DeepEqual(a, b) {
			t.Fatalf("one block %+v (%v)\nmany %+v (%v)", a, err1, b, err2)
		}
	})
}

// TestExecutionIsAFunction executes one block twice, on a flat store and on a
// stack of overlays: the same bytes come out. A block decoded from its encoding
// does the same.
func TestExecutionIsAFunction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flat, deep := newWorld(t), newWorld(t)
		deep.flat = nil
		for range rapid.IntRange(1, 5).Draw(t, "blocks") {
			var muts []Mutation
			for range rapid.IntRange(0, 4).Draw(t, "mutations") {
				muts = append(muts, drawMutation(t, flat, flat.state.Head().Revision))
			}
			deep.nonce = flat.nonce
			a := flat.step(muts...)
			deep.now = flat.now
			b := deep.block(deep.sign(muts...))
			again, err := DecodeBlock(b.Encode(), deep.g.Policy.Limits, nil)
			if err != nil {
				t.Fatalf("decode: %v", err)
			}
			if got := deep.execute(again); !reflect.DeepEqual(got.Ops, a.Ops) || got.Head != a.Head {
				t.Fatalf("two executions differ")
			}
		}
		if !reflect.DeepEqual(flat.dump(), deep.dump()) {
			t.Fatalf("two stores differ")
		}
	})
}

// TestNothingAppliesTwice offers every mutation again and again.
func TestNothingAppliesTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		var past []Mutation
		outcomes := make(map[string]Outcome)
		for range rapid.IntRange(1, 6).Draw(t, "blocks") {
			var muts []Mutation
			for range rapid.IntRange(1, 3).Draw(t, "mutations") {
				muts = append(muts, drawMutation(t, w, w.state.Head().Revision))
			}
			first := w.step(append(muts, muts...)...)
			past = append(past, muts...)
			for i, out := range first.Outcomes {
				if i < len(muts) {
					outcomes[out.Mutation.String()] = out
				} else if out.Code != Duplicate {
					t.Fatalf("a mutation twice in one block: %s", out.Code)
				}
			}
			before := w.state.Head()
			for _, out := range w.step(past...).Outcomes {
				if out.Code != Duplicate {
					t.Fatalf("a mutation again: %s", out.Code)
				}
				want := outcomes[out.Mutation.String()]
				got, ok, err := w.state.Outcome(out.Mutation)
				if err != nil || !ok || got.Code != want.Code || got.Revision != want.Revision ||
					got.Succeeded != want.Succeeded || got.Reason != want.Reason {
					t.Fatalf("receipt %+v, %v, %v; want %+v", got, ok, err, want)
				}
			}
			after := w.state.Head()
			if after.Revision != before.Revision || after.LineageRoot != before.LineageRoot {
				t.Fatalf("duplicates changed the state")
			}
		}
	})
}

// TestVoidReceiptsAreForgotten: with time, receipts are forgotten, and their
// mutations still never apply again.
func TestVoidReceiptsAreForgotten(t *testing.T) {
	w := newWorld(t)
	var muts []Mutation
	for range 3 * dueLeast {
		muts = append(muts, w.put("k", "v"))
	}
	w.skip = true
	for part := range slices.Chunk(muts, dueLeast) { // a list each; a block forgets no more than one or two
		w.step(part...)
	}
	count := func() (n int) {
		prefix := w.state.space.at(atReceipt)
		_ = w.r.Scan(prefix, kv.PrefixEnd(prefix), false, func(_, _ []byte) bool { n++; return true })
		return n
	}
	if count() != len(muts) {
		t.Fatalf("%d receipts of %d mutations", count(), len(muts))
	}
	w.now = w.now.Add(3 * time.Minute)
	out := w.step(muts[0]).Outcomes[0]
	if out.Code != Expired {
		t.Fatalf("a void mutation: %s", out.Code)
	}
	for range 5 {
		w.step()
	}
	w.checkDigest()
	if n := count(); n != 0 {
		t.Fatalf("%d receipts are left", n)
	}
	if out := w.step(muts[0]).Outcomes[0]; out.Code != Expired {
		t.Fatalf("a void mutation without receipt: %s", out.Code)
	}
}

// TestCompactionRemovesWhatNobodyCanRead checks that in the end no more is in
// the store than readers from the compacted revision on can reach.
func TestCompactionRemovesWhatNobodyCanRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 20).Draw(t, "writes") {
			key := string(drawKey(t))
			if rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
				w.step(w.ops(del(key, "")))
			} else {
				w.step(w.put(key, "v"))
			}
		}
		w.one(w.compaction(w.state.Head().Revision))
		w.one(w.put("last", "one"))
		rev := w.state.Head().Revision
		w.one(w.compaction(rev))
		w.step()
		live, _ := w.state.Range([]byte{0}, []byte{0}, Range{CountOnly: true})
		for kind, want := range map[byte]int64{atVersion: live.Count, atChange: 1} { // order-free: each is checked alone
			n, prefix := int64(0), w.state.space.at(kind)
			_ = w.r.Scan(prefix, kv.PrefixEnd(prefix), false, func(k, _ []byte) bool { n++; return true })
			if n != want {
				t.Fatalf("%d records of kind %c, want %d", n, kind, want)
			}
		}
	})
}

// TestCompactionIsBounded checks that a block works off no more than its share.
func TestCompactionIsBounded(t *testing.T) {
	w := newWorld(t)
	w.skip = true
	var muts []Mutation
	for range 2 * dueLeast {
		muts = append(muts, w.put("k", "v"))
	}
	w.step(muts...)
	w.one(w.compaction(w.state.Head().Revision))
	left := func() (n int) {
		prefix := w.state.space.at(atVersion)
		_ = w.r.Scan(prefix, kv.PrefixEnd(prefix), false, func(_, _ []byte) bool { n++; return true })
		return n
	}
	for _, want := range []int{2 * dueLeast, dueLeast + 1, 1, 1} {
		if left() != want {
			t.Fatalf("%d versions are left, want %d", left(), want)
		}
		w.step()
	}
	w.checkDigest()
}

// TestCompactedRevisionStaysWatchable compacts to a revision in which a key was
// put and deleted at once, and looks at its events before and after the content
// below is gone: both changes are there, as in etcd, without the content
// before.
func TestCompactedRevisionStaysWatchable(t *testing.T) {
	w := newWorld(t)
	w.one(w.put("a", "1"))
	once := func(ops ...Op) Op { return Op{Kind: OpTxn, Txn: &Txn{Success: ops}} }
	w.one(w.ops(once(put("a", "2")), once(del("a", ""))))
	rev := w.state.Head().Revision
	w.one(w.compaction(rev))
	for range 2 {
		events, next, err := w.state.Events(rev, everything, []byte("a"), nil, 10)
		if err != nil || len(events) != 2 || next != rev+1 {
			t.Fatalf("%+v, %d, %v", events, next, err)
		}
		if events[0].Class != lineage.Update || events[1].Class != lineage.Delete || events[0].Prev != nil || events[1].Prev != nil {
			t.Fatalf("%+v", events)
		}
		w.step()
	}
}

// TestCompactionWithinARunOfChanges compacts to places within and at the ends of
// the runs in which a block's changes are stored, and checks that all watchable changes
// are there, that no run outlives its last change, and that none is removed before it.
func TestCompactionWithinARunOfChanges(t *testing.T) {
	const n = 3*changesInRun + 10
	w := newWorld(t)
	w.skip = true
	var muts []Mutation
	for i := range n {
		muts = append(muts, w.put(string(rune('a'+i%7)), "v"))
	}
	base := w.state.Head().Revision
	w.step(muts...)
	for _, c := range []struct{ to, runs int64 }{ // to: the change compacted to
		{1, 4}, {changesInRun - 1, 4}, {changesInRun, 4}, {changesInRun + 1, 3}, {2*changesInRun + 5, 2}, {n, 1},
	} {
		w.one(w.compaction(base + c.to))
		for range 2 {
			w.step()
			events, next, err := w.state.Events(base+c.to, everything, []byte{0}, []byte{0}, 2*n)
			if err != nil || int64(len(events)) != n-c.to+1 || next != base+n+1 {
				t.Fatalf("compacted to change %d: %d events, next %d, %v", c.to, len(events), next, err)
			}
		}
		runs, prefix := int64(0), w.state.space.at(atChange)
		_ = w.r.Scan(prefix, kv.PrefixEnd(prefix), false, func(_, _ []byte) bool { runs++; return true })
		if runs != c.runs {
			t.Fatalf("compacted to change %d: %d runs are left, want %d", c.to, runs, c.runs)
		}
	}
	w.checkDigest()
}

// normal makes answers comparable: no index in the lineage, and one form of what is empty.
func normal(rs []Response) []Response {
	out := slices.Clone(rs)
	for i := range out {
		out[i].Prev = normalKvs(out[i].Prev)
		out[i].Range.Kvs = normalKvs(out[i].Range.Kvs)
		out[i].Responses = normal(out[i].Responses)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func normalKvs(kvs []KeyValue) []KeyValue {
	out := slices.Clone(kvs)
	for i := range out {
		if out[i].Entry = 0; len(out[i].Value) == 0 {
			out[i].Value = nil
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

const everything = math.MaxInt
