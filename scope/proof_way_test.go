package scope

import (
	"errors"
	"slices"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/quorum"
)

// final is the finality of the realm's newest block, by all its anchors.
func (r *realm) final() Finality {
	r.t.Helper()
	return final(r, r.past[len(r.past)-1])
}

// below is the realm of a child, in whose blocks the parent's anchors sign.
func (r *realm) below(g Genesis) *realm {
	r.t.Helper()
	c := &realm{world: r.child(g), keys: r.keys, names: r.names, away: r.away}
	c.now = r.now
	return c
}

// proveBelow makes proofs of a key that a grandchild wrote, and of one that it took
// over, with the way there.
func proveBelow(t testing.TB) (r *realm, wrote, took *KeyProof) {
	t.Helper()
	r = newRealm(t, nil)
	r.one(r.ops(put("/a/b/old", "before"), put("/a/x", "y")))
	mid := r.delegate(r.decision("/a/", quorum.BFT, "a", "b", "c", "d")).Founded[0]
	m := r.below(mid)
	low := m.delegate(m.decision("/a/b/", quorum.BFT, "a", "b", "c", "d")).Founded[0]
	l := m.below(low)
	b := l.next(nil, nil, l.world.sign(l.put("/a/b/new", "after"))...)
	l.add(b)
	written := Finality{Header: b.Header, Certificate: l.certificate(l.epoch(), b.Header)}
	for _, x := range []*realm{r, m, l} {
		x.add(x.next(nil, nil))
		x.add(x.next(nil, nil))
	}
	ancestry := func(x *realm, above []Step) Ancestry {
		return Ancestry{Genesis: x.g, Handovers: x.hands, Head: x.final(), Above: above}
	}
	first, err := NewStep(ancestry(r, nil), r.state, mid.Descent)
	if err != nil {
		t.Fatal(err)
	}
	both, err := NewStep(ancestry(m, first), m.state, low.Descent)
	if err != nil {
		t.Fatal(err)
	}
	a := ancestry(l, both)
	if wrote, err = NewKeyProof(a, l.state, []byte("/a/b/new"), b, written, nil); err != nil {
		t.Fatal(err)
	}
	if took, err = NewKeyProof(a, l.state, []byte("/a/b/old"), nil, Finality{}, nil); err != nil {
		t.Fatal(err)
	}
	return r, wrote, took
}

// TestProofsLeadFromTheRoot: the network's identity alone proves what a scope two
// levels below wrote, or took over; and no proof of a false statement verifies.
func TestProofsLeadFromTheRoot(t *testing.T) {
	r, wrote, took := proveBelow(t)
	network := r.g.Hash()
	if rep, err := wrote.Verify(network); err != nil || string(rep.Kv.Value) != "after" || rep.Taken != nil {
		t.Fatalf("%+v, %v", rep, err)
	}
	if rep, err := took.Verify(network); err != nil || string(rep.Kv.Value) != "before" || rep.Taken == nil || string(rep.Taken.Prefix) != "/a/b/" {
		t.Fatalf("%+v, %v", rep, err)
	}
	visits, err := wrote.Visits(network)
	if err != nil || len(visits) != 3 || visits[0].Scope != network || string(visits[1].Prefix) != "/a/" || string(visits[2].Prefix) != "/a/b/" ||
		visits[2].Scope != wrote.Ancestry.Genesis.Hash() {
		t.Errorf("it leads through %+v, %v", visits, err)
	}
	for i := range visits {
		if v := &visits[i]; 3*v.Head.Weight <= v.Head.Total || v.Roster.IsZero() {
			t.Errorf("%q: %+v", v.Prefix, v)
		}
	}
	if _, err := wrote.Visits(wrote.Ancestry.Genesis.Hash()); !errors.Is(err, ErrProof) {
		t.Errorf("in another network: %v", err)
	}
	other, _ := testGenesis(t, 3)
	for name, spoil := range map[string]func(p *KeyProof){
		"of another network":             func(p *KeyProof) { p.Ancestry.Genesis.Descent.Network[0] ^= 1 },
		"without a way":                  func(p *KeyProof) { p.Ancestry.Above = nil },
		"with half of the way":           func(p *KeyProof) { p.Ancestry.Above = p.Ancestry.Above[1:] },
		"with the other half":            func(p *KeyProof) { p.Ancestry.Above = p.Ancestry.Above[:1] },
		"from another root":              func(p *KeyProof) { p.Ancestry.Above[0].Genesis = other },
		"to other anchors":               func(p *KeyProof) { p.Ancestry.Genesis.Anchors = other.Anchors },
		"to another policy":              func(p *KeyProof) { p.Ancestry.Genesis.Policy.EpochBlocks++ },
		"of another prefix":              func(p *KeyProof) { p.Ancestry.Genesis.Descent.Prefix = []byte("/a/c/") },
		"that hands over something else": func(p *KeyProof) { p.Ancestry.Genesis.Descent.Handed[0] ^= 1 },
		"of another entry":               func(p *KeyProof) { p.Ancestry.Genesis.Descent.Entry++ },
		"of a parent that did not decide": func(p *KeyProof) {
			p.Ancestry.Above[1].Head.Certificate.Signatures = p.Ancestry.Above[1].Head.Certificate.Signatures[:2]
		},
		"by a swap of steps":           func(p *KeyProof) { a := p.Ancestry.Above; a[0], a[1] = a[1], a[0] },
		"of a delegation of the child": func(p *KeyProof) { p.Ancestry.Above[1].Gave.Entry.Posterior[0] ^= 1 },
		"of a delegation elsewhere":    func(p *KeyProof) { p.Ancestry.Above[1].Gave = p.Ancestry.Above[0].Gave },
	} {
		for kind, good := range map[string]*KeyProof{"wrote": wrote, "took": took} {
			p, err := DecodeKeyProof(good.Encode())
			if err != nil {
				t.Fatal(err)
			}
			spoil(p)
			if rep, err := p.Verify(network); !errors.Is(err, ErrProof) {
				t.Errorf("%s, a proof %s: %+v, %v", kind, name, rep.Entry, err)
			}
		}
	}
	for name, spoil := range map[string]func(p *KeyProof){
		"of other content": func(p *KeyProof) { p.Kv.Value = []byte("other") },
		"with an author":   func(p *KeyProof) { p.Origin = wrote.Origin },
		"of another key":   func(p *KeyProof) { p.Kv.Key = []byte("/a/b/other") },
		"with a block":     func(p *KeyProof) { p.Origin.Final.Header.Time = 1 },
	} {
		p, err := DecodeKeyProof(took.Encode())
		if err != nil {
			t.Fatal(err)
		}
		spoil(p)
		if _, err := p.Verify(network); !errors.Is(err, ErrProof) {
			t.Errorf("what was taken over, %s: %v", name, err)
		}
	}
}

// TestRootGenesisTakesNoWay: a scope that claims to be the root and brings a way, and a
// root scope's genesis under which another network is meant.
func TestRootGenesisTakesNoWay(t *testing.T) {
	r, wrote, _ := proveBelow(t)
	g := r.g
	if err := g.descends(g.Hash(), wrote.Ancestry.Above); err == nil {
		t.Error("a root with a way to it")
	}
	if err := g.descends(aweigh.Hash{1}, nil); err == nil {
		t.Error("another network's root")
	}
	var again []Step
	if err := canon.Decode(canon.Encode(wrote.Ancestry.Above), &again); err != nil || len(again) != 2 {
		t.Errorf("a way of %d steps: %v", len(again), err)
	}
	long := slices.Repeat(again, 200)
	if err := wrote.Ancestry.Genesis.descends(g.Hash(), long); err == nil {
		t.Error("a way that goes in circles")
	}
}

// TestProofsDependOnNoPredicate: a verifier without the language of predicates comes to the same verdict. No node
// starts from a genesis with a predicate that is none, so the identity of no network stands for one.
func TestProofsDependOnNoPredicate(t *testing.T) {
	g, _ := testGenesis(t, 4)
	g.Policy.Actions = action.Table{{Verb: "pay", Class: action.Write, When: "no predicate ("}}
	if _, err := g.Check(); !errors.Is(err, action.ErrPredicate) {
		t.Errorf("a genesis with a predicate that is none: %v", err)
	}
	if err := g.Policy.Check(); !errors.Is(err, action.ErrPredicate) {
		t.Errorf("a policy with a predicate that is none: %v", err)
	}
	if err := g.descends(g.Hash(), nil); err != nil {
		t.Errorf("its proofs: %v", err)
	}
}
