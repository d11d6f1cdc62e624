package model_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/scope/model"
	"github.com/aweigh/aweigh/votes"
)

// isle is an island of a world's scope, in the same store.
type isle struct {
	*world
	of    *world
	terms scope.Terms
	keys  map[aweigh.AnchorID]votes.PrivateKey
}

// anchorsOf is so many keys in the order of a genesis.
func anchorsOf(t fataler, n int) (keys []votes.PrivateKey) {
	for i := range n {
		keys = append(keys, testKey(t, byte(i+1)))
	}
	slices.SortFunc(keys, func(a, b votes.PrivateKey) int {
		x, y := a.Public().ID(), b.Public().ID()
		return bytes.Compare(x[:], y[:])
	})
	return keys
}

// isle founds an island of some anchors on the partition of a prefix, nil where an object has another name elsewhere.
func (w *world) isle(prefix string, members ...votes.PrivateKey) *isle {
	w.t.Helper()
	c := &isle{of: w, terms: w.epoch().Terms(), keys: make(map[aweigh.AnchorID]votes.PrivateKey)}
	var ids []aweigh.AnchorID
	for _, k := range members {
		ids = append(ids, k.Public().ID())
		c.keys[k.Public().ID()] = k
	}
	g, ops, err := w.state.Island([]byte(prefix), ids)
	if errors.Is(err, scope.ErrIsland) {
		return nil
	}
	must(w.t, err)
	w.store.Apply(ops...)
	c.world = &world{
		t: w.t, g: g, author: w.author, store: w.store, model: model.Island(g, w.model).Within(w.bounds), now: w.now, nonce: w.nonce + 1<<20,
		bounds: w.bounds, blocks: make(map[aweigh.Height]*scope.Block),
	}
	c.open()
	return c
}

// source is what the members have, after a block without work, whose header names the whole lineage.
func (c *isle) source() *scope.IslandSource {
	c.t.Helper()
	c.step(time.Nanosecond)
	h := c.blocks[c.state.Height()].Header
	cert := quorum.Certificate{Subject: quorum.Subject{Kind: quorum.Finalize, View: h.View, Block: h.Hash()}}
	e := c.epoch()
	for s := range e.Roster.Weights.All() {
		b := votes.Ballot{Format: votes.Format, Domain: e.Domain(), Subject: cert.Subject, Anchor: s.Anchor}
		cert.Signatures = append(cert.Signatures, quorum.Signature{Anchor: s.Anchor, Bytes: c.keys[s.Anchor].Sign(votes.ContextBallot, b.SigningBytes())})
	}
	return &scope.IslandSource{
		State: c.state, Genesis: c.g, Terms: c.terms, Final: scope.Finality{Header: h, Certificate: cert},
		Block: func(h aweigh.Height) (*scope.Block, error) { return c.blocks[h], nil },
	}
}

// by executes a mutation of another author.
func (w *world) by(key votes.PrivateKey, after time.Duration, m scope.Mutation) {
	w.t.Helper()
	author := w.author
	w.author = key
	w.step(after, m)
	w.author = author
}

// on record of an island.
func (c *isle) record() *scope.IslandRecord {
	c.t.Helper()
	all, err := c.of.state.Islands()
	must(c.t, err)
	for i := range all {
		if all[i].ID == c.g.Hash() {
			return &all[i]
		}
	}
	return nil
}

// announce puts an island on record, or says that it has more.
func (c *isle) announce(by votes.PrivateKey, after time.Duration) {
	c.t.Helper()
	c.of.by(by, after, c.of.mutation(scope.Rejoin, c.source().Announcement()))
}

// take brings in the changes from an entry on.
func (c *isle) take(by votes.PrivateKey, after time.Duration, from int64, most int) {
	c.t.Helper()
	src := c.source()
	if from >= src.Final.Header.LineageSize {
		return
	}
	re, err := src.Next(from, most)
	if err != nil { // from lies within a mutation
		return
	}
	m := c.of.mutation(scope.Rejoin, re)
	if _, err := scope.Sign(by, c.of.g.Policy.Limits, m); err == nil {
		c.of.by(by, after, m)
	}
}

// program is some blocks of random mutations: of an island, mostly of what it takes.
func program(t *rapid.T, w *world, keys []string, simple bool) {
	pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
	for range rapid.IntRange(0, 4).Draw(t, "blocks") {
		d := &model.Drawing{Pick: pick, View: w.model.At(w.model.Height()), Leases: someLeases, Policy: &w.g.Policy}
		for _, key := range keys {
			d.Keys = append(d.Keys, []byte(key))
		}
		var muts []scope.Mutation
		for range rapid.IntRange(0, 3).Draw(t, "mutations") {
			class, content := d.Content()
			if simple && pick(8) > 0 {
				class, content = scope.Write, simpleTxn(d, pick)
			}
			muts = append(muts, w.mutation(class, content))
		}
		w.reserve = rapid.SampledFrom([]int64{0, 100, 200_000}).Draw(t, "reserve")
		w.step(rapid.SampledFrom([]time.Duration{time.Nanosecond, time.Second, time.Minute}).Draw(t, "later"), muts...)
		w.whole(pick)
	}
}

// simpleTxn is a transaction that an island takes.
func simpleTxn(d *model.Drawing, pick func(int) int) (t scope.Txn) {
	first := pick(len(d.Keys))
	op := func() scope.Op {
		key := d.Keys[first%len(d.Keys)] // each once, as etcd has it
		first++
		if pick(3) == 0 {
			return scope.Op{Kind: scope.OpDelete, Key: key}
		}
		return scope.Op{Kind: scope.OpPut, Key: key, Value: fmt.Appendf(nil, "%d", pick(4))}
	}
	for range 1 + pick(3) {
		t.Success = append(t.Success, op())
	}
	if pick(3) == 0 {
		t.Compare = []scope.Compare{{Key: d.Keys[pick(len(d.Keys))], Target: scope.OnVersion, Relation: scope.Equal, Number: int64(pick(3))}}
		t.Failure = append(t.Failure, op())
	}
	return t
}

// isleKeys are those of someKeys in the partition of the test.
var isleKeys = []string{"a", "a\x00", "a\x00\x00", "a\x00\x01", "a\x01", "ab"}

// TestRejoiningIsTheModels runs random programs in a scope and in islands of it, and brings the islands back in random
// order, twice, late and in parts of any size, by anchors and by others. Every outcome, the lineage and all that can be
// read is what the model says. What has come in the end does not depend on the size of the parts.
func TestRejoiningIsTheModels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
		p := drawPolicy(pick, nil)
		p.EpochBlocks = 1000
		p.Partitions = []scope.Partition{{Prefix: []byte("a"), Num: 2, Den: 5, After: time.Second, Gather: 10 * time.Second, Window: time.Hour}}
		keys := anchorsOf(t, 4)
		w := newWorldOf(t, drawBounds(pick), p, keys...)
		program(t, w, someKeys, false)
		w.step(time.Second, w.mutation(scope.Write, scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte("a"), Value: []byte("0")}}}))
		var all []*isle
		for _, members := range [][]votes.PrivateKey{keys[:2], keys[1:]}[:1+pick(2)] {
			c := w.isle("a", members...)
			if c == nil {
				continue
			}
			program(t, c.world, isleKeys, true)
			program(t, c.world, isleKeys, true)
			all = append(all, c)
			if pick(2) == 0 { // the next one has another base
				program(t, w, someKeys, false)
			}
		}
		if len(all) == 0 {
			return
		}
		program(t, w, someKeys, false)
		anyone := append(slices.Clone(keys), w.author)
		for range rapid.IntRange(0, 8).Draw(t, "attempts") {
			c, by := all[pick(len(all))], anyone[pick(len(anyone))]
			after := []time.Duration{time.Nanosecond, time.Second, 4 * time.Second, 20 * time.Second}[pick(4)]
			switch pick(5) {
			case 0:
				program(t, w, someKeys, false)
			case 1:
				c.announce(by, after)
			case 2:
				c.take(by, after, c.g.Descent.Keys+int64(pick(4)), 1+pick(3000))
			default:
				if rec := c.record(); rec != nil {
					c.take(by, after, rec.Next, 1+pick(3000))
				}
			}
			w.whole(pick)
		}
		for _, c := range all {
			c.announce(keys[0], 20*time.Second)
			c.of.step(20 * time.Second)
		}
		all = slices.DeleteFunc(all, func(c *isle) bool { return c.record() == nil }) // it gave way, or was too old
		parted(t, w, all)
		w.reserve = 200_000
		for range 200 {
			left := 0
			for _, c := range all {
				if rec := c.record(); rec.Next < rec.Size {
					left++
					c.take(keys[pick(len(keys))], 20*time.Second, rec.Next, 1+pick(20_000))
				}
			}
			if w.whole(pick); left == 0 {
				return
			}
		}
		t.Fatalf("the islands do not come to an end")
	})
}

// parted brings in all islands in one part each, and one mutation after another, each into a copy of the scope.
func parted(t *rapid.T, w *world, all []*isle) {
	var first map[string]string
	for _, most := range []int{1 << 20, 1} {
		left := &world{t: t, g: w.g, author: anchorsOf(t, 4)[0], store: kv.NewOverlay(w.store), now: w.now, nonce: w.nonce + 1<<30, bounds: w.bounds}
		left.open()
		all = slices.SortedFunc(slices.Values(all), func(a, b *isle) int {
			x, y := a.record(), b.record()
			return cmp.Or(cmp.Compare(x.Due, y.Due), cmp.Compare(y.Weight, x.Weight))
		})
		for _, c := range all { // those of the first to the end, or it would matter when the others come
			copied := &isle{world: c.world, of: left, terms: c.terms, keys: c.keys}
			for next := int64(-1); ; {
				rec := copied.record()
				if rec.Next >= rec.Size {
					break
				}
				if rec.Next == next {
					t.Fatalf("entry %d of an island is not taken", next)
				}
				next = rec.Next
				re, err := c.source().Next(rec.Next, most)
				must(t, err)
				left.unmodelled(left.mutation(scope.Rejoin, re))
			}
		}
		got := left.sum(all)
		if first == nil {
			first = got
		} else if !maps.Equal(first, got) {
			t.Fatalf("one by one\n got %v\nwant %v", got, first)
		}
	}
}

// unmodelled executes a mutation without the model.
func (w *world) unmodelled(m scope.Mutation) {
	w.t.Helper()
	w.now = w.now.Add(time.Nanosecond)
	m.ValidUntil = w.now.Add(time.Minute)
	c, err := scope.SignReserving(200_000, w.author, w.g.Policy.Limits, m)
	must(w.t, err)
	before := w.state.Head()
	h, _, err := w.state.Claim(scope.Header{Epoch: before.Epoch, View: before.View + 1, Time: w.now})
	must(w.t, err)
	res, err := w.state.Execute(scope.NewBlock(h, []*scope.CheckedBundle{c}, scope.Evidence{}))
	must(w.t, err)
	w.store.Apply(res.Ops...)
	w.open()
}

// sum is what a scope holds of all keys, and of its islands, but for the places of changes.
func (w *world) sum(all []*isle) map[string]string {
	w.t.Helper()
	sum := make(map[string]string)
	res, err := w.state.Range([]byte{0}, []byte{0}, scope.Range{})
	must(w.t, err)
	for _, kv := range res.Kvs {
		sum[string(kv.Key)] = fmt.Sprintf("%q %d %s %d", kv.Value, kv.Version, kv.UID, kv.Lease)
	}
	for _, c := range all {
		rec := (&isle{world: c.world, of: w}).record()
		sum["island "+c.g.Hash().String()] = fmt.Sprintf("%+v", *rec)
		must(w.t, w.state.AsideOf(c.g.Hash(), func(key []byte, is scope.SetAside) bool {
			is.Time = 0 // parts come one after another
			sum[fmt.Sprintf("aside %s %q", c.g.Hash(), key)] = fmt.Sprintf("%+v", is)
			return true
		}))
	}
	return sum
}

// fork is the same island as some of its members have it, which sign another history: it lies in a store of its own.
func (c *isle) fork() *isle {
	w := &world{
		t: c.t, g: c.g, author: c.author, store: kv.NewOverlay(c.store), model: model.Island(c.g, c.of.model).Within(c.bounds), now: c.now,
		nonce: c.nonce + 1<<25, bounds: c.bounds, blocks: make(map[aweigh.Height]*scope.Block),
	}
	w.open()
	return &isle{world: w, of: c.of, terms: c.terms, keys: c.keys}
}

// TestForksOfIslandsAreTheModels: members that lie certify two histories of their island, and bring parts of both. The
// scope takes what the model says, and all that it takes is of one history.
func TestForksOfIslandsAreTheModels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
		p := drawPolicy(pick, nil)
		p.EpochBlocks = 1000
		p.Partitions = []scope.Partition{{Prefix: []byte("a"), Num: 2, Den: 5, After: time.Second, Gather: 10 * time.Second, Window: time.Hour}}
		keys := anchorsOf(t, 4)
		w := newWorldOf(t, drawBounds(pick), p, keys...)
		w.step(time.Second, w.mutation(scope.Write, scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte("a"), Value: []byte("0")}}}))
		c := w.isle("a", keys[:2]...)
		other := c.fork() // and first all of it: its store lies over that of the island
		w.reserve = 200_000
		var parts [2][]scope.Rejoining // by history, each in parts of one mutation
		var roots [2]map[int64]aweigh.Hash
		for i, x := range []*isle{other, c} {
			program(t, x.world, isleKeys, true)
			program(t, x.world, isleKeys, true)
			src := x.source()
			roots[i] = map[int64]aweigh.Hash{src.Final.Header.LineageSize: src.Final.Header.LineageRoot}
			for from := x.g.Descent.Keys; from < src.Final.Header.LineageSize; {
				re, err := src.Next(from, 1)
				must(t, err)
				parts[i] = append(parts[i], re)
				roots[i][from] = re.Changes[0].Place.Before().Root
				from = re.Changes[len(re.Changes)-1].Place.Index + 1
			}
			w.by(keys[0], 20*time.Second, w.mutation(scope.Rejoin, src.Announcement()))
		}
		took := -1
		for range rapid.IntRange(0, 12).Draw(t, "attempts") {
			i := pick(2)
			if len(parts[i]) == 0 {
				continue
			}
			before := c.record()
			w.by(keys[pick(4)], time.Second, w.mutation(scope.Rejoin, parts[i][pick(len(parts[i]))]))
			after := c.record()
			if before == nil || after.Next == before.Next {
				continue
			}
			if took < 0 && roots[0][after.Next] != roots[1][after.Next] {
				took = i
			}
			if took >= 0 && took != i || after.Taken != roots[i][after.Next] {
				t.Fatalf("it takes a part of history %d after one of history %d", i, took)
			}
		}
		w.whole(pick)
	})
}

// TestIslandsThatGiveWayHaveACost: to delete what was set aside of the island that gives way costs more than a
// Rejoining may by its form, and the model says when.
func TestIslandsThatGiveWayHaveACost(t *testing.T) {
	p := scope.OpenPolicy(quorum.BFT)
	p.EpochBlocks = 1000
	p.Partitions = []scope.Partition{{Prefix: []byte("a"), Num: 2, Den: 5, After: time.Second, Gather: 10 * time.Second, Window: time.Hour}}
	b := scope.DefaultBounds()
	b.Islands = 1
	keys := anchorsOf(t, 4)
	w := newWorldOf(t, &b, p, keys...)
	put := func(w *world) {
		var txn scope.Txn
		for _, key := range isleKeys {
			txn.Success = append(txn.Success, scope.Op{Kind: scope.OpPut, Key: []byte(key), Value: []byte("0")})
		}
		w.step(time.Second, w.mutation(scope.Write, txn))
	}
	put(w)
	old := w.isle("a", keys[:2]...)
	put(old.world)
	put(w)
	later := w.isle("a", keys[:2]...)
	put(later.world)
	old.announce(keys[0], time.Second)
	old.take(keys[0], 20*time.Second, old.record().Next, 1<<20)
	if rec := old.record(); rec.Aside != 1 || rec.Next != rec.Size {
		t.Fatalf("not all is set aside: %+v", rec)
	}
	if later.announce(keys[0], time.Second); later.record() != nil {
		t.Fatal("an island gave way at no cost")
	}
	w.reserve = 8 * int64(1+len(isleKeys))
	if later.announce(keys[0], time.Second); later.record() == nil || old.record() != nil {
		t.Fatal("the island did not give way")
	}
}
