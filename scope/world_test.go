package scope

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/lthash"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// nothing is a Reader of an empty store.
type nothing struct{}

func (nothing) Get([]byte) ([]byte, bool, error)                               { return nil, false, nil }
func (nothing) Scan(_, _ []byte, _ bool, _ func(key, value []byte) bool) error { return nil }

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func testKey(t fataler, seed byte) votes.PrivateKey {
	t.Helper()
	k, err := votes.KeyFromSeed("ed25519", bytes.Repeat([]byte{seed}, 32))
	if err != nil {
		t.Fatalf("making a key: %v", err)
	}
	return k
}

// testGenesis is a genesis with anchors whose keys are returned in its order.
func testGenesis(t fataler, anchors int) (Genesis, []votes.PrivateKey) {
	t.Helper()
	keys := make([]votes.PrivateKey, anchors)
	for i := range keys {
		keys[i] = testKey(t, byte(i+1))
	}
	slices.SortFunc(keys, func(a, b votes.PrivateKey) int {
		x, y := a.Public().ID(), b.Public().ID()
		return bytes.Compare(x[:], y[:])
	})
	g := Genesis{Format: Format, Name: "test", Time: aweigh.Instant(1_700_000_000 * time.Second), Policy: OpenPolicy(quorum.BFT)}
	for i, k := range keys {
		g.Anchors = append(g.Anchors, Anchor{Name: string(rune('a' + i)), Key: k.Public(), Score: 500_000})
	}
	return g, keys
}

// world is one scope with its store, driven block by block.
type world struct {
	t      fataler
	g      Genesis
	author votes.PrivateKey
	r      kv.Reader
	state  *State
	now    aweigh.Instant
	nonce  uint64
	flat   *kv.Overlay // where blocks are applied; nil: every block is an overlay of its own
	skip   bool        // skip the slow checks
	head   *Header     // of the last block, nil before the first
	made   []*Block    // all
	bribed bool        // it executes what no honest program does
	ttls   []int64     // that leases are drawn with; nil: long ones
}

func newWorld(t fataler) *world {
	t.Helper()
	g, _ := testGenesis(t, 4)
	return newWorldOf(t, g)
}

func newWorldOf(t fataler, g Genesis) *world {
	t.Helper()
	w := &world{t: t, g: g, author: testKey(t, 99), now: g.Time, flat: kv.NewOverlay(nothing{})}
	ops, err := Init(g)
	if err != nil {
		t.Fatalf("init: %v", err)
	}
	w.flat.Apply(ops...)
	w.r = w.flat
	w.open()
	return w
}

func (w *world) open() {
	w.t.Helper()
	s, err := Open(w.r, w.g.Hash())
	if err != nil {
		w.t.Fatalf("open: %v", err)
	}
	w.state = s
}

func (w *world) mutation(class Class, content any) Mutation {
	w.nonce++
	return Mutation{
		Scope: w.g.Hash(), Class: class, Author: w.author.Public().ID(), Content: canon.Encode(content),
		Nonce: binary.BigEndian.AppendUint64(nil, w.nonce), ValidUntil: w.now.Add(time.Minute),
	}
}

func (w *world) txn(t Txn) Mutation             { return w.mutation(Write, t) }
func (w *world) ops(ops ...Op) Mutation         { return w.txn(Txn{Success: ops}) }
func (w *world) put(key, value string) Mutation { return w.ops(put(key, value)) }
func (w *world) compaction(rev int64) Mutation  { return w.mutation(Compact, Compaction{Revision: rev}) }
func put(key, value string) Op                  { return Op{Kind: OpPut, Key: []byte(key), Value: []byte(value)} }
func leased(key, value string, id int64) Op {
	return Op{Kind: OpPut, Key: []byte(key), Value: []byte(value), Lease: id}
}
func del(key, end string) Op {
	return Op{Kind: OpDelete, Key: []byte(key), End: []byte(end), Prev: true}
}
func get(key, end string) Op { return Op{Kind: OpRange, Key: []byte(key), End: []byte(end)} }

// enough is what bundles of tests reserve that are not about their cost.
const enough = 200_000

func (w *world) sign(muts ...Mutation) []*CheckedBundle {
	w.t.Helper()
	if len(muts) == 0 {
		return nil
	}
	return []*CheckedBundle{w.reserving(enough, muts...)}
}

// reserving is a bundle with a reserve.
func (w *world) reserving(units int64, muts ...Mutation) *CheckedBundle {
	w.t.Helper()
	c, err := SignReserving(units, w.author, w.g.Policy.Limits, muts...)
	if err != nil {
		w.t.Fatalf("sign: %v", err)
	}
	return c
}

func (w *world) block(bundles []*CheckedBundle, proofs ...Proof) *Block {
	w.t.Helper()
	e, err := w.state.Epoch()
	if err != nil {
		w.t.Fatalf("reading the epoch: %v", err)
	}
	view := w.state.Head().View + 1
	if w.state.Head().Epoch != e.Number {
		view = 1
	}
	h, _, err := w.state.Claim(Header{Epoch: e.Number, View: view, Time: w.now})
	if err != nil {
		w.t.Fatalf("claim: %v", err)
	}
	b := NewBlock(h, bundles, Evidence{Proofs: proofs})
	if err := w.state.CheckHeader(b.Header); err != nil {
		w.t.Fatalf("the claims of a fresh header do not hold: %v", err)
	}
	return b
}

// step executes the mutations as one block, one second later.
func (w *world) step(muts ...Mutation) *Result {
	w.t.Helper()
	w.now = w.now.Add(time.Second)
	return w.execute(w.block(w.sign(muts...)))
}

func (w *world) execute(b *Block) *Result {
	w.made = append(w.made, b)
	w.t.Helper()
	res, err := w.state.Execute(b)
	if err != nil {
		w.t.Fatalf("execute: %v", err)
	}
	closely := !testing.Short() || b.Header.Height < 4 || b.Header.Height%4 == 0
	if closely {
		if lean, err := w.state.Lean().Execute(b); err != nil {
			w.t.Fatalf("execute with nothing at hand: %v", err)
		} else if lean.Head != res.Head {
			w.t.Fatalf("with nothing at hand the state comes out as %+v, want %+v", lean.Head, res.Head)
		}
	}
	before, undo := w.head, Undo{}
	if undo, err = w.state.Undo(b.Hash(), res.Ops, 1<<30); err != nil {
		w.t.Fatalf("undo: %v", err)
	}
	if w.flat != nil {
		w.flat.Apply(res.Ops...)
	} else {
		o := kv.NewOverlay(w.r)
		o.Apply(res.Ops...)
		w.r = o
	}
	w.open()
	if w.state.Head() != res.Head {
		w.t.Fatalf("the store opens at %+v, the result says %+v", w.state.Head(), res.Head)
	}
	next := *res.State(w.state.r)
	epoch, born := next.epoch, next.born
	if closely {
		w.checkSame(next)
	}
	if !w.skip && closely {
		w.checkDigest()
		if h := b.Header.Height; w.bribed || h > 2 && h%8 != 0 || h == 1 && testing.Short() {
			// not audited: its program is another, or for want of time
		} else if err := (Audit{Reader: w.r, Genesis: &w.g, Bounds: next.bounds}).Newest(before, b, undo); err != nil {
			w.t.Fatalf("block %d: the audit ends with %v", b.Header.Height, err)
		}
	}
	w.state.epoch, w.state.born = epoch, born // so that nothing decodes them again
	w.head = &b.Header
	return res
}

// checkSame compares the state that a block led to with the one that the store opens with.
func (w *world) checkSame(next State) {
	w.t.Helper()
	if root, err := next.Lineage().Root(); err != nil || root != next.head.LineageRoot {
		w.t.Fatalf("the result carries a log with root %s, %v", root.Short(), err)
	}
	if e, err := w.state.Epoch(); err != nil || !bytes.Equal(e.Encode(), next.epoch.Encode()) {
		w.t.Fatalf("the store opens in another epoch: %v", err)
	}
	next.bounds = w.state.bounds // a test may have set others
	next.log, next.epoch, next.pending, next.counted, next.warm, next.named, next.used, next.own, next.born = nil, nil, nil, nil, nil, nil, nil, nil, nil
	next.current = nil
	if !reflect.DeepEqual(next, *w.state) {
		w.t.Fatalf("the state of the result is not the one that the store opens with")
	}
}

// one executes one mutation that must apply.
func (w *world) one(m Mutation) Outcome {
	w.t.Helper()
	out := w.step(m).Outcomes[0]
	if out.Code != Applied {
		w.t.Fatalf("%s: %s", out.Code, out.Reason)
	}
	return out
}

// checkDigest rebuilds the hash of the state from all records of the store.
func (w *world) checkDigest() {
	w.t.Helper()
	var sum lthash.Hash
	scan := func(kind byte, visit func(k, v []byte)) {
		prefix := w.state.space.at(kind)
		if err := w.r.Scan(prefix, kv.PrefixEnd(prefix), false, func(k, v []byte) bool { visit(k, v); return true }); err != nil {
			w.t.Fatalf("scan: %v", err)
		}
	}
	add := func(k, v []byte) {
		h, _ := element(nil, k, v)
		sum.Add(h, new(lthash.Lanes))
	}
	for _, kind := range []byte{atVersion, atLease, atMotion, atVoted, atOpen, atDue, atClosed, atNames, atAliases, atAccess, atRedirect, atDelegated, atUsage, atCharge, atVoid, atIsland, atAside, atTaken, atTerms, atWarning, atHoming, atHomePart, atFolded, atSent, atReceived} {
		scan(kind, add)
	}
	w.checkLeases()
	w.checkUsages()
	receipts := 0
	scan(atReceipt, func(_, _ []byte) { receipts++ })
	scan(atExpiry, func(k, ids []byte) {
		var list []byte
		for ; len(ids) > 0; ids = ids[32:] {
			v, ok, err := w.r.Get(w.state.space.at(atReceipt, ids[:32]...))
			if err != nil || !ok {
				w.t.Fatalf("no receipt of %x (%v)", ids[:32], err)
			}
			list = appendReceipt(list, ids[:32], v)
			receipts--
		}
		add(k, list)
	})
	if receipts != 0 {
		w.t.Fatalf("%d receipts stand in no list", receipts)
	}
	if held := w.counted(); held != w.state.head.Bytes {
		w.t.Fatalf("block %d: %d bytes of keys are there, and the head says %d", w.state.head.Height, held, w.state.head.Bytes)
	}
	if sum != *w.state.sum {
		w.t.Fatalf("block %d: the digest is not that of the store's records", w.state.head.Height)
	}
	if _, err := w.state.Current(); err != nil { // which makes the tree from the records
		w.t.Fatalf("block %d: %v", w.state.head.Height, err)
	}
	if w.state.digest() != w.state.head.Digest {
		w.t.Fatalf("block %d: the head's digest is stale", w.state.head.Height)
	}
}

// dump is every pair of the store.
func (w *world) dump() map[string]string {
	all := make(map[string]string)
	_ = w.r.Scan(nil, nil, false, func(k, v []byte) bool {
		all[string(k)] = string(v)
		return true
	})
	return all
}
