package model_test

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/scope/model"
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

var _ fataler = (*testing.T)(nil)

func testKey(t fataler, seed byte) votes.PrivateKey {
	t.Helper()
	k, err := votes.KeyFromSeed("ed25519", bytes.Repeat([]byte{seed}, 32))
	must(t, err)
	return k
}

func must(t fataler, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

// world is a scope with its store beside the model of it, driven block by block.
type world struct {
	t      fataler
	g      scope.Genesis
	author votes.PrivateKey
	store  *kv.Overlay
	state  *scope.State
	model  *model.Model
	now    aweigh.Instant
	nonce  uint64

	bounds  *scope.Bounds
	reserve int64
	blocks  map[aweigh.Height]*scope.Block
	keys    []votes.PrivateKey // of anchors, if epochs end
	hands   []scope.Handover
	last    func() scope.Finality           // of the newest block
	below   map[aweigh.ScopeID]*model.Model // of the scopes below
	added   func(*scope.Block)              // told of each block; nil: nothing is
}

func newWorld(t fataler, b *scope.Bounds, p scope.Policy) *world {
	t.Helper()
	return newWorldOf(t, b, p, testKey(t, 1))
}

// newWorldOf is a world with anchors of some keys.
func newWorldOf(t fataler, b *scope.Bounds, p scope.Policy, keys ...votes.PrivateKey) *world {
	t.Helper()
	g := scope.Genesis{Format: scope.Format, Name: "test", Time: aweigh.Instant(1_700_000_000 * time.Second), Policy: p}
	for i, k := range keys {
		g.Anchors = append(g.Anchors, scope.Anchor{Name: string(rune('a' + i)), Key: k.Public(), Score: 500_000})
	}
	w := &world{t: t, g: g, author: testKey(t, 99), now: g.Time, store: kv.NewOverlay(nothing{}), model: model.New(g).Within(b), bounds: b}
	ops, err := scope.Init(g)
	must(t, err)
	w.store.Apply(ops...)
	w.open()
	return w
}

func (w *world) open() {
	w.t.Helper()
	s, err := scope.Open(w.store, w.g.Hash())
	must(w.t, err)
	w.state = s.Within(w.bounds)
}

func (w *world) mutation(class scope.Class, content any) scope.Mutation {
	w.nonce++
	return scope.Mutation{
		Scope: w.g.Hash(), Class: class, Content: canon.Encode(content),
		Nonce: binary.BigEndian.AppendUint64(nil, w.nonce), ValidUntil: w.now.Add(time.Minute),
	}
}

// step executes mutations as one block, in bundles of their own, after so long, and compares what comes of it. If an
// epoch ends first, that is a block more.
func (w *world) step(after time.Duration, muts ...scope.Mutation) {
	w.t.Helper()
	w.now = w.now.Add(after)
	var bundles []*scope.CheckedBundle
	if len(muts) > 0 {
		c, err := scope.SignReserving(w.reserve, w.author, w.g.Policy.Limits, muts...)
		must(w.t, err)
		bundles = append(bundles, c)
	}
	for !w.block(scope.Evidence{}, bundles...) {
	}
}

// block executes bundles as one block, or the end of an epoch in their place, which it reports.
func (w *world) block(evidence scope.Evidence, bundles ...*scope.CheckedBundle) (full bool) {
	w.t.Helper()
	before, e := w.state.Head(), w.epoch()
	view := before.View + 1
	if before.Epoch != e.Number {
		view = 1
	}
	h, full, err := w.state.Claim(scope.Header{Epoch: e.Number, View: view, Time: w.now})
	must(w.t, err)
	if !full {
		bundles, evidence = nil, scope.Evidence{}
	}
	b := scope.NewBlock(h, bundles, evidence)
	if w.blocks != nil {
		w.blocks[h.Height] = b
	}
	if w.added != nil {
		w.added(b)
	}
	w.last = func() scope.Finality { return w.finality(e, h) }
	res, err := w.state.Execute(b)
	must(w.t, err)
	w.store.Apply(res.Ops...)
	w.open()
	if res.Next != nil {
		w.hands = append(w.hands, scope.Handover{Final: w.finality(e, h), Terms: res.Terms})
	}
	want, differ := w.model.Apply(b, w.told(e, before))
	if len(differ) > 0 {
		w.t.Fatalf("%q block %d: %s", w.g.Prefix(), h.Height, differ[0])
	}
	for i := range want {
		if !model.Same(res.Outcomes[i], want[i]) {
			w.t.Fatalf("mutation %d\n got %+v\nwant %+v", i, res.Outcomes[i], want[i])
		}
	}
	d := append(w.model.At(h.Height).CompareHead(w.state.Head()), w.model.At(h.Height).CompareSince(w.state, before.Height)...)
	if len(d) > 0 {
		w.t.Fatalf("%q block %d: %s", w.g.Prefix(), h.Height, d[0])
	}
	return full
}

// finality is what the anchors sign of a block.
func (w *world) finality(e *scope.Epoch, h scope.Header) scope.Finality {
	c := quorum.Certificate{Subject: quorum.Subject{Kind: quorum.Finalize, View: h.View, Block: h.Hash()}}
	for s := range e.Roster.Weights.All() {
		b := votes.Ballot{Format: votes.Format, Domain: e.Domain(), Subject: c.Subject, Anchor: s.Anchor}
		for _, k := range w.keys {
			if k.Public().ID() == s.Anchor {
				c.Signatures = append(c.Signatures, quorum.Signature{Anchor: s.Anchor, Bytes: k.Sign(votes.ContextBallot, b.SigningBytes())})
			}
		}
	}
	return scope.Finality{Header: h, Certificate: c}
}

// epoch is that of the state.
func (w *world) epoch() *scope.Epoch {
	w.t.Helper()
	e, err := w.state.Epoch()
	must(w.t, err)
	return e
}

// told is what the state says of the block of an epoch that was executed on the state with a head.
func (w *world) told(e *scope.Epoch, before scope.Head) model.Told {
	w.t.Helper()
	told := model.Told{Epoch: e, Closes: w.state.IsClosed(), Below: func(id aweigh.ScopeID) *model.Model { return w.below[id] }, First: before.LineageSize, Outcome: func(bundle, mutation aweigh.Hash) (scope.Receipt, bool) {
		r, ok, err := w.state.OutcomeIn(bundle, mutation)
		must(w.t, err)
		return r, ok
	}}
	if now, err := w.state.Epoch(); err == nil && now.Root == w.state.Head().Block {
		told.Quiet = now.Quiet
	}
	told.Impact = func(id votes.MotionID) *scope.Impact {
		m, _, err := w.state.Motion(id)
		must(w.t, err)
		if m == nil {
			return nil
		}
		return m.Impact
	}
	for i := before.LineageSize; i < w.state.Head().LineageSize; i++ {
		e, _, err := w.state.Lineage().Entry(i)
		must(w.t, err)
		told.Log = append(told.Log, e)
	}
	return told
}

// whole compares all that the state shows.
func (w *world) whole(pick func(int) int) {
	w.t.Helper()
	if d := w.model.At(w.model.Height()).Compare(w.state, pick); len(d) > 0 {
		w.t.Fatalf("after block %d: %s", w.model.Height(), d[0])
	}
}
