package scope

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/quorum"
)

// taken is a snapshot with the headers that it is checked against.
type taken struct {
	h, child Header
	first    *Genesis // set if it is what that founds instead
	records  []SnapshotRecord
}

// take snapshots the state, in parts of most bytes.
func (w *world) take(h Header, most int) taken {
	w.t.Helper()
	w.now++
	return taken{h: h, child: w.block(nil).Header, records: w.records(most)}
}

func (w *world) records(most int) (all []SnapshotRecord) {
	w.t.Helper()
	var after []byte
	for {
		records, more, err := ReadSnapshot(w.r, w.g.Hash(), after, most)
		if err != nil {
			w.t.Fatalf("reading a snapshot: %v", err)
		}
		all = append(all, records...)
		if !more {
			return all
		}
		after = records[len(records)-1].Key
	}
}

func (t taken) restore() (*kv.Overlay, error) {
	into := kv.NewOverlay(nothing{})
	i, err := NewImport(t.h, t.child)
	if t.first != nil {
		i, err = NewFirstImport(*t.first)
	}
	if err != nil {
		return nil, err
	}
	for _, r := range t.records {
		ops, err := i.Add(r)
		if err != nil {
			return nil, err
		}
		into.Apply(ops...)
	}
	ops, err := i.Finish()
	into.Apply(ops...)
	return into, err
}

// busy is a world with objects that live, were deleted, and compacted away.
func busy(t fataler) (*world, Header) {
	w := newWorld(t)
	w.one(w.ops(put("a", "1"), put("b\x00", "2"), put("c", "3")))
	w.one(w.put("a", "4"))
	w.one(w.ops(del("b", "d")))
	w.one(w.compaction(w.state.Head().Revision - 1))
	w.step(w.mutation(Lease, LeaseRequest{Kind: LeaseGrant, IDs: []int64{9}, TTL: 60}), w.ops(leased("d", "4", 9)), w.ops(leased("g", "8", 9)))
	author := w.author
	w.author = testKey(t, 1) // of an anchor
	w.one(w.permit(2))
	w.one(w.permit(3))
	w.author = author
	w.step(w.put("d", "5"), w.ops(Op{Kind: OpPut, Key: []byte("none"), IgnoreValue: true}), w.put("e", "6"))
	w.now = w.now.Add(1)
	b := w.block(w.sign(w.put("f", "7")))
	w.execute(b)
	return w, b.Header
}

// TestSnapshotContinuesAsTheOriginal: the imported state answers like the
// original, and so does every state on top of it.
func TestSnapshotContinuesAsTheOriginal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.ttls = []int64{1, 10, 60}
		key := rapid.SampledFrom([]string{"a", "b", "a\x00b", "c"})
		do := func() Mutation {
			switch rapid.IntRange(0, 7).Draw(t, "what") {
			case 3:
				return w.mutation(Lease, drawLeaseRequest(t, w))
			case 4:
				return w.ops(leased(key.Draw(t, "key"), "leased", drawLease(t)))
			case 6, 7:
				if n := drawNaming(t, w); n.check(w.g.Policy.Limits) == nil {
					return w.naming(n)
				}
			case 0:
				return w.ops(del("a", key.Draw(t, "end")))
			case 1:
				return w.compaction(rapid.Int64Range(1, w.state.Head().Revision).Draw(t, "revision"))
			case 2:
				return w.ops(put(key.Draw(t, "key"), "x"), put(key.Draw(t, "key")+"2", "y"))
			}
			return w.put(key.Draw(t, "key"), rapid.StringN(0, 5, 10).Draw(t, "value"))
		}
		var h Header
		for range rapid.IntRange(1, 12).Draw(t, "blocks") {
			w.now += 20e9
			var muts []Mutation
			for range rapid.IntRange(0, 4).Draw(t, "mutations") {
				muts = append(muts, do())
			}
			b := w.block(w.sign(muts...))
			w.execute(b)
			h = b.Header
		}
		w.now++
		into, err := w.take(h, rapid.SampledFrom([]int{1, 300, 1 << 20}).Draw(t, "bytes")).restore()
		if err != nil {
			t.Fatal(err)
		}
		o := *w
		o.r, o.flat = into, into
		o.open()
		for n := range 4 {
			from := max(1, w.state.head.Compacted)
			a, _, err1 := w.state.Events(from, w.state.head.Revision, []byte{0}, []byte{0}, 1000)
			b, _, err2 := o.state.Events(from, w.state.head.Revision, []byte{0}, []byte{0}, 1000)
			if err1 != nil || err2 != nil || !reflect.DeepEqual(a, b) {
				t.Fatalf("events from %d: %v %v\n%v %v", from, a, err1, b, err2)
			}
			for _, kind := range []byte{atVersion, atObject, atReceipt, atExpiry, atLedger, atLease, atLeaseKey, atLeaseEnd, atNames, atAliases, atAccess, atRedirect, atRedirectExpiry} {
				prefix := w.state.space.at(kind)
				if a, b := kept(w.r, prefix), kept(o.r, prefix); !slices.Equal(a, b) {
					t.Fatalf("after %d blocks, %q:\n%q\n%q", n, kind, a, b)
				}
			}
			w.now += 30e9
			next := w.block(w.sign(do(), do()))
			w.execute(next)
			o.now = w.now
			o.execute(next)
			if w.state.head != o.state.head {
				t.Fatalf("the same block leads to\n%+v\n%+v", w.state.head, o.state.head)
			}
		}
	})
}

func kept(r kv.Reader, prefix []byte) (all []string) {
	_ = r.Scan(prefix, kv.PrefixEnd(prefix), false, func(k, v []byte) bool {
		all = append(all, string(k)+"="+string(v))
		return true
	})
	return all
}

// TestSnapshotThatLiesIsRefused: any byte changed, any record left out, repeated,
// added or moved.
func TestSnapshotThatLiesIsRefused(t *testing.T) {
	testshort.Skip(t)
	w, h := busy(t)
	good := w.take(h, 1<<20)
	refusesLies(t, good)
	other := good
	other.child.State[0] ^= 1
	if _, err := other.restore(); !errors.Is(err, ErrInvalid) {
		t.Errorf("another state was claimed: %v", err)
	}
	if _, err := NewImport(good.child, good.h); !errors.Is(err, ErrInvalid) {
		t.Errorf("headers that do not follow: %v", err)
	}
}

// TestFirstStateThatLiesIsRefused: the same of what a scope was founded with, which
// no block of its own proves.
func TestFirstStateThatLiesIsRefused(t *testing.T) {
	testshort.Skip(t)
	r := newRealm(t, nil)
	r.one(r.mutation(Lease, LeaseRequest{Kind: LeaseGrant, IDs: []int64{7}, TTL: 3600, Asked: r.now}))
	r.one(r.ops(leased("/a/1", "leased", 7), put("/a/2", "two"), put("/b/1", "other")))
	r.one(r.naming(Naming{Kind: Bind, Key: []byte("/a/2"), To: []byte("/a/3")}))
	r.one(r.move("/a/3", "/a/4", r.now.Add(24*time.Hour)))
	g := r.delegate(r.decision("/a/", quorum.BFT, "a", "b", "c", "d")).Founded[0]
	if g.Descent.Keys != 3 || g.Descent.Empty() {
		t.Fatalf("%d keys were handed over", g.Descent.Keys)
	}
	c := r.child(g)
	good := taken{first: &g, records: c.records(1 << 20)}
	refusesLies(t, good)
	for what, lie := range map[string]func(*lineage.Entry){ // with all that follows from it
		"what was before": func(e *lineage.Entry) { e.Prior[0] ^= 1 },
		"by whom":         func(e *lineage.Entry) { e.Author[0] ^= 1 },
		"under":           func(e *lineage.Entry) { e.Policy[0] ^= 1 },
		"by":              func(e *lineage.Entry) { e.Roster[0] ^= 1 },
		"nothing":         func(*lineage.Entry) {},
	} {
		bad := good
		bad.records = slices.Clone(good.records)
		s := *c.state
		for i, rec := range bad.records {
			if rec.Key[0] != atLineage {
				continue
			}
			entries, err := lineage.DecodeRun(rec.Value)
			if err != nil {
				t.Fatal(err)
			}
			lie(&entries[0])
			log := lineage.Open(nil, s.space.at(atLineage), 0)
			ops, err := log.Append(entries...)
			if err != nil {
				t.Fatal(err)
			}
			s.head.LineageRoot, _ = log.Root()
			for _, op := range ops {
				if bytes.Equal(op.Key[len(s.space):], rec.Key) {
					bad.records[i].Value = op.Value
				}
			}
		}
		s.head.Digest = s.digest()
		bad.records[0].Value = s.write().Value
		if _, err := bad.restore(); (err == nil) != (what == "nothing") || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("a lie about %s: %v", what, err)
		}
	}
	if _, err := NewFirstImport(r.g); !errors.Is(err, ErrInvalid) {
		t.Errorf("of the root scope: %v", err)
	}
}

// TestRedirectsAreHandedOverAlone: all keys of a prefix were moved away, and lead on.
// The child has no entry about them, and its state can be fetched nevertheless.
func TestRedirectsAreHandedOverAlone(t *testing.T) {
	r := newRealm(t, nil)
	for i := range 4 {
		key := fmt.Sprintf("/a/%d", i)
		r.one(r.put(key, "v"))
		r.one(r.move(key, fmt.Sprintf("/c/%d", i), r.now.Add(24*time.Hour)))
	}
	g := r.delegate(r.decision("/a/", quorum.BFT, "a", "b", "c", "d")).Founded[0]
	if g.Descent.Keys != 0 || g.Descent.Empty() {
		t.Fatalf("%d keys were handed over", g.Descent.Keys)
	}
	c := r.child(g)
	restores(t, c, taken{first: &g, records: c.records(300)})
	var h Header
	for range 2 {
		c.now += 20e9
		b := c.block(nil)
		c.execute(b)
		h = b.Header
	}
	restores(t, c, c.take(h, 300))
}

func refusesLies(t *testing.T, good taken) {
	t.Helper()
	if _, err := good.restore(); err != nil {
		t.Fatal(err)
	}
	refused := func(what string, records []SnapshotRecord) {
		t.Helper()
		bad := good
		bad.records = records
		if _, err := bad.restore(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	each := testshort.Cases(4, 4, 1) // byte
	for n, r := range good.records {
		for at := n % each; at < len(r.Key); at += each {
			bad := slices.Clone(good.records)
			bad[n].Key = bytes.Clone(r.Key)
			bad[n].Key[at] ^= 1
			refused(fmt.Sprintf("record %q, byte %d of the key", r.Key, at), bad)
		}
		for at := n % each; at < len(r.Value); at += each {
			for _, flip := range []byte{1, 0x80} {
				bad := slices.Clone(good.records)
				bad[n].Value = bytes.Clone(r.Value)
				bad[n].Value[at] ^= flip
				refused(fmt.Sprintf("record %q, byte %d of the value", r.Key, at), bad)
			}
		}
		refused(fmt.Sprintf("without %q", r.Key), slices.Delete(slices.Clone(good.records), n, n+1))
		refused(fmt.Sprintf("%q twice", r.Key), slices.Insert(slices.Clone(good.records), n, r))
		more := r
		more.Key = append(bytes.Clone(r.Key), 0)
		refused(fmt.Sprintf("with one after %q", r.Key), slices.Insert(slices.Clone(good.records), n+1, more))
		if n > 0 {
			bad := slices.Clone(good.records)
			bad[n], bad[n-1] = bad[n-1], bad[n]
			refused(fmt.Sprintf("%q before its time", r.Key), bad)
		}
	}
	stray := bytes.Repeat([]byte{0xfe}, 33)
	stray[0] = atReceipt
	for _, r := range []SnapshotRecord{{Key: stray, Value: (&Receipt{Code: Applied}).record()}, {Key: []byte{atObject, 1}}, {Key: []byte{atChange, 1}}, {Key: []byte("lh1")}, {}} {
		all := append(slices.Clone(good.records), r)
		slices.SortFunc(all, func(a, b SnapshotRecord) int { return bytes.Compare(a.Key, b.Key) })
		refused(fmt.Sprintf("with %q", r.Key), all)
	}
}

// BenchmarkImport checks and makes the state of a snapshot of small keys.
func BenchmarkImport(b *testing.B) {
	w := newWorld(b)
	w.skip = true
	var h Header
	const keys = 50_000
	for n := 0; n < keys; {
		w.now += 1e9
		var muts []Mutation
		for range 10 {
			var ops []Op
			for range 100 {
				ops = append(ops, put(fmt.Sprintf("/key/%08d", n), string(make([]byte, 64))))
				n++
			}
			muts = append(muts, w.ops(ops...))
		}
		block := w.block(w.sign(muts...))
		w.execute(block)
		h = block.Header
	}
	t := w.take(h, 1<<20)
	size := 0
	for _, r := range t.records {
		size += len(r.Key) + len(r.Value)
	}
	b.SetBytes(int64(size))
	for b.Loop() {
		if _, err := t.restore(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(keys)*float64(b.N)/b.Elapsed().Seconds(), "keys/s")
}
