package scope

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/votes"
)

func TestBundleRoundTrip(t *testing.T) {
	w := newWorld(t)
	c := w.sign(w.put("a", "1"), w.compaction(1))[0]
	again, err := CheckBundle(c.Raw(), DefaultLimits(), votes.Verify)
	if err != nil {
		t.Fatal(err)
	}
	if again.ID() != c.ID() || len(again.Mutations()) != 2 || again.ValidUntil() != w.now.Add(60e9) ||
		again.Scope() != w.g.Hash() || again.Author().ID() != w.author.Public().ID() {
		t.Fatalf("%+v became %+v", c, again)
	}
	for i, m := range again.Mutations() {
		if m.ID != ID(m.Mutation.Encode()) || m.ID != c.Mutations()[i].ID {
			t.Fatalf("mutation %d has another identity", i)
		}
	}
}

// TestBundleBearsNoChange flips a bit in every byte.
func TestBundleBearsNoChange(t *testing.T) {
	w := newWorld(t)
	raw := w.sign(w.put("a", "1"), w.put("b", "2"))[0].Raw()
	for i := range raw {
		bent := bytes.Clone(raw)
		bent[i] ^= 1 << (i % 8)
		if _, err := CheckBundle(bent, DefaultLimits(), votes.Verify); !errors.Is(err, ErrInvalid) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
	}
}

func TestBundleLimits(t *testing.T) {
	w := newWorld(t)
	lim := DefaultLimits()
	lim.MutationBytes, lim.BundleBytes, lim.BlockMutations, lim.ValueBytes = 2000, 3000, 3, 1990
	ok := w.put("a", "1")
	with := func(bend func(m *Mutation)) Mutation {
		m := w.put("a", "1")
		bend(&m)
		return m
	}
	for name, muts := range map[string][]Mutation{ // order-free: each is checked alone
		"none":               {},
		"too many":           {ok, ok, ok, ok},
		"too large":          {w.put("a", strings.Repeat("v", 1980))},
		"too large together": {w.put("a", strings.Repeat("v", 1600)), w.put("a", strings.Repeat("v", 1600))},
		"short nonce":        {with(func(m *Mutation) { m.Nonce = m.Nonce[1:] })},
		"long nonce":         {with(func(m *Mutation) { m.Nonce = make([]byte, 33) })},
		"long justification": {with(func(m *Mutation) { m.Justification = strings.Repeat("j", 1025) })},
		"not UTF-8":          {with(func(m *Mutation) { m.Justification = "\xff" })},
		"long caller":        {with(func(m *Mutation) { m.Caller = strings.Repeat("c", MaxCaller+1) })},
		"caller not UTF-8":   {with(func(m *Mutation) { m.Caller = "\xff" })},
		"caller of lines":    {with(func(m *Mutation) { m.Caller = "user:a\nb" })},
		"unknown class":      {with(func(m *Mutation) { m.Class = 9 })},
		"no content":         {with(func(m *Mutation) { m.Content = nil })},
		"two scopes":         {ok, with(func(m *Mutation) { m.Scope = aweigh.Sum() })},
		"bad transaction":    {w.put("", "1")},
	} {
		if _, err := Sign(w.author, lim, muts...); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Sign(w.author, lim, ok, w.put("b", "1")); err != nil {
		t.Error(err)
	}
	if _, err := Sign(w.author, lim, w.put("", "1")); !errors.Is(err, ErrEmptyKey) {
		t.Errorf("the reason is lost: %v", err)
	}
}

// TestBundleSpeaksForItsAuthorOnly puts a mutation of one author into a bundle
// that another signs.
func TestBundleSpeaksForItsAuthorOnly(t *testing.T) {
	w := newWorld(t)
	m := w.put("a", "1")
	m.Author = aweigh.Sum([]byte("somebody else"))
	b := Bundle{Author: w.author.Public(), Mutations: [][]byte{m.Encode()}}
	id := bundleID(b.Author.ID(), 0, []aweigh.Hash{ID(m.Encode())})
	b.Signature = w.author.Sign(votes.ContextBundle, id[:])
	if _, err := CheckBundle(canon.Encode(b), DefaultLimits(), votes.Verify); !errors.Is(err, ErrInvalid) {
		t.Fatal(err)
	}
}

func TestBlockIsWhatItsHeaderNames(t *testing.T) {
	w := newWorld(t)
	bundles := append(w.sign(w.put("a", "1"), w.put("b", "2")), w.sign(w.put("c", "3"))...)
	b := w.blockAt(bundles)
	again, err := DecodeBlock(b.Encode(), w.g.Policy.Limits, votes.Verify)
	if err != nil || again.Hash() != b.Hash() || again.Hash() != b.Header.Hash() || again.Len() != 3 {
		t.Fatalf("round trip: %v", err)
	}
	if _, err := Assemble(b.Header, bundles, Evidence{}); err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string][]*CheckedBundle{ // order-free: each is checked alone
		"missing": bundles[:1], "none": nil, "order": {bundles[1], bundles[0]}, "twice": {bundles[0], bundles[1], bundles[1]},
	} {
		if _, err := Assemble(b.Header, other, Evidence{}); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	lim := w.g.Policy.Limits
	lim.BlockMutations = 2
	if err := b.Check(lim); !errors.Is(err, ErrInvalid) {
		t.Errorf("too many mutations: %v", err)
	}
	lim = w.g.Policy.Limits
	lim.BlockBytes = len(bundles[0].Raw())
	if err := b.Check(lim); !errors.Is(err, ErrInvalid) {
		t.Errorf("too many bytes: %v", err)
	}
	if err := NewBlock(b.Header, nil, Evidence{Proofs: make([]Proof, MaxProofs+1)}).Check(w.g.Policy.Limits); !errors.Is(err, ErrInvalid) {
		t.Errorf("too many proofs: %v", err)
	}
	raw := b.Encode()
	for i := range raw {
		bent := bytes.Clone(raw)
		bent[i] ^= 1 << (i % 8)
		got, err := DecodeBlock(bent, w.g.Policy.Limits, votes.Verify)
		if err == nil && got.Hash() == b.Hash() {
			t.Fatalf("byte %d changed: the same block", i)
		}
	}
}

// A proof that a block is invalid would have to rest on what the leader signed: the header's hash. The header names
// neither the signatures of bundles nor how mutations without a reserve are bundled, so a liar could change both and
// blame the leader.
func TestHeadersNameNoSignatures(t *testing.T) {
	w := newWorld(t)
	first, second := w.put("a", "1"), w.put("b", "2")
	together := []*CheckedBundle{w.reserving(0, first, second)} // the header does name reserves
	b := w.blockAt(together)

	bundle, err := decodeBundle(together[0].Raw())
	if err != nil {
		t.Fatal(err)
	}
	bundle.Signature[0] ^= 1
	unchecked := func(votes.PublicKey, votes.Context, []byte, []byte) error { return nil }
	forged, err := CheckBundle(canon.Encode(bundle), w.g.Policy.Limits, unchecked)
	if err != nil {
		t.Fatal(err)
	}
	bent, err := Assemble(b.Header, []*CheckedBundle{forged}, Evidence{})
	if err != nil || bent.Hash() != b.Hash() {
		t.Fatalf("the header names the signature of a bundle: %v", err)
	}
	if _, err := DecodeBlock(bent.Encode(), w.g.Policy.Limits, votes.Verify); err == nil {
		t.Fatal("a bundle with a false signature was taken")
	}

	apart := []*CheckedBundle{w.reserving(0, first), w.reserving(0, second)}
	larger, err := Assemble(b.Header, apart, Evidence{})
	if err != nil || larger.Hash() != b.Hash() {
		t.Fatalf("the header names how mutations are bundled: %v", err)
	}
	lim := w.g.Policy.Limits
	lim.BlockBytes = len(together[0].Raw())
	if err := b.Check(lim); err != nil {
		t.Fatal(err)
	}
	if err := larger.Check(lim); !errors.Is(err, ErrInvalid) {
		t.Fatalf("the same mutations in two bundles are within the limit: %v", err)
	}
}

// blockAt is a block one second later.
func (w *world) blockAt(bundles []*CheckedBundle) *Block {
	w.now = w.now.Add(1e9)
	return w.block(bundles)
}

// TestBundleScope reads which scope a bundle is for, and refuses what is none.
func TestBundleScope(t *testing.T) {
	w := newWorld(t)
	raw := w.sign(w.put("/a", "1"))[0].Raw()
	if id, err := BundleScope(raw); err != nil || id != w.g.Hash() {
		t.Errorf("%s, %v", id.Short(), err)
	}
	empty := canon.Encode(Bundle{Author: w.author.Public(), Signature: make([]byte, 64)})
	bent := canon.Encode(Bundle{Mutations: [][]byte{{1}}, Author: w.author.Public(), Signature: make([]byte, 64)})
	for name, raw := range map[string][]byte{ // order-free
		"nothing": nil, "half": raw[:len(raw)/2], "without mutations": empty, "of what is no mutation": bent,
		"too long": make([]byte, MostLimits().BundleBytes+1),
	} {
		if _, err := BundleScope(raw); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
