package scope

import (
	"errors"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

// certify makes the finalization of a block by all anchors.
func certify(t *testing.T, g Genesis, h Header) quorum.Certificate {
	t.Helper()
	k, err := g.Keyring()
	if err != nil {
		t.Fatal(err)
	}
	_, keys := testGenesis(t, len(g.Anchors))
	c := quorum.Certificate{Subject: quorum.Subject{Kind: quorum.Finalize, View: h.View, Block: h.Hash()}}
	for _, key := range keys {
		b, _, err := openGuard(t, key, k.Domain()).Sign(c.Subject)
		if err != nil {
			t.Fatal(err)
		}
		c.Signatures = append(c.Signatures, b.Vote().Signature)
	}
	return c
}

func openGuard(t *testing.T, key votes.PrivateKey, d votes.Domain) *votes.Guard {
	t.Helper()
	g, err := votes.OpenGuard(key, d, kv.NewOverlay(nothing{}))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// history is a world with some blocks, of which it keeps all.
func history(t *testing.T) (*world, []*Block) {
	w := newWorld(t)
	var blocks []*Block
	add := func(muts ...Mutation) {
		w.now = w.now.Add(1e9)
		b := w.block(w.sign(muts...))
		w.execute(b)
		blocks = append(blocks, b)
	}
	add(w.put("a", "1"), w.put("b", "2"), w.put("c", "3"))
	add(w.put("b", "4"), w.ops(del("c", "")))
	add(w.put("d", "5"), w.mutation(Lease, LeaseRequest{Kind: LeaseGrant, IDs: []int64{0x2a}}), w.ops(leased("e", "6", 0x2a)))
	add()
	w.now = w.now.Add(1e9)
	add(w.put("f", "7")) // the lease expires
	add()
	return w, blocks
}

func prove(t *testing.T, w *world, blocks []*Block, key string, origin int) *KeyProof {
	t.Helper()
	tip := blocks[len(blocks)-1].Header
	final := Finality{Header: blocks[origin].Header, Certificate: certify(t, w.g, tip)}
	for _, b := range blocks[origin+1:] {
		final.Descendants = append(final.Descendants, b.Header)
	}
	to := Ancestry{Genesis: w.g, Head: Finality{Header: tip, Certificate: certify(t, w.g, tip)}}
	p, err := NewKeyProof(to, w.state, []byte(key), blocks[origin], final, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestProofConvincesWhoKnowsOnlyTheNetwork(t *testing.T) {
	w, blocks := history(t)
	for _, c := range []struct {
		key    string
		origin int
		class  lineage.Class
		value  string
		reason string
	}{{"a", 0, lineage.Insert, "1", ""}, {"b", 1, lineage.Update, "4", ""}, {"c", 1, lineage.Delete, "", ""}, {"d", 2, lineage.Insert, "5", ""}, {"e", 4, lineage.Delete, "", "lease 2a expired"}} {
		p, err := DecodeKeyProof(prove(t, w, blocks, c.key, c.origin).Encode())
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Verify(w.g.Hash())
		if err != nil {
			t.Fatalf("%s: %v", c.key, err)
		}
		author := w.author.Public()
		if c.reason != "" {
			author = votes.PublicKey{}
		}
		if r.Entry.Class != c.class || string(r.Entry.Key) != c.key || r.Entry.Reason != c.reason || r.Author.String() != author.String() ||
			len(r.Origin.Signers) != 4 || r.Origin.Weight != r.Origin.Total || r.Head.Height != 6 {
			t.Fatalf("%s: report %+v", c.key, r)
		}
		if (r.Kv == nil) != (c.class == lineage.Delete) || r.Kv != nil && string(r.Kv.Value) != c.value {
			t.Fatalf("%s: content %+v", c.key, r.Kv)
		}
		if _, err := p.Verify(aweigh.Sum([]byte("other"))); !errors.Is(err, ErrProof) {
			t.Fatalf("another network: %v", err)
		}
	}
}

// TestProofBearsNoChange flips bits in every byte of a proof.
func TestProofBearsNoChange(t *testing.T) {
	testshort.Skip(t)
	w, blocks := history(t)
	for _, raw := range [][]byte{prove(t, w, blocks, "b", 1).Encode(), prove(t, w, blocks, "e", 4).Encode()} {
		for i := range raw {
			bent := append([]byte(nil), raw...)
			bent[i] ^= 1 << (i % 8)
			p, err := DecodeKeyProof(bent)
			if err != nil {
				continue
			}
			if _, err := p.Verify(w.g.Hash()); !errors.Is(err, ErrProof) {
				t.Fatalf("byte %d of %d changed from %#x to %#x: %v", i, len(raw), raw[i], bent[i], err)
			}
		}
	}
}

// TestProofBearsNoExchange puts true parts of other proofs into one.
func TestProofBearsNoExchange(t *testing.T) {
	w, blocks := history(t)
	other, later := prove(t, w, blocks, "a", 0), prove(t, w, blocks, "d", 2)
	for name, bend := range map[string]func(p *KeyProof){ // order-free: each is checked alone
		"entry":    func(p *KeyProof) { p.Change.Entry = other.Change.Entry },
		"included": func(p *KeyProof) { p.Change = other.Change },
		"content":  func(p *KeyProof) { p.Kv = other.Kv },
		"none":     func(p *KeyProof) { p.Kv = nil },
		"final":    func(p *KeyProof) { p.Origin.Final = other.Origin.Final },
		"mutation": func(p *KeyProof) { // of the same bundle, with all that belongs to it
			b := blocks[1]
			q, err := originOf(b.Bundles[0].Mutations()[1].ID, b, p.Origin.Final)
			if err != nil {
				t.Fatal(err)
			}
			p.Origin = q
		},
		"origin": func(p *KeyProof) { p.Origin = later.Origin },
	} {
		p := prove(t, w, blocks, "b", 1)
		bend(p)
		if _, err := p.Verify(w.g.Hash()); !errors.Is(err, ErrProof) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestChangesWithoutMutationHaveNoAuthor: a deletion by a lease's end cannot be
// presented as an author's.
func TestChangesWithoutMutationHaveNoAuthor(t *testing.T) {
	w, blocks := history(t)
	somebodys := prove(t, w, blocks, "f", 4)              // in the same block
	for name, bend := range map[string]func(p *KeyProof){ // order-free: each is checked alone
		"mutation": func(p *KeyProof) { p.Origin.Mutation = somebodys.Origin.Mutation },
		"author":   func(p *KeyProof) { p.Origin.Author = somebodys.Origin.Author },
		"bundle":   func(p *KeyProof) { p.Origin.Bundle = somebodys.Origin.Bundle },
		"signed":   func(p *KeyProof) { p.Origin.Signed = somebodys.Origin.Signed },
		"place":    func(p *KeyProof) { p.Origin.Mutations = somebodys.Origin.Mutations },
		"origin":   func(p *KeyProof) { p.Origin = prove(t, w, blocks, "d", 2).Origin },
	} {
		p := prove(t, w, blocks, "e", 4)
		bend(p)
		if _, err := p.Verify(w.g.Hash()); !errors.Is(err, ErrProof) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFinalityNeedsTheChainAndTheWeight(t *testing.T) {
	w, blocks := history(t)
	k, err := w.g.Keyring()
	if err != nil {
		t.Fatal(err)
	}
	good := func() Finality {
		return Finality{Header: blocks[0].Header, Descendants: []Header{blocks[1].Header, blocks[2].Header},
			Certificate: certify(t, w.g, blocks[2].Header)}
	}
	if err := good().Check(k); err != nil {
		t.Fatal(err)
	}
	for name, bend := range map[string]func(f *Finality){ // order-free: each is checked alone
		"a gap":           func(f *Finality) { f.Descendants = f.Descendants[1:] },
		"not final":       func(f *Finality) { f.Descendants = nil },
		"another block":   func(f *Finality) { f.Header.Time++ },
		"another network": func(f *Finality) { f.Header.Network[0]++ },
		"too few":         func(f *Finality) { f.Certificate.Signatures = f.Certificate.Signatures[:2] },
		"forged":          func(f *Finality) { f.Certificate.Signatures[0].Bytes[3]++ },
		"notarized only":  func(f *Finality) { f.Certificate.Subject.Kind = quorum.Notarize },
		"too far":         func(f *Finality) { f.Descendants = make([]Header, MaxDescendants+1) },
	} {
		f := good()
		bend(&f)
		if err := f.Check(k); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// equivocate signs two blocks of one view.
func equivocate(t *testing.T, g Genesis, key votes.PrivateKey) Proof {
	t.Helper()
	k, err := g.Keyring()
	if err != nil {
		t.Fatal(err)
	}
	var ballots [2]votes.Ballot
	for i := range ballots {
		s := quorum.Subject{Kind: quorum.Notarize, View: 3, Block: aweigh.Sum([]byte{byte(i)})}
		if ballots[i], _, err = openGuard(t, key, k.Domain()).Sign(s); err != nil {
			t.Fatal(err)
		}
	}
	p, err := votes.NewEquivocation(ballots[0], ballots[1])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestProofOfFaultReachesTheLedger(t *testing.T) {
	w := newWorld(t)
	_, keys := testGenesis(t, 4)
	proof := equivocate(t, w.g, keys[2])
	k, err := w.g.Keyring()
	if err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(1e9)
	b := w.block(nil, proof)
	if err := b.CheckProofs(k, new(Epoch)); err != nil {
		t.Fatal(err)
	}
	res := w.execute(b)
	if len(res.Trust) != 1 || res.Trust[0].After != 0 || res.Trust[0].Evidence.Kind != trust.Equivocated {
		t.Fatalf("changes %+v", res.Trust)
	}
	ledger, err := w.state.Ledger()
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := ledger.Standing(keys[2].Public().ID()); !ok || s.Score != 0 || !s.Barred {
		t.Fatalf("standing %+v, %v", s, ok)
	}
	if ledger.Digest() != w.state.Head().Ledger {
		t.Fatal("the head names another ledger")
	}
	decoded, err := DecodeBlock(b.Encode(), w.g.Policy.Limits, votes.Verify)
	if err != nil || decoded.Hash() != b.Hash() {
		t.Fatalf("decoding: %v", err)
	}
	bent := b.Proofs[0]
	bent.First.Signature = append([]byte(nil), bent.First.Signature...)
	bent.First.Signature[0]++
	if err := NewBlock(b.Header, nil, Evidence{Proofs: []Proof{bent}}).CheckProofs(k, new(Epoch)); !errors.Is(err, ErrInvalid) {
		t.Fatalf("a forged proof: %v", err)
	}
}

// TestProofsHoldUnderEveryName: each bind, move, followed put and unbind can be
// proven under its alias.
func TestProofsHoldUnderEveryName(t *testing.T) {
	w := newWorld(t)
	var blocks []*Block
	add := func(muts ...Mutation) {
		w.now = w.now.Add(1e9)
		b := w.block(w.sign(muts...))
		w.execute(b)
		blocks = append(blocks, b)
	}
	add(w.put("a", "1"))
	add(w.bind("a", "b"))
	add(w.put("b", "2"))
	add(w.bind("a", "d"))
	add(w.move("b", "c", 0))
	add()
	for _, c := range []struct {
		key    string
		origin int
		class  lineage.Class
		value  string
	}{
		{"a", 2, lineage.AliasFollow, "2"}, {"d", 3, lineage.AliasBind, "2"}, {"c", 4, lineage.AliasMove, "2"}, {"b", 4, lineage.AliasUnbind, ""},
	} {
		p := prove(t, w, blocks, c.key, c.origin)
		r, err := p.Verify(w.g.Hash())
		if err != nil || r.Entry.Class != c.class || (r.Kv == nil) != (c.value == "") || r.Kv != nil && string(r.Kv.Value) != c.value {
			t.Errorf("%s: %+v, %v", c.key, r, err)
		}
		if p.Kv == nil {
			p.Kv = &KeyValue{}
		} else {
			p.Kv = nil
		}
		if _, err := p.Verify(w.g.Hash()); !errors.Is(err, ErrProof) {
			t.Errorf("%s, content taken for none, or none for content: %v", c.key, err)
		}
	}
}
