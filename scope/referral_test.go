package scope

import (
	"errors"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/quorum"
)

// TestReferralsProveThemselves: they lead a verifier that knows the parent and its epoch to
// the delegated scope, and no change of them leads to another.
func TestReferralsProveThemselves(t *testing.T) {
	r := newRealm(t, nil)
	r.one(r.ops(put("/a/b/old", "before"), put("/c/x", "y")))
	mid := r.delegate(r.decision("/a/", quorum.BFT, "a", "b", "c", "d")).Founded[0]
	m := r.below(mid)
	m.delegate(m.decision("/a/b/", quorum.BFT, "a", "b", "c", "d"))
	r.delegate(r.decision("/c/", quorum.Crash, "a"))
	for _, x := range []*realm{r, m} {
		x.add(x.next(nil, nil))
		x.add(x.next(nil, nil))
	}
	good, err := NewReferral(r.final(), r.state, []byte("/a/b/deep/key"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := good.Check(&r.g, r.epoch())
	if err != nil || string(d.Prefix) != "/a/" || d.Child != mid.Hash() {
		t.Fatalf("it leads to %+v, %v", d, err)
	}
	if given, err := r.state.Delegations(); err != nil || len(given) != 2 || given[0].Revision != d.Revision || given[0].Height != d.Height || given[0].Child != d.Child {
		t.Errorf("%+v, where the state has %+v", d, given)
	}
	if _, err := NewReferral(r.final(), r.state, []byte("/b")); !errors.Is(err, ErrKeyNotFound) {
		t.Errorf("of a key that was not delegated: %v", err)
	}
	other, err := NewReferral(r.final(), r.state, []byte("/c/x"))
	if err != nil {
		t.Fatal(err)
	}
	deeper, err := NewReferral(m.final(), m.state, []byte("/a/b/x"))
	if err != nil {
		t.Fatal(err)
	}
	others, _ := testGenesis(t, 3)
	for name, spoil := range map[string]func(x *Referral){
		"to a root scope":                 func(x *Referral) { x.Child.Descent = nil },
		"to other anchors":                func(x *Referral) { x.Child.Anchors = others.Anchors },
		"to another policy":               func(x *Referral) { x.Child.Policy.EpochBlocks++ },
		"of another prefix":               func(x *Referral) { x.Child.Descent.Prefix = []byte("/b/") },
		"of all keys":                     func(x *Referral) { x.Child.Descent.Prefix = nil },
		"of another parent":               func(x *Referral) { x.Child.Descent.Parent[0] ^= 1 },
		"of another network":              func(x *Referral) { x.Child.Descent.Network[0] ^= 1 },
		"to a scope of the child's":       func(x *Referral) { x.Child = deeper.Child },
		"that a child gave":               func(x *Referral) { *x = deeper },
		"of another entry":                func(x *Referral) { x.Gave = other.Gave },
		"of an entry that was not made":   func(x *Referral) { x.Gave.Entry.Posterior = aweigh.Hash{1} },
		"of an entry that stands nowhere": func(x *Referral) { x.Gave.Place.Path = x.Gave.Place.Path[1:] },
		"of a block that is not final":    func(x *Referral) { x.Head.Certificate.Signatures = x.Head.Certificate.Signatures[:2] },
		"of a lineage that is not":        func(x *Referral) { x.Head.Header.LineageRoot[0] ^= 1 },
	} {
		var x Referral
		if err := canon.Decode(canon.Encode(good), &x); err != nil {
			t.Fatal(err)
		}
		spoil(&x)
		if d, err := x.Check(&r.g, r.epoch()); !errors.Is(err, ErrProof) {
			t.Errorf("%s: it leads to %q, %v", name, d.Prefix, err)
		}
	}
	if _, err := good.Check(&m.g, m.epoch()); !errors.Is(err, ErrProof) {
		t.Errorf("of another scope: %v", err)
	}
}
