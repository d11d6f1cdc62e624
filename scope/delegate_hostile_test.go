package scope

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/quorum"
)

// TestMotionsDoNothingWhereTheKeysWent: a motion to write a new key is open when
// the key's prefix is delegated. Carried after that, it must not write below it: the
// parent answers for these keys no more, and the child decides alone.
func TestMotionsDoNothingWhereTheKeysWent(t *testing.T) {
	r := newRealm(t, func(p *Policy) {
		p.Approvals = []Approval{{Matter: Changes, Prefix: []byte("/b/"), Num: 1, Den: 2, Anchors: 2, Window: time.Hour}}
	})
	w := &assembly{world: r.world}
	for _, a := range r.g.Anchors {
		w.keys = append(w.keys, r.names[a.Name])
	}
	id := w.propose(r.put("/b/new", "by the parent"))
	res := r.delegate(r.decision("/b/", quorum.BFT, "a", "b", "c", "d"))
	if len(res.Founded) != 1 {
		t.Fatal("no scope was founded")
	}
	for range 4 { // until blocks may carry something again
		r.add(r.next(nil, nil))
	}
	b := r.next(nil, nil)
	ballots := w.approve(id, 4)
	r.add(NewBlock(b.Header, b.Bundles, Evidence{Ballots: inOrder(ballots)}))
	if fate := w.fate(id); fate == "carried" {
		t.Errorf("the motion on a key that another scope decides about is %s", fate)
	}
	if v, ok := r.live()["/b/new"]; ok {
		t.Errorf("the parent holds %q = %q, which it delegated", v.Key, v.Value)
	}
}

// bribed is a network with a key below /a/, and a child that governs /b/, whose anchors
// are all bribed: their program ignores the prefix. above leads to the child.
func bribed(t *testing.T) (r *realm, g Genesis, c *realm, above []Step) {
	t.Helper()
	r = newRealm(t, nil)
	r.one(r.put("/a/secret", "true"))
	g = r.delegate(r.decision("/b/", quorum.BFT, "a", "b", "c", "d")).Founded[0]
	for range 2 {
		r.add(r.next(nil, nil))
	}
	above, err := NewStep(Ancestry{Genesis: r.g, Handovers: r.hands, Head: r.final()}, r.state, g.Descent)
	if err != nil {
		t.Fatal(err)
	}
	c = &realm{world: r.child(g), keys: r.keys, names: r.names, away: r.away}
	c.now = r.now
	c.state.head.Prefix = ""
	c.bribed = true
	return r, g, c, above
}

// final is the finality of a header by its own certificate.
func final(r *realm, h Header) Finality {
	return Finality{Header: h, Certificate: r.certificate(r.epoch(), h)}
}

// TestChildrenProveNothingOfOthersKeys: all anchors of a child that governs /b/
// are bribed. Nothing that they sign may prove anything about /a/.
func TestChildrenProveNothingOfOthersKeys(t *testing.T) {
	r, g, c, above := bribed(t)
	origin := c.next(nil, nil, c.world.sign(c.put("/a/secret", "forged"))...)
	c.add(origin)
	c.add(c.next(nil, nil))
	a := Ancestry{Genesis: g, Head: final(c, c.past[1]), Above: above}
	p, err := NewKeyProof(a, c.state, []byte("/a/secret"), origin, final(c, origin.Header), nil)
	if err != nil {
		t.Fatal(err)
	}
	if p, err = DecodeKeyProof(p.Encode()); err != nil {
		t.Fatal(err)
	}
	if rep, err := p.Verify(r.g.Hash()); err == nil {
		t.Errorf("a proof by the scope of %q shows that %q is %q", g.Prefix(), rep.Entry.Key, rep.Kv.Value)
	}
}

// TestChildrenDelegateOnlyWhatIsTheirs: the same anchors found a scope of /a/.
func TestChildrenDelegateOnlyWhatIsTheirs(t *testing.T) {
	r, g, c, above := bribed(t)
	forged := c.delegate(c.decision("/a/", quorum.Crash, "a")).Founded[0]
	for range 2 {
		c.add(c.next(nil, nil))
	}
	above, err := NewStep(Ancestry{Genesis: g, Handovers: c.hands, Head: c.final(), Above: above}, c.state, forged.Descent)
	if err != nil {
		t.Fatal(err)
	}
	if err := forged.descends(r.g.Hash(), above); err == nil {
		t.Errorf("a scope of %q descends from that of %q", forged.Prefix(), g.Prefix())
	}
}

// TestProposalsOfDelegationsShareABlocksBudget: each node that executes a proposal
// looks at all that it would hand over, so the proposals of one block together stay
// within the block's budget.
func TestProposalsOfDelegationsShareABlocksBudget(t *testing.T) {
	testshort.Skip(t)
	r := newRealm(t, nil)
	r.skip = true
	big := strings.Repeat("x", 1<<20)
	for i := range 12 {
		r.one(r.put(fmt.Sprintf("/big/%d", i), big))
	}
	var proposals []*CheckedBundle
	for i, name := range []string{"a", "b", "c", "a", "b", "c", "a", "b", "c", "a", "b", "c"} {
		d := r.decision("/big/", quorum.BFT, "a", "b", "c", "d")
		d.Child.Name = fmt.Sprint(i)
		c, err := Sign(r.names[name], r.g.Policy.Limits, r.mutation(Govern, d))
		if err != nil {
			t.Fatal(err)
		}
		proposals = append(proposals, c)
	}
	b := r.next(nil, nil, proposals...)
	lim, cost := r.g.Policy.Limits, int64(0)
	for _, c := range proposals {
		if cost += c.Cost(); c.Cost() < delegateUnits {
			t.Errorf("a proposal declares %d units", c.Cost())
		}
	}
	lim.BlockCost = cost - 1
	if err := b.Check(lim); !errors.Is(err, ErrInvalid) {
		t.Errorf("together they cost more than a block may: %v", err)
	}
	for _, out := range r.add(b).Outcomes {
		if out.Code != Applied {
			t.Errorf("%s %q", out.Code, out.Reason)
		}
	}
}
