package scope

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/votes"
)

// invents is a proof that a quorum of liars of the scope signs, of an object that there never was. The author is with
// them.
func (r *realm) invents(above *realm, author votes.PrivateKey, u aweigh.UID, to string, number int64) *TransferProof {
	r.t.Helper()
	until := r.now.Add(time.Hour)
	b, err := Sign(author, r.g.Policy.Limits, r.naming(Naming{Kind: Send, Object: u, Key: []byte("/a/x"), To: []byte(to), Until: until}))
	if err != nil {
		r.t.Fatalf("%v", err)
	}
	m := &b.Mutations()[0]
	v := KeyValue{Key: []byte("/a/x"), Value: []byte("lie"), CreateRevision: 5, ModRevision: 5, Version: 1, UID: u}
	e := lineage.Entry{
		Scope: r.g.Hash(), Class: lineage.Sent, Mutation: m.ID, Author: m.Author, Key: v.Key, Prior: v.Digest(), Posterior: sentTo([]byte(to), until, number),
	}
	r.add(r.next(nil, nil))
	a := above.ancestryBelow(r)
	h := a.Head.Header
	h.LineageSize, h.LineageRoot = 1, e.Hash()
	a.Head = Finality{Header: h, Certificate: r.certificate(r.epoch(), h)}
	of := originIn(b, 0)
	p := &TransferProof{
		Ancestry: a, Entry: Listed{Entry: e, Place: lineage.Inclusion{Size: 1}}, Kv: &v, To: []byte(to), Until: until, Number: number, Asked: of.asked(),
	}
	if err := p.Verify(above.g.Hash()); err != nil {
		r.t.Fatalf("%v", err)
	}
	return p
}

// TestLiarsSendNoImpossibleVersions: a version that no object can have would make the store corrupt, or keep all that
// the scope holds from coming home.
func TestLiarsSendNoImpossibleVersions(t *testing.T) {
	for _, number := range []int64{math.MaxInt64, math.MaxInt64 - 1, 1 << 62} {
		above, from, to := transferRealms(t, nil)
		to.one(to.put("/b/honest", "stays"))
		if out := to.carries(Carrying{Proof: *from.invents(above, from.author, aweigh.UID{9}, "/b/y", number)}); out.Code != Applied {
			t.Fatalf("%s: %s", out.Code, out.Reason)
		}
		if v, there := to.live()["/b/y"]; there {
			t.Errorf("as version %d it was received: %+v", number, v)
		}
		to.one(to.put("/b/y", "one"))
		to.one(to.put("/b/y", "two"))
		above.now = max(above.now, to.now)
		to.closes(above.folds("/b/"))
		above.now = max(above.now, to.now).Add(time.Minute)
		above.home("/b/", to.source(), 1<<20)
		if live := above.live(); string(live["/b/honest"].Value) != "stays" || string(live["/b/y"].Value) != "two" {
			t.Errorf("home came %v", live)
		}
	}
	above, from, to := transferRealms(t, nil)
	for name, spoil := range map[string]func(c *Carrying){
		"no version":  func(c *Carrying) { c.Proof.Kv.Version, c.Proof.Number = 0, 0 },
		"negative":    func(c *Carrying) { c.Proof.Number = -1 },
		"no identity": func(c *Carrying) { c.Proof.Kv.UID = aweigh.UID{} },
		"a long name": func(c *Carrying) { c.Proof.To = make([]byte, maxSentKey+1) },
		"a reason":    func(c *Carrying) { c.Proof.Entry.Entry.Reason = string(make([]byte, maxSentReason+1)) },
	} {
		c := Carrying{Proof: *from.invents(above, from.author, aweigh.UID{9}, "/b/y", 3)}
		spoil(&c)
		if _, err := checkCarrying(canon.Encode(c)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	_ = to
}

// TestLiarsSendInNoOthersName: whatever the anchors of a scope certify, another scope receives what its author signed.
func TestLiarsSendInNoOthersName(t *testing.T) {
	above, from, to := transferRealms(t, func(p *Policy) {
		p.Authors = []Author{{Name: "anchors", Who: Anchors}, {Name: "victim", Who: OneKey, Key: testKey(t, 77).Public()}}
	})
	p := from.invents(above, from.author, aweigh.UID{9}, "/b/y", 1)
	if out := to.carries(Carrying{Proof: *p}); out.Code != Applied || len(to.live()) > 0 {
		t.Fatalf("of an author without rights: %s %s, %v", out.Code, out.Reason, to.live())
	}
	victim := testKey(t, 77).Public()
	p.Entry.Entry.Author, p.Asked.Author = victim.ID(), victim
	h := &p.Ancestry.Head
	h.Header.LineageRoot = p.Entry.Entry.Hash()
	h.Certificate = from.certificate(from.epoch(), h.Header)
	if _, err := Sign(above.names["a"], to.g.Policy.Limits, to.mutation(Carry, Carrying{Proof: *p})); !errors.Is(err, ErrInvalid) {
		t.Errorf("in the name of an author that did not sign: %v", err)
	}
}

// TestIdentitiesThatLiarsSendAreNotMadeAgain: the identity of an object follows from the mutation that makes it, which
// others see before it is executed.
func TestIdentitiesThatLiarsSendAreNotMadeAgain(t *testing.T) {
	for name, order := range map[string]func(to *realm, put, carry *CheckedBundle) [][]*CheckedBundle{
		"before": func(_ *realm, put, carry *CheckedBundle) [][]*CheckedBundle {
			return [][]*CheckedBundle{{carry}, {put}}
		},
		"first of block":  func(_ *realm, put, carry *CheckedBundle) [][]*CheckedBundle { return [][]*CheckedBundle{{carry, put}} },
		"second of block": func(_ *realm, put, carry *CheckedBundle) [][]*CheckedBundle { return [][]*CheckedBundle{{put, carry}} },
		"after": func(_ *realm, put, carry *CheckedBundle) [][]*CheckedBundle {
			return [][]*CheckedBundle{{put}, {carry}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			above, from, to := transferRealms(t, nil)
			put := to.world.sign(to.put("/b/honest", "v"))[0]
			p := from.invents(above, from.author, aweigh.NewUID(put.Mutations()[0].ID, 0), "/b/y", 1)
			carry, err := Sign(above.names["a"], to.g.Policy.Limits, to.mutation(Carry, Carrying{Proof: *p}))
			if err != nil {
				t.Fatal(err)
			}
			for _, bundles := range order(to, put, carry) {
				to.add(to.next(nil, nil, bundles...))
				to.checkDigest()
			}
			live := to.live()
			if string(live["/b/honest"].Value) != "v" || live["/b/honest"].UID == live["/b/y"].UID {
				t.Errorf("there are %v", live)
			}
			to.one(to.put("/b/honest", "w"))
		})
	}
}

// TestObjectsThatWereSentKeepTheirIdentityThroughFolds: an object comes to the scope that it, or its prefix, once left,
// by the fold of another one.
func TestObjectsThatWereSentKeepTheirIdentityThroughFolds(t *testing.T) {
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprint("from above, which knows: ", known), func(t *testing.T) {
			above, _, to := transferRealms(t, nil)
			above.one(above.put("/x", "one"))
			u := above.live()["/x"].UID
			p := above.sends(above, "/x", "/b/y", above.now.Add(3*time.Hour))
			to.now = max(to.now, above.now)
			to.carries(Carrying{Proof: *p})
			done := to.decided(above, p)
			above.now = max(above.now, to.now)
			if known {
				above.carries(Carrying{Key: []byte("/x"), Proof: *done})
			}
			to.closes(above.folds("/b/"))
			above.now = max(above.now, to.now).Add(time.Minute)
			above.home("/b/", to.source(), 1<<20)
			above.checkDigest()
			if live := above.live(); live["/b/y"].UID != u || live["/x"].Version != 0 {
				t.Errorf("there are %v", live)
			}
			if all, err := above.state.Sent(9); len(all) > 0 || err != nil {
				t.Errorf("on their way are %v, %v", all, err)
			}
			above.one(above.put("/x", "free"))
			if out := above.carries(Carrying{Proof: *p}); out.Code != Failed {
				t.Errorf("decided again: %s", out.Code)
			}
		})
	}
	above, from, to := transferRealms(t, nil)
	from.one(from.put("/a/x", "one"))
	u := from.live()["/a/x"].UID
	sent := from.sends(above, "/a/x", "/b/y", from.now.Add(time.Hour))
	to.carries(Carrying{Proof: *sent})
	above.now = max(above.now, to.now)
	to.closes(above.folds("/b/"))
	above.now = max(above.now, to.now).Add(time.Minute)
	above.home("/b/", to.source(), 1<<20)
	if v := above.live()["/b/y"]; v.UID != u {
		t.Errorf("it came home as %+v, was %s", v, u)
	}
}
