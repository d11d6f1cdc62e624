package scope

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// notices is a realm that takes back what it delegates after an hour, and a scope of its
// own for /b/, of the anchors a and b.
func notices(t *testing.T) (above, below *realm) {
	t.Helper()
	above = newRealm(t, func(p *Policy) { p.Children.Notice = time.Hour })
	above.one(above.put("/b/1", "one"))
	res := above.delegate(above.decision("/b/", quorum.BFT, "a", "b"))
	if len(res.Founded) != 1 || res.Founded[0].Notice() != time.Hour {
		t.Fatalf("founded %v", res.Founded)
	}
	below = &realm{world: above.child(res.Founded[0]), keys: above.keys, names: above.names, away: above.away}
	return above, below
}

// revokes decides that others shall govern a scope, and gives the order.
func (r *realm) revokes(d Decision) *Revocation {
	r.t.Helper()
	d.Kind = Revoke
	r.delegate(d)
	all, err := r.state.Delegations()
	if err != nil || len(all) != 1 || all[0].Revocation == nil {
		r.t.Fatalf("delegations %+v, %v", all, err)
	}
	return all[0].Revocation
}

// obeying is a block that obeys an order.
func (r *realm) obeying(order *Revocation) *Block {
	r.t.Helper()
	b := r.next(nil, nil)
	return NewBlock(b.Header, nil, Evidence{Revocation: order})
}

// TestRevocationGivesAnotherGovernment follows one through: ordered above, obeyed below
// after the notice, with keys, identities and history as they were.
func TestRevocationGivesAnotherGovernment(t *testing.T) {
	above, c := notices(t)
	c.one(c.put("/b/2", "two"))
	before := c.live()
	d := above.decision("/b/", quorum.BFT, "b", "c", "d")
	d.Child.Policy.Limits.Rate = 77
	order := above.revokes(d)
	if order.Height != above.state.Height() || order.Time != above.now {
		t.Errorf("ordered %+v at height %d", order, above.state.Height())
	}
	e, _, err := above.state.Lineage().Entry(order.Entry)
	if err != nil || e.Class != lineage.Revoked || e.Posterior != order.Hash() || string(e.Key) != "/b/" {
		t.Errorf("the lineage above tells %+v, %v", e, err)
	}

	if from, awaits, err := c.state.Awaits(order); err != nil || !awaits || from != order.Time.Add(time.Hour) {
		t.Fatalf("it is awaited %v from %d on, %v", awaits, from, err)
	}
	if err := c.state.CheckRevocation(c.obeying(order), order); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "notice") {
		t.Errorf("before the notice is over: %v", err)
	}
	c.now = order.Time.Add(time.Hour)
	c.delegateNone()
	b := c.obeying(order)
	if err := c.state.CheckRevocation(b, order); err != nil {
		t.Fatalf("check: %v", err)
	}
	other := &Revocation{Child: *above.decision("/b/", quorum.BFT, "a").Child, Height: order.Height, Time: order.Time, Entry: order.Entry}
	if err := c.state.CheckRevocation(b, nil); !errors.Is(err, ErrUnheard) {
		t.Errorf("where none is known: %v", err)
	}
	if err := c.state.CheckRevocation(b, other); !errors.Is(err, ErrInvalid) || errors.Is(err, ErrSuperseded) {
		t.Errorf("where another is known: %v", err)
	}
	newer := *other
	newer.Entry++
	if err := c.state.CheckRevocation(b, &newer); !errors.Is(err, ErrInvalid) || !errors.Is(err, ErrSuperseded) {
		t.Errorf("where a newer one is known: %v", err)
	}
	if other.Entry--; !errors.Is(c.state.CheckRevocation(b, other), ErrUnheard) {
		t.Errorf("where an older one is known: %v", err)
	}
	c.add(b)
	if due, err := c.state.Due(c.now); err != nil || !due {
		t.Fatalf("the epoch ends: %v, %v", due, err)
	}
	res := c.turn()
	e2 := c.epoch()
	if got := rosterNames(e2.Roster); got != "b c d" || e2.Policy.Limits.Rate != 77 || e2.Roster.Weights.Len() != 3 {
		t.Errorf("epoch %d has anchors %s and a rate of %d", e2.Number, got, e2.Policy.Limits.Rate)
	}
	if len(res.Trust) == 0 {
		t.Error("no change of trust is explained")
	}
	first, err := c.g.Epoch()
	if err != nil {
		t.Fatal(err)
	}
	if last, err := first.followAll(c.hands); err != nil || last.Domain() != e2.Domain() {
		t.Errorf("handovers do not lead from the genesis to the epoch: %v", err)
	}
	for key, v := range before {
		if got := c.live()[key]; got.UID != v.UID || string(got.Value) != string(v.Value) || got.ModRevision != v.ModRevision {
			t.Errorf("%s was %+v, is %+v", key, v, got)
		}
	}
	c.one(c.put("/b/3", "three"))
	if err := c.state.CheckRevocation(c.obeying(order), order); !errors.Is(err, ErrInvalid) {
		t.Errorf("the same once more: %v", err)
	}
	if _, awaits, err := c.state.Awaits(order); awaits || err != nil {
		t.Errorf("it is awaited still, %v", err)
	}

	again := above.revokes(above.decision("/b/", quorum.Crash, "a"))
	c.now = again.Time.Add(2 * time.Hour)
	if b = c.obeying(again); c.state.CheckRevocation(b, again) != nil {
		t.Fatalf("a later order is not obeyed")
	}
	c.add(b)
	c.turn()
	if got := rosterNames(c.epoch().Roster); got != "a" || c.epoch().Policy.Rules.Mode != quorum.Crash {
		t.Errorf("after the second order: %s", got)
	}
	if err := c.state.CheckRevocation(c.obeying(order), order); !errors.Is(err, ErrInvalid) {
		t.Errorf("the first order after the second: %v", err)
	}
}

// delegateNone leaves something of the old government open and decided when it ends.
func (r *realm) delegateNone() {
	r.t.Helper()
	p := r.epoch().Policy
	p.Limits.Rate = 5
	r.approve("a", Decision{Kind: SetPolicy, Policy: &p})
}

func rosterNames(r Roster) string {
	var names []string
	for _, a := range r.Anchors {
		names = append(names, a.Name)
	}
	return strings.Join(names, " ")
}

// TestWhatIsForGoodIsNotRevoked tries it above and below: neither takes it.
func TestWhatIsForGoodIsNotRevoked(t *testing.T) {
	r := newRealm(t, nil)
	g := r.delegate(r.decision("/b/", quorum.BFT, "a", "b")).Founded[0]
	c := &realm{world: r.child(g), keys: r.keys, names: r.names, away: r.away}
	d := r.decision("/b/", quorum.BFT, "c", "d")
	d.Kind = Revoke
	if out := r.approve("a", d); out.Code != Failed || !strings.Contains(out.Reason, "for good") {
		t.Errorf("%s %q", out.Code, out.Reason)
	}
	p := r.epoch().Policy
	p.Children.Notice = time.Second
	r.delegate(Decision{Kind: SetPolicy, Policy: &p})
	if out := r.approve("a", d); out.Code != Failed || !strings.Contains(out.Reason, "for good") {
		t.Errorf("under a later policy: %s %q", out.Code, out.Reason)
	}
	order := &Revocation{Child: *d.Child, Height: 1, Time: r.now.Add(-time.Hour), Entry: 3}
	if err := c.state.CheckRevocation(c.obeying(order), order); !errors.Is(err, ErrInvalid) {
		t.Errorf("below: %v", err)
	}
	if _, awaits, err := c.state.Awaits(order); awaits || err != nil {
		t.Errorf("it is awaited below, %v", err)
	}
}

// TestRevocationsThatCannotBe are refused where they are proposed.
func TestRevocationsThatCannotBe(t *testing.T) {
	above, c := notices(t)
	fails := func(what string, d Decision, want string) {
		t.Helper()
		d.Kind = Revoke
		if out := above.approve("a", d); out.Code != Failed || !strings.Contains(out.Reason, want) {
			t.Errorf("%s: %s %q", what, out.Code, out.Reason)
		}
	}
	fails("no scope", above.decision("/c/", quorum.BFT, "a"), "no scope")
	fails("a part of one", above.decision("/b/1/", quorum.BFT, "a"), "no scope")

	bound := newRealm(t, func(p *Policy) { p.Children.Notice, p.Children.BFT = time.Hour, true })
	bound.delegate(bound.decision("/b/", quorum.BFT, "a", "b"))
	d := bound.decision("/b/", quorum.Crash, "a", "b")
	d.Kind = Revoke
	if out := bound.approve("a", d); out.Code != Failed || !strings.Contains(out.Reason, "demands more") {
		t.Errorf("a policy that was ruled out when it was founded: %s %q", out.Code, out.Reason)
	}

	order := above.revokes(above.decision("/b/", quorum.BFT, "c", "d"))
	other := *order
	other.Child.Prefix = []byte("/c/")
	other.Time = c.now.Add(-2 * time.Hour)
	if err := c.state.CheckRevocation(c.obeying(&other), &other); !errors.Is(err, ErrInvalid) {
		t.Errorf("one about another scope: %v", err)
	}
	if e := (&Decision{Kind: Yield, Child: &order.Child}).Check(); e == nil {
		t.Error("a scope can be told to yield by its own anchors")
	}
}

// TestImpossibleOrdersChangeNothing: all anchors of a scope lie, and make a block final that obeys an
// order that no honest anchor votes for. A node that executes it goes on under the present government.
func TestImpossibleOrdersChangeNothing(t *testing.T) {
	above, c := notices(t)
	order := above.revokes(above.decision("/b/", quorum.BFT, "c", "d"))
	for what, bend := range map[string]func(*Revocation){
		"of another scope":           func(r *Revocation) { r.Child.Prefix = []byte("/c/") },
		"with a policy that is none": func(r *Revocation) { r.Child.Policy.Limits.Anchors = -1 },
		"for nobody":                 func(r *Revocation) { r.Child.Anchors = nil },
		"for one anchor twice":       func(r *Revocation) { r.Child.Anchors = append(r.Child.Anchors[:1:1], r.Child.Anchors[0]) },
		"before the notice is over":  func(r *Revocation) { r.Time = c.now.Add(-time.Minute) },
		"of the end of time":         func(r *Revocation) { r.Time = 1<<63 - 1 },
		"of before all time":         func(r *Revocation) { r.Time = -1 << 63 },
		"of the last entry":          func(r *Revocation) { r.Entry = 1<<63 - 1 },
		"of no entry":                func(r *Revocation) { r.Entry = -1 },
		"too long":                   func(r *Revocation) { r.Child.Name = strings.Repeat("x", maxRevocation) },
	} {
		c = &realm{world: above.child(c.g), keys: above.keys, names: above.names, away: above.away}
		c.world.r = kv.NewOverlay(c.world.r)
		c.world.flat = c.world.r.(*kv.Overlay)
		c.open()
		c.now = order.Time.Add(2 * time.Hour)
		r := *order
		bend(&r)
		b := c.obeying(&r)
		if err := c.state.CheckRevocation(b, &r); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
		c.add(b)
		if due, err := c.state.Due(c.now); err != nil || due || c.state.Head().Obeyed != 0 {
			t.Errorf("%s: the epoch ends: %v, obeyed %d, %v", what, due, c.state.Head().Obeyed, err)
		}
	}
}

// TestFormerGovernmentsDecideNothing: what the anchors of before had proposed among themselves, and
// decided already, is void when others govern, though those others have no vote on it.
func TestFormerGovernmentsDecideNothing(t *testing.T) {
	above, c := notices(t)
	d := above.decision("/b/", quorum.BFT, "c", "d")
	d.Child.Policy = c.epoch().Policy
	order := above.revokes(d)
	c.now = order.Time.Add(time.Hour)
	held, err := Sign(c.names["a"], c.g.Policy.Limits, c.mutation(Govern, above.decision("/b/1", quorum.BFT, "a")))
	if err != nil {
		t.Fatal(err)
	}
	if out := c.add(c.next(nil, nil, held)).Outcomes[0]; out.Code != Applied {
		t.Fatalf("%s %s", out.Code, out.Reason)
	}
	for _, name := range []string{"a", "b"} { // and one that is carried
		c.approve(name, above.decision("/b/2", quorum.BFT, "b"))
	}
	if due, err := c.state.Due(c.now); err != nil || !due {
		t.Fatalf("nothing was decided: %v", err)
	}
	first := c.turn()
	if len(first.Founded) != 1 {
		t.Fatalf("before the order is obeyed, %d scopes were founded", len(first.Founded))
	}
	c.add(c.obeying(order))
	if res := c.turn(); len(res.Founded) > 0 || rosterNames(c.epoch().Roster) != "c d" {
		t.Fatalf("governed by %s, founded %v", rosterNames(c.epoch().Roster), res.Founded)
	}
	id := votes.MotionID(held.Mutations()[0].ID)
	v, err := votes.SignMotionBallot(c.names["b"].Signer(), votes.MotionVote{
		Network: c.state.Head().Network, Scope: c.state.Head().Scope, Motion: id, Choice: votes.Approve,
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	b := NewBlock(c.next(nil, nil).Header, nil, Evidence{Ballots: [][]byte{v.Encode()}})
	if err := c.state.CheckBallots(b, func(votes.MotionBallot) bool { return false }); err != nil {
		t.Fatalf("ballots: %v", err)
	}
	c.add(b)
	_, end, err := c.state.Motion(id)
	if err != nil || end == nil || end.Fate != Void {
		t.Errorf("the motion of the former government: %v, %v", end, err)
	}
	if res := c.turn(); len(res.Founded) > 0 {
		t.Errorf("those who governed before founded %v", res.Founded)
	}
}
