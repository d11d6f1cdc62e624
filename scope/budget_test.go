package scope

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/votes"
)

// dear are mutations whose cost depends on what the state holds, on a world with four
// values of 1 MiB.
func dear(w *world) map[string]Mutation {
	big := strings.Repeat("x", 1<<20)
	for i := range 4 {
		w.one(w.put(fmt.Sprintf("/big/%d", i), big))
	}
	many := func(n int, op Op) (ops []Op) {
		for range n {
			ops = append(ops, op)
		}
		return ops
	}
	compares := make([]Compare, 20)
	for i := range compares {
		compares[i] = Compare{Target: OnValue, Relation: NotEqual, Key: []byte("/big/0"), Value: []byte("y")}
	}
	return map[string]Mutation{
		"ranges":        w.ops(many(5, get("/big/", "/big0"))...),
		"single keys":   w.ops(many(20, get("/big/1", ""))...),
		"compares":      w.txn(Txn{Compare: compares}),
		"range compare": w.txn(Txn{Compare: []Compare{{Target: OnMod, Relation: Greater, Key: []byte("/big/"), End: []byte("/big0")}}, Success: many(4, get("/big/", "/big0"))}),
		"prev": w.txn(Txn{Success: []Op{
			{Kind: OpTxn, Txn: &Txn{Success: many(17, get("/big/1", ""))}}, {Kind: OpPut, Key: []byte("/big/1"), Prev: true}}}),
		"deletion":          w.ops(del("/big/", "/big0")),
		"deletion, no prev": w.ops(Op{Kind: OpDelete, Key: []byte("/big/"), End: []byte("/big0")}),
	}
}

// run executes bundles as a block, one second later.
func (w *world) run(bundles ...*CheckedBundle) *Result {
	w.t.Helper()
	w.now = w.now.Add(time.Second)
	return w.execute(w.block(bundles))
}

// TestWhatExceedsItsReserveIsNotDone: a mutation that costs more than declared changes
// nothing. A bundle that reserves what State.Price returns carries out the same
// mutation, and one that reserves a unit less does not.
func TestWhatExceedsItsReserveIsNotDone(t *testing.T) {
	testshort.Skip(t)
	for name := range dear(newWorld(t)) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.skip = true
			m := dear(w)[name]
			m.Author = w.author.Public().ID()
			price, _, err := w.state.Price(m, w.now)
			if err != nil || price <= 0 {
				t.Fatalf("a price of %d, %v", price, err)
			}
			for _, reserve := range []int64{0, price - 1} {
				before := w.state.Head()
				out := w.run(w.reserving(reserve, m)).Outcomes[0]
				if out.Code != Exceeded || !errors.Is(Failure(out.Reason), ErrTooMuch) || len(out.Responses) > 0 {
					t.Fatalf("with %d of %d: %s %q with %d responses", reserve, price, out.Code, out.Reason, len(out.Responses))
				}
				after := w.state.Head()
				if _, known, err := w.state.Outcome(out.Mutation); known || err != nil || after.Revision != before.Revision || after.LineageSize != before.LineageSize {
					t.Fatalf("it changed something: %v, %v, %+v", known, err, after)
				}
			}
			if out := w.run(w.reserving(price, m)).Outcomes[0]; out.Code != Applied {
				t.Fatalf("with its price of %d: %s %q", price, out.Code, out.Reason)
			}
		})
	}
}

// TestWhatExceededStaysUndone: the author of a bundle that exceeded gets the answer that it changed nothing, and
// gives up. So the bundle is never executed, even when it would fit; another bundle may carry the mutation.
// Snapshots keep that, until the mutation is void.
func TestWhatExceededStaysUndone(t *testing.T) {
	w := newWorld(t)
	w.one(w.put("/big", strings.Repeat("x", 100<<10)))
	drop := w.ops(Op{Kind: OpDelete, Key: []byte("/big"), Prev: true}, put("/dropped", "v"))
	other := w.put("/other", "v")
	small, large := w.reserving(3, drop, other), w.reserving(1000, drop)
	exceeds := func(when string, b *CheckedBundle) {
		t.Helper()
		before := w.state.Head().Revision
		for _, out := range w.run(b, b).Outcomes {
			of := out.Mutation == b.Mutations()[0].ID
			if of && (out.Code != Exceeded || !errors.Is(Failure(out.Reason), ErrTooMuch)) {
				t.Fatalf("%s: %s %q", when, out.Code, out.Reason)
			}
		}
		if v, ok, err := w.state.newest([]byte("/dropped")); ok || err != nil {
			t.Fatalf("%s: it was executed: %+v, %v", when, v, err)
		}
		if now := w.state.Head().Revision; when != "at first" && now != before {
			t.Fatalf("%s: revision %d after %d", when, now, before)
		}
	}
	exceeds("at first", small)
	w.one(w.put("/big", "small"))
	exceeds("when it would fit", small)
	if c, ok, err := w.state.OutcomeIn(small.ID(), small.Mutations()[0].ID); !ok || c.Code != Exceeded || err != nil {
		t.Fatalf("on record: %v %+v, %v", ok, c, err)
	}
	if c, ok, err := w.state.OutcomeIn(small.ID(), small.Mutations()[1].ID); !ok || c.Code != Applied || err != nil {
		t.Fatalf("on record of the other mutation: %v %+v, %v", ok, c, err)
	}
	if _, ok, err := w.state.OutcomeIn(large.ID(), large.Mutations()[0].ID); ok || err != nil {
		t.Fatalf("on record of another bundle: %v, %v", ok, err)
	}
	there, err := w.take(*w.head, 1<<20).restore()
	if err != nil {
		t.Fatal(err)
	}
	w.flat, w.r = there, there
	w.open()
	exceeds("after a snapshot", small)
	if out := w.run(large).Outcomes[0]; out.Code != Applied {
		t.Fatalf("another bundle: %s %q", out.Code, out.Reason)
	}
	if out := w.run(small).Outcomes[0]; out.Code != Duplicate {
		t.Fatalf("the first bundle then: %s %q", out.Code, out.Reason)
	}
	w.now = drop.ValidUntil.Add(2 * time.Minute)
	w.step()
	left := 0
	prefix := w.state.space.at(atReceipt)
	err = w.r.Scan(prefix, kv.PrefixEnd(prefix), false, func(_, _ []byte) bool { left++; return true })
	if err != nil || left > 0 {
		t.Fatalf("%d receipts of void mutations are left, %v", left, err)
	}
}

// TestNoMutationUsesUpWhatOthersNeed: all mutations of a full block are executed, in any
// order, and whatever the others of the block cost. With a shared budget, the first ones
// made the others fail, on record.
func TestNoMutationUsesUpWhatOthersNeed(t *testing.T) {
	testshort.SkipUnlessLong(t)
	w := newWorld(t)
	w.skip = true
	for i := range 100 {
		w.one(w.put(fmt.Sprintf("/k/%02d", i), "v"))
	}
	unlisted, err := votes.KeyFromSeed(votes.Ed25519, bytes.Repeat([]byte{9}, 32))
	if err != nil {
		t.Fatal(err)
	}
	lim := w.g.Policy.Limits
	var all []*CheckedBundle
	cost, honest := int64(0), 0
	for i := 0; ; i++ {
		var b *CheckedBundle
		if i%4 == 0 {
			cas := w.txn(Txn{
				Compare: []Compare{{Target: OnVersion, Relation: Equal, Key: fmt.Appendf(nil, "/own/%d", i)}}, Success: []Op{put(fmt.Sprintf("/own/%d", i), "1")},
			})
			b = w.reserving(0, cas)
		} else { // it claims little, looks at much, and pays for it alone
			var ranges []Op
			for range 128 {
				ranges = append(ranges, get("/k/", "/k0"))
			}
			if b, err = SignReserving(int64(i%3)*15_000, unlisted, lim, w.ops(ranges...)); err != nil {
				t.Fatal(err)
			}
		}
		if cost += b.Cost(); cost > lim.BlockCost || i == 400 {
			break
		}
		all = append(all, b)
	}
	res := w.run(all...)
	for i, out := range res.Outcomes {
		switch stands := i%4 == 0; {
		case stands && out.Code != Applied:
			t.Fatalf("mutation %d: %s %q", i, out.Code, out.Reason)
		case stands:
			honest++
		case out.Code != Applied && out.Code != Exceeded:
			t.Fatalf("mutation %d: %s %q", i, out.Code, out.Reason)
		}
	}
	t.Logf("%d of %d mutations are honest, and all of those were done", honest, len(all))
}

// TestBlocksDeclareWhatTheyCost: a block whose bundles declare more than the policy allows is
// invalid, and so is a bundle; and the reserves of bundles are part of a block's name, as
// execution depends on them.
func TestBlocksDeclareWhatTheyCost(t *testing.T) {
	w := newWorld(t)
	w.now = w.now.Add(time.Second)
	lim := w.g.Policy.Limits
	half := lim.BlockCost / 2
	a, b := w.reserving(half, w.put("a", "1")), w.reserving(half-2*(mutationUnit+opUnits), w.put("b", "1"))
	if err := w.block([]*CheckedBundle{a, b}).Check(lim); err != nil {
		t.Errorf("a block that costs as much as it may: %v", err)
	}
	more := w.reserving(half-2*(mutationUnit+opUnits)+1, w.put("b", "1"))
	if err := w.block([]*CheckedBundle{a, more}).Check(lim); !errors.Is(err, ErrInvalid) {
		t.Errorf("a block that costs one unit more: %v", err)
	}
	for _, reserve := range []int64{-1, lim.BlockCost, lim.BlockCost + 1} {
		if _, err := SignReserving(reserve, w.author, lim, w.put("a", "1")); !errors.Is(err, ErrInvalid) {
			t.Errorf("a bundle that reserves %d: %v", reserve, err)
		}
	}

	m := w.put("a", "1")
	names := make(map[string]bool)
	for _, bundles := range [][]*CheckedBundle{
		{w.reserving(0, m)}, {w.reserving(1, m)}, {w.reserving(2, m)}, {w.reserving(1, m, w.put("c", "1"))}, {w.reserving(1, m), w.reserving(0, w.put("d", "1"))},
	} {
		block := w.block(bundles)
		names[block.Hash().String()] = true
		if _, err := Assemble(block.Header, bundles, block.Evidence); err != nil {
			t.Error(err)
		}
		if bundles[0].reserve != 0 {
			other := append([]*CheckedBundle{w.reserving(bundles[0].reserve+7, m)}, bundles[1:]...)
			if _, err := Assemble(block.Header, other, block.Evidence); !errors.Is(err, ErrInvalid) {
				t.Errorf("another reserve: %v", err)
			}
		}
		raw := block.Encode()
		if again, err := DecodeBlock(raw, lim, votes.Verify); err != nil || !bytes.Equal(again.Encode(), raw) {
			t.Errorf("decoded: %v", err)
		}
	}
	if len(names) != 5 {
		t.Errorf("%d names of 5 blocks", len(names))
	}
}

// TestCostsAreCountedIn64Bits: what one mutation may take, and what many of a block may, is more
// than an int holds on machines of 32 bits. There a sum of ints would turn negative, so that
// such a node refuses what all others do.
func TestCostsAreCountedIn64Bits(t *testing.T) {
	p := purse{reserve: 1000}
	for i := range 100_000 { // an int of 32 bits comes round after 22 of them
		if p.allowed, p.empty = mutationUnit, false; p.take(mostBlockCost) {
			t.Fatalf("%d mutations have used up all, and another may take %d units: %+v", i, mostBlockCost, p)
		}
	}
	w := newWorld(t)
	w.skip = true
	const size = 64 << 10
	w.one(w.put("/big", strings.Repeat("x", size)))
	var reads []Op
	for range 128 {
		reads = append(reads, get("/big", ""))
	}
	var bundles []*CheckedBundle
	for range 12 {
		bundles = append(bundles, w.reserving(8500, w.ops(reads...)))
	}
	// As many of 1,500 as the reserve is enough for, and no more: a count that overflowed would let further
	// ones pass.
	var many []Mutation
	for range 1500 {
		many = append(many, w.ops(get("/big", ""), get("/big", "")))
	}
	w.now = w.now.Add(time.Second)
	res, err := w.state.ExecuteFor(w.block([]*CheckedBundle{w.reserving(42*(2*given(size+4)-mutationUnit-2*opUnits), many...)}), func(_, _ aweigh.Hash) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	for i, out := range res.Outcomes {
		if done := out.Code == Applied; done != (i < 42) {
			t.Fatalf("mutation %d of 1500, of which 42 may be done: %s", i, out.Code)
		}
	}

	lots := w.g.Policy.Limits
	lots.BlockCost = 200_000
	w.now = w.now.Add(time.Second)
	b := w.block(bundles)
	if err := b.Check(lots); err != nil {
		t.Fatal(err)
	}
	res, err = w.state.ExecuteFor(b, func(_, _ aweigh.Hash) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	for i, out := range res.Outcomes {
		if out.Code != Applied {
			t.Errorf("mutation %d: %s %q", i, out.Code, out.Reason)
		}
	}
}

// TestResponsesThatNobodyWantsChangeNothing: a node that leaves them out comes to the same state
// and outcomes.
func TestResponsesThatNobodyWantsChangeNothing(t *testing.T) {
	w := newWorld(t)
	for name, m := range dear(w) { // order-free: each on the same state
		w.now = w.now.Add(time.Second)
		b := w.block([]*CheckedBundle{w.reserving(enough, m)})
		all, err := w.state.Execute(b)
		if err != nil {
			t.Fatal(err)
		}
		few, err := w.state.ExecuteFor(b, func(_, _ aweigh.Hash) bool { return false })
		if err != nil || few.Head != all.Head || few.Outcomes[0].Code != Applied || few.Outcomes[0].Revision != all.Outcomes[0].Revision {
			t.Errorf("%s: %+v, %v", name, few.Head, err)
		}
		for _, r := range few.Outcomes[0].Responses {
			if len(r.Prev)+len(r.Range.Kvs) > 0 {
				t.Errorf("%s: what nobody wants was read", name)
			}
		}
	}
}

// TestLargeDeletionsAreOneRevision: a deletion of very many keys, or of very large ones, is done
// at one revision, with an entry for every key whose digests are those of what was there.
func TestLargeDeletionsAreOneRevision(t *testing.T) {
	testshort.Skip(t)
	w := newWorld(t)
	w.skip = true
	const keys = 30_000
	for from := 0; from < keys; from += 5000 {
		var muts []Mutation
		for i := range 5000 {
			muts = append(muts, w.put(fmt.Sprintf("/small/%05d", from+i), "v"))
		}
		w.step(muts...)
	}
	long := strings.Repeat("x", 3*longRecord)
	w.step(w.grant(7, 600))
	w.step(w.ops(leased("/small/leased", long, 7)), w.put("/small/long", long), w.put("/small/long", long+"2"))
	want := make(map[string]KeyValue)
	all, err := w.state.Range([]byte("/small/"), []byte("/small0"), Range{})
	if err != nil || len(all.Kvs) != keys+2 {
		t.Fatalf("%d keys, %v", len(all.Kvs), err)
	}
	for _, kv := range all.Kvs {
		want[string(kv.Key)] = kv
	}
	before := w.state.Head()
	m := w.ops(Op{Kind: OpDelete, Key: []byte("/small/"), End: []byte("/small0")})
	price, _, err := w.state.Price(m, w.now)
	if err != nil {
		t.Fatal(err)
	}
	out := w.run(w.reserving(price, m)).Outcomes[0]
	if out.Code != Applied || out.Responses[0].Deleted != keys+2 || out.Revision != before.Revision+1 {
		t.Fatalf("%s %q: %d deleted at revision %d after %d", out.Code, out.Reason, out.Responses[0].Deleted, out.Revision, before.Revision)
	}
	log := w.state.Lineage()
	for i := before.LineageSize; i < w.state.Head().LineageSize; i++ {
		e, ok, err := log.Entry(i)
		prev, there := want[string(e.Key)]
		if err != nil || !ok || !there || e.Prior != prev.Digest() || e.Revision != out.Revision {
			t.Fatalf("entry %d of %q: %+v, %v", i, e.Key, e, err)
		}
		delete(want, string(e.Key))
	}
	if len(want) > 0 {
		t.Fatalf("%d keys have no entry: %v", len(want), maps.Keys(want))
	}
	if l, ok, err := w.state.Lease(7); err != nil || !ok || l.Keys != 0 {
		t.Errorf("lease: %+v, %v, %v", l, ok, err)
	}
	w.checkDigest()
}

// TestOneMutationHoldsABoundedPart: many reads of the same large values fail, whatever the bundle reserves, and so do
// range compares; deletions hold no values.
func TestOneMutationHoldsABoundedPart(t *testing.T) {
	testshort.Skip(t)
	w := newWorld(t)
	w.skip = true
	dear(w) // four values of 1 MiB
	times := givenMost/(4<<20) + 1
	gets, compares := make([]Op, times), make([]Compare, times)
	for i := range times {
		gets[i] = get("/big/", "/big0")
		compares[i] = Compare{Target: OnMod, Relation: Greater, Key: []byte("/big/"), End: []byte("/big0")}
	}
	most := w.g.Policy.Limits.BlockCost * 9 / 10
	for name, c := range map[string]struct {
		m    Mutation
		want Code
	}{
		"reads": {w.ops(gets...), Failed}, "compares": {w.txn(Txn{Compare: compares}), Failed}, "fewer reads": {w.ops(gets[:times-2]...), Applied},
	} {
		if out := w.run(w.reserving(most, c.m)).Outcomes[0]; out.Code != c.want {
			t.Errorf("%s: %s %q", name, out.Code, out.Reason)
		}
	}
}
