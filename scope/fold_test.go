package scope

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/quorum"
)

// folds decides that a scope comes home, and gives the order.
func (r *realm) folds(prefix string) *Revocation {
	r.t.Helper()
	r.delegate(Folding([]byte(prefix)))
	all, err := r.state.Delegations()
	if err != nil {
		r.t.Fatalf("%v", err)
	}
	for _, d := range all {
		if string(d.Prefix) == prefix && d.Revocation != nil && d.Revocation.Folds() {
			return d.Revocation
		}
	}
	r.t.Fatalf("no order about %q in %+v", prefix, all)
	return nil
}

// closes ends the scope by an order.
func (r *realm) closes(order *Revocation) {
	r.t.Helper()
	r.now = max(r.now, order.Time.Add(r.g.Notice()))
	for r.add(r.next(nil, nil)).Next != nil { // the clock may end an epoch
	}
	b := r.obeying(order)
	if err := r.state.CheckRevocation(b, order); err != nil {
		r.t.Fatalf("obeying: %v", err)
	}
	r.add(b)
	r.add(r.next(nil, nil))
	if e := r.epoch(); e.Home == nil {
		r.t.Fatalf("the scope is not closed in epoch %d", e.Number)
	}
}

// source is what a node has of the closed scope.
func (r *realm) source() *HomeSource {
	return &HomeSource{State: r.state, Genesis: r.g, Handovers: func(above aweigh.Height, most int) (all []Handover, err error) {
		for i := range r.hands {
			if h := r.hands[i].Final.Header.Height; h > above && len(all) < most {
				all = append(all, r.hands[i])
			}
		}
		return all, nil
	}}
}

// homing is how far a scope has come home; nil if none is to.
func (r *realm) homing(prefix string) *Homing {
	r.t.Helper()
	all, err := r.state.Homings()
	if err != nil {
		r.t.Fatalf("%v", err)
	}
	for i := range all {
		if string(all[i].Prefix) == prefix {
			return &all[i]
		}
	}
	return nil
}

// brings takes one step of a scope that comes home, in the name of an anchor.
func (r *realm) brings(by string, b *Bringing) Outcome {
	r.t.Helper()
	m := r.mutation(Bring, b)
	c, err := SignReserving(0, r.names[by], r.g.Policy.Limits, m)
	if err != nil {
		r.t.Fatalf("signing: %v", err)
	}
	res := r.add(r.next(nil, nil, c))
	for len(res.Outcomes) == 0 { // the block had to end an epoch
		res = r.add(r.next(nil, nil, c))
	}
	return res.Outcomes[0]
}

// home brings all of a scope.
func (r *realm) home(prefix string, src *HomeSource, most int) (steps int) {
	r.t.Helper()
	for h := r.homing(prefix); h != nil; h = r.homing(prefix) {
		if h.Closed && h.Next == h.Parts {
			r.add(r.next(nil, nil)) // which ends the epoch
			continue
		}
		b, err := src.Next(h, most)
		if err != nil {
			r.t.Fatalf("step %d: %v", steps, err)
		}
		if out := r.brings("a", b); out.Code != Applied {
			r.t.Fatalf("step %d: %s %s", steps, out.Code, out.Reason)
		}
		if steps++; steps > 1000 {
			r.t.Fatalf("it does not come home")
		}
	}
	return steps
}

// TestFoldIsDelegationBackwards follows a prefix out and home again: what it holds is as it was below, and what was
// done there meanwhile with it.
func TestFoldIsDelegationBackwards(t *testing.T) {
	above := newRealm(t, func(p *Policy) { p.Children.Notice = time.Hour })
	above.one(above.put("/a/1", "one"))
	above.one(above.put("/b/1", "two"))
	above.one(above.put("/b/1", "three"))
	above.one(above.put("/b/gone", "x"))
	above.step(above.mutation(Lease, LeaseRequest{Kind: LeaseGrant, IDs: []int64{9}, TTL: 36_000}))
	above.one(above.ops(leased("/b/3", "leased", 9), put("/b/2", "moved"), leased("/a/2", "leased", 9)))
	above.one(above.naming(Naming{Kind: Bind, Key: []byte("/b/1"), To: []byte("/b/one")}))
	above.one(above.naming(Naming{Kind: Move, Key: []byte("/b/2"), To: []byte("/b/two"), Until: above.now.Add(20 * time.Hour)}))
	res := above.delegate(above.decision("/b/", quorum.BFT, "a", "b", "c", "d"))
	g := res.Founded[0]
	c := &realm{world: above.child(g), keys: above.keys, names: above.names, away: above.away}
	for _, key := range []string{"/b/x", "/b/y", "/b/z"} { // several parts
		c.one(c.put(key, strings.Repeat(key, 100_000)))
	}

	c.one(c.put("/b/new", "four"))
	c.one(c.put("/b/1", "five"))
	c.one(c.ops(del("/b/gone", "")))
	c.one(c.put("/b/brief", "y"))
	c.one(c.ops(del("/b/brief", "")))
	above.now = max(above.now, c.now)
	between := above.state.Head().Revision

	order := above.folds("/b/")
	c.closes(order)
	before := c.live()
	last := c.state.Head()
	h, full, err := c.state.Claim(Header{Epoch: c.epoch().Number, View: 1, Time: c.now.Add(time.Second)})
	if bad := c.state.CheckHeader(h); bad == nil || !strings.Contains(bad.Error(), "closed") || full || err != nil {
		t.Errorf("a closed scope takes a block: %v, full %v, %v", bad, full, err)
	}
	if failure, err := c.state.Admits(c.world.sign(c.put("/b/1", "no"))[0], c.now); err != nil || failure != ErrElsewhere {
		t.Errorf("a closed scope admits, or says %v, %v", failure, err)
	}
	fails(t, above.world, above.put("/b/1", "no"), ErrElsewhere)

	above.now = max(above.now, c.now).Add(time.Minute)
	if steps := above.home("/b/", c.source(), 1<<20); steps < 3 {
		t.Errorf("it comes home in %d steps", steps)
	}
	above.checkDigest()
	after := above.live()
	for key, v := range before {
		w := after[key]
		if w.ModRevision <= last.Revision || w.Version != v.Version+1 {
			t.Errorf("%s came home at revision %d in version %d, was %d and %d", key, w.ModRevision, w.Version, v.ModRevision, v.Version)
		}
		w.ModRevision, w.Sub, w.Version = v.ModRevision, v.Sub, v.Version
		if fmt.Sprint(w) != fmt.Sprint(v) {
			t.Errorf("%s was %+v, is %+v", key, v, w)
		}
		delete(after, key)
	}
	if len(after) != 2 {
		t.Errorf("besides, there are %v", after)
	}
	if h := above.state.Head(); h.Delegated != 0 || h.Folded != 1 {
		t.Errorf("%d prefixes are delegated, %d came home", h.Delegated, h.Folded)
	}
	if _, there := above.live()["/b/gone"]; there {
		t.Error("a key is there that was deleted below")
	}

	// Names, leases and the rest work as before.
	above.one(above.put("/b/one", "six"))
	if v := above.live()["/b/1"]; string(v.Value) != "six" || v.UID != before["/b/1"].UID {
		t.Errorf("another name of what was written holds %+v", v)
	}
	if res, ok, err := above.state.Resolve([]byte("/b/2")); err != nil || !ok || res.Moved == nil || string(res.Kv.Key) != "/b/two" {
		t.Errorf("a redirect leads to %+v, %v, %v", res, ok, err)
	}
	var versions []string
	if err := above.state.Versions(before["/b/1"].UID, func(v Version) bool {
		kv, _, err := above.state.Content(v)
		versions = append(versions, fmt.Sprintf("%d %s %s", v.Number, v.Entry.Class, kv.Value))
		return err == nil
	}); err != nil || !strings.HasPrefix(fmt.Sprint(versions), "[5 update six 4 came-home five 2 update three 1 insert two]") {
		t.Errorf("versions %q, %v", versions, err)
	}
	l, _, _ := above.state.Lease(9)
	if l.Keys != 2 {
		t.Errorf("the lease has %d keys", l.Keys)
	}
	out := above.step(above.mutation(Lease, LeaseRequest{Kind: LeaseRevoke, IDs: []int64{9}})).Outcomes[0]
	if _, there := above.live()["/b/3"]; there || out.Code != Applied {
		t.Errorf("a key that came home outlives its lease: %+v", out)
	}

	// What the scope does not know of the time between, it does not tell.
	for rev, want := range map[int64]error{between: ErrCompacted, g.Descent.Revision - 1: nil, above.state.Head().Revision: nil} { // order-free
		if _, err := above.state.Range([]byte("/b/"), []byte("/c"), Range{Revision: rev}); err != want {
			t.Errorf("as of %d: %v, want %v", rev, err, want)
		}
		if _, err := above.state.Range([]byte("/a/"), []byte("/b"), Range{Revision: rev}); err != nil {
			t.Errorf("other keys as of %d: %v", rev, err)
		}
	}
	if _, _, err := above.state.Places(between, above.state.Head().Revision, []byte("/"), []byte("0"), 100); err != ErrCompacted {
		t.Errorf("changes since the time between: %v", err)
	}
	all, err := above.state.Folds()
	if err != nil || len(all) != 1 {
		t.Fatalf("folds %v, %v", all, err)
	}
	f := all[0]
	if origins, err := above.state.Folded(); err != nil || len(origins) != 1 || origins[0].Hash() != g.Hash() || f.Child != g.Hash() || f.Went != g.Descent.Revision {
		t.Errorf("the fold is %+v, from %v, %v", f, origins, err)
	}
	if events, _, err := above.state.Events(f.Home, above.state.Head().Revision, []byte("/b/"), []byte("/c"), 100); err != nil || len(events) < len(before) {
		t.Errorf("%d changes from home on, %v", len(events), err)
	}

	above.add(above.next(nil, nil))
	var home Finality
	for i := range above.hands {
		if above.hands[i].Final.Header.Height == f.Height {
			home = above.hands[i].Final
		}
	}
	for _, key := range []string{"/b/two", "/b/x"} { // the newest change of each is that it came home
		a := Ancestry{Genesis: above.g, Handovers: above.hands, Head: above.final()}
		proof, err := NewKeyProof(a, above.state, []byte(key), nil, home, nil)
		if err != nil {
			t.Fatalf("proving %s: %v", key, err)
		}
		if r, err := proof.Verify(above.g.Hash()); err != nil || r.Entry.Class != lineage.CameHome || string(r.Kv.Key) != key {
			t.Errorf("the proof of %s shows %+v, %v", key, r.Entry, err)
		}
		proof.Change.Entry.Reason = ""
		if _, err := proof.Verify(above.g.Hash()); err == nil {
			t.Errorf("a proof of %s with another reason holds", key)
		}
	}

	// And it can go again.
	again := above.delegate(above.decision("/b/", quorum.BFT, "a", "b", "c", "d"))
	if len(again.Founded) != 1 || again.Founded[0].Hash() == g.Hash() {
		t.Fatalf("founded %v", again.Founded)
	}
	d := &realm{world: above.child(again.Founded[0]), keys: above.keys, names: above.names, away: above.away}
	if v := d.live()["/b/1"]; string(v.Value) != "six" || v.UID != before["/b/1"].UID {
		t.Errorf("below it holds %+v", v)
	}
	e, _, err := above.state.Lineage().Entry(above.state.Head().LineageSize - 1)
	if err != nil || e.Class != lineage.HandedOver {
		t.Errorf("the lineage ends with %+v, %v", e, err)
	}
}

// TestVersionsAreCountedThroughSeveralFolds: a version keeps its number however often its object went and came home.
func TestVersionsAreCountedThroughSeveralFolds(t *testing.T) {
	above := newRealm(t, func(p *Policy) { p.Children.Notice = time.Hour })
	above.one(above.put("/b/1", "one"))
	above.one(above.put("/b/1", "two"))
	u := above.live()["/b/1"].UID
	for range 2 { // two versions below each time, and one that comes home
		res := above.delegate(above.decision("/b/", quorum.BFT, "a", "b", "c", "d"))
		c := &realm{world: above.child(res.Founded[0]), keys: above.keys, names: above.names, away: above.away}
		c.one(c.put("/b/1", "below"))
		c.one(c.put("/b/1", "below again"))
		above.now = max(above.now, c.now)
		c.closes(above.folds("/b/"))
		above.now = max(above.now, c.now).Add(time.Minute)
		above.home("/b/", c.source(), 1<<20)
		above.one(above.put("/b/1", "above"))
	}
	numbers := func() (all []int64) {
		t.Helper()
		if err := above.state.Versions(u, func(v Version) bool { all = append(all, v.Number); return true }); err != nil {
			t.Fatal(err)
		}
		return all
	}
	if got := numbers(); !slices.Equal(got, []int64{10, 9, 6, 5, 2, 1}) {
		t.Errorf("versions %v", got)
	}
	above.delegate(above.decision("/b/", quorum.BFT, "a", "b", "c", "d"))
	if got := numbers(); !slices.Equal(got, []int64{10, 9, 6, 5, 2, 1}) {
		t.Errorf("versions of what went %v", got)
	}
}
