package scope

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
)

// decision is one to delegate a prefix to some of the realm's anchors.
func (r *realm) decision(prefix string, mode quorum.Mode, anchors ...string) Decision {
	c := &Child{Prefix: []byte(prefix), Name: "child", Policy: OpenPolicy(mode)}
	c.Policy.EpochBlocks = r.g.Policy.EpochBlocks
	for _, a := range r.g.Anchors {
		for _, name := range anchors {
			if a.Name == name {
				c.Anchors = append(c.Anchors, a)
			}
		}
	}
	return Decision{Kind: Delegate, Child: c}
}

// delegate decides so, and gives what the end of the epoch makes of it.
func (r *realm) delegate(d Decision) *Result {
	r.t.Helper()
	r.turn() // the approvals fit into one epoch
	for _, a := range r.g.Anchors[:3] {
		if out := r.approve(a.Name, d); out.Code != Applied {
			r.t.Fatalf("approval by %s: %s %s", a.Name, out.Code, out.Reason)
		}
	}
	return r.turn()
}

// child is the world of a scope that was founded in this one's store.
func (w *world) child(g Genesis) *world {
	w.t.Helper()
	c := &world{t: w.t, g: g, author: w.author, now: w.now, nonce: w.nonce + 1_000_000, flat: w.flat, r: w.r}
	c.open()
	c.checkDigest()
	return c
}

func (w *world) live() map[string]KeyValue {
	w.t.Helper()
	res, err := w.state.Range([]byte{0}, []byte{0}, Range{})
	if err != nil {
		w.t.Fatalf("range: %v", err)
	}
	all := make(map[string]KeyValue)
	for _, v := range res.Kvs {
		v.Entry = 0 // that is the lineage's of each scope
		all[string(v.Key)] = v
	}
	return all
}

func fails(t *testing.T, w *world, m Mutation, want error) {
	t.Helper()
	if out := w.step(m).Outcomes[0]; out.Code != Failed || !errors.Is(Failure(out.Reason), want) {
		t.Errorf("%s %q, want failure %v", out.Code, out.Reason, want)
	}
}

// TestDelegationHandsOver follows one delegation: the child has all content
// unchanged, and no other scope has it.
func TestDelegationHandsOver(t *testing.T) {
	testshort.Skip(t)
	r := newRealm(t, nil)
	r.one(r.put("/a/1", "one"))
	r.one(r.put("/b/1", "two"))
	r.one(r.put("/b/1", "three"))
	r.step(r.mutation(Lease, LeaseRequest{Kind: LeaseGrant, IDs: []int64{9}, TTL: 600}))
	r.one(r.ops(leased("/b/3", "leased", 9), put("/b/2", "moved"), leased("/a/2", "leased", 9)))
	r.one(r.naming(Naming{Kind: Bind, Key: []byte("/b/1"), To: []byte("/b/one")}))
	r.one(r.naming(Naming{Kind: Move, Key: []byte("/b/2"), To: []byte("/b/two"), Until: r.now.Add(time.Hour)}))
	before := r.live()

	res := r.delegate(r.decision("/b/", quorum.Crash, "a", "b"))
	if len(res.Founded) != 1 {
		t.Fatalf("founded %v", res.Founded)
	}
	g := res.Founded[0]
	if d := g.Descent; d.Keys != 4 || d.Depth != 1 || d.Parent != r.g.Hash() || d.Network != r.g.Hash() || d.Revision != r.state.Head().Revision {
		t.Errorf("the child descends %+v", d)
	}
	c := r.child(g)
	if got, want := len(c.live())+len(r.live()), len(before); got != want {
		t.Errorf("%d keys after, %d before", got, want)
	}
	for key, v := range before {
		in := r.live()
		if strings.HasPrefix(key, "/b/") {
			in = c.live()
		}
		if fmt.Sprint(in[key]) != fmt.Sprint(v) {
			t.Errorf("%s was %+v, is %+v", key, v, in[key])
		}
	}

	fails(t, r.world, r.put("/b/4", "no"), ErrElsewhere)
	fails(t, r.world, r.ops(del("/", "0")), ErrElsewhere)
	fails(t, r.world, r.txn(Txn{Compare: []Compare{{Target: OnVersion, Relation: Equal, Key: []byte("/b/9")}}, Success: []Op{put("/a/9", "")}}), ErrElsewhere)
	fails(t, r.world, r.naming(Naming{Kind: Bind, Key: []byte("/a/1"), To: []byte("/b/new")}), ErrElsewhere)
	r.one(r.put("/a/3", "yes"))
	fails(t, c, c.put("/a/3", "no"), ErrElsewhere)
	fails(t, c, c.ops(del("/b/", "/c")), ErrElsewhere)
	fails(t, c, c.naming(Naming{Kind: Bind, Key: []byte("/b/1"), To: []byte("/a/new")}), ErrElsewhere)

	out := c.one(c.put("/b/1", "four"))
	if v := c.live()["/b/one"]; string(v.Value) != "four" || v.UID != before["/b/1"].UID || out.Revision <= g.Descent.Revision {
		t.Errorf("another name of what was written holds %+v, at revision %d", v, out.Revision)
	}
	if res, ok, err := c.state.Resolve([]byte("/b/2")); err != nil || !ok || res.Moved == nil || string(res.Kv.Key) != "/b/two" {
		t.Errorf("a redirect leads to %+v, %v, %v", res, ok, err)
	}
	if rev := c.state.Head().Revision; rev < ClockRevision(r.g.Time, c.now) {
		t.Errorf("revision %d does not go by the time", rev)
	}
	var versions []string
	if err := c.state.Versions(before["/b/1"].UID, func(v Version) bool {
		kv, _, err := c.state.Content(v)
		versions = append(versions, fmt.Sprintf("%d %s %s", v.Number, v.Entry.Class, kv.Value))
		return err == nil
	}); err != nil || fmt.Sprint(versions) != "[3 update four 2 taken-over three]" {
		t.Errorf("versions %q, %v", versions, err)
	}

	// The lease went along with its key, and stayed with the other.
	for range 1000 { // a scope that stood still would give leases their time again
		c.step()
		r.add(r.next(nil, nil))
	}
	if _, ok := c.live()["/b/3"]; ok {
		t.Error("the child's leased key lives on")
	}
	if _, ok := r.live()["/a/2"]; ok {
		t.Error("the parent's leased key lives on")
	}

	// Watchers of the parent see no deletion of the keys: they exist on.
	events, _, err := r.state.Events(g.Descent.Revision, r.state.Head().Revision, []byte("/b/"), []byte("/c"), 1000)
	if err != nil || len(events) != 0 {
		t.Errorf("the parent tells of %+v, %v", events, err)
	}
}

// TestDelegationsThatCannotBe: each is refused when it is proposed, or has no
// effect at the end, with the reason.
func TestDelegationsThatCannotBe(t *testing.T) {
	r := newRealm(t, func(p *Policy) {
		p.Children = Bound{Depth: 1, BFT: true, Finalize: quorum.Rule{Num: 2, Den: 3, MinAnchors: 3}}
	})
	bft := func(prefix string) Decision {
		d := r.decision(prefix, quorum.BFT, "a", "b", "c", "d")
		d.Child.Policy.Rules.Finalize.MinAnchors = 3
		return d
	}
	r.one(r.put("/a/1", "one"))
	r.one(r.naming(Naming{Kind: Bind, Key: []byte("/a/1"), To: []byte("/b/1")}))
	for name, d := range map[string]Decision{
		"mode":    r.decision("/x/", quorum.Crash, "a", "b", "c"),
		"anchors": r.decision("/x/", quorum.BFT, "a", "b", "c", "d"),
	} {
		if out := r.approve("a", d); out.Code != Failed || !strings.Contains(out.Reason, "demands more") {
			t.Errorf("%s: %s %q", name, out.Code, out.Reason)
		}
	}
	if out := r.approve("a", bft("/a/")); out.Code != Failed || !strings.Contains(out.Reason, "name one object") {
		t.Errorf("an object with a name elsewhere: %s %q", out.Code, out.Reason)
	}
	res := r.delegate(bft("/x/"))
	if len(res.Founded) != 1 {
		t.Fatal("no scope was founded")
	}
	for _, prefix := range []string{"/x/", "/x/y/", "/", "/x"} {
		if out := r.approve("a", bft(prefix)); out.Code != Failed || !errors.Is(Failure(out.Reason), ErrElsewhere) && !strings.Contains(out.Reason, "already") {
			t.Errorf("%s: %s %q", prefix, out.Code, out.Reason)
		}
	}
	c := r.child(res.Founded[0])
	below := Child{Prefix: []byte("/x/y/"), Policy: bft("").Child.Policy}
	own := &region{prefix: []byte("/x/")}
	if failure, err := c.state.delegable(&below, own, &c.g.Policy); err != nil || !errors.Is(failure, ErrBound) {
		t.Errorf("below the lowest level: %v, %v", failure, err)
	}
}

// TestDelegatedBelowDelegated: a child delegates in turn, and both lead on.
func TestDelegatedBelowDelegated(t *testing.T) {
	r := newRealm(t, nil)
	r.one(r.ops(put("/a/b/1", "deep"), put("/a/1", "child"), put("/1", "root")))
	top := r.delegate(r.decision("/a/", quorum.BFT, "a", "b", "c", "d")).Founded[0]
	c := &realm{world: r.child(top), keys: r.keys, names: r.names, away: r.away}
	c.now = r.now
	mid := c.delegate(c.decision("/a/b/", quorum.Crash, "c")).Founded[0]
	if d := mid.Descent; d.Depth != 2 || d.Network != r.g.Hash() || d.Parent != top.Hash() || d.Revision <= top.Descent.Revision {
		t.Errorf("the grandchild descends %+v", d)
	}
	e := c.child(mid)
	for _, at := range []struct {
		w    *world
		want string
	}{{r.world, "/1"}, {c.world, "/a/1"}, {e, "/a/b/1"}} {
		if live := at.w.live(); len(live) != 1 || live[at.want].Value == nil {
			t.Errorf("%s is not all that its scope holds: %v", at.want, live)
		}
	}
	d, g, ok, err := c.state.Delegated([]byte("/a/b/c/d"))
	if err != nil || !ok || d.Child != mid.Hash() || g.Hash() != mid.Hash() {
		t.Errorf("led to %+v, %v, %v", d, ok, err)
	}
	if _, _, ok, _ := c.state.Delegated([]byte("/a/c")); ok {
		t.Error("a key that stayed is said to be delegated")
	}
}

// restores fails unless a snapshot makes the world's state.
func restores(t fataler, w *world, snapshot taken) {
	t.Helper()
	into, err := snapshot.restore()
	if err != nil {
		t.Fatalf("%v", err)
	}
	from, to, _ := Clear(w.g.Hash())
	was, is := make(map[string]string), make(map[string]string)
	for all, r := range map[*map[string]string]kv.Reader{&was: w.r, &is: into} {
		_ = r.Scan(from, to, false, func(k, v []byte) bool {
			if kind := k[len(space{})]; kind != atLineage && kind != atChange { // stored in runs of other lengths
				(*all)[string(k[len(space{}):])] = string(v)
			}
			return true
		})
	}
	if !maps.Equal(was, is) {
		for k := range was {
			if was[k] != is[k] {
				t.Fatalf("a snapshot of %q gives %d records, not %d; %.80q differs", w.g.Prefix(), len(is), len(was), k)
			}
		}
		t.Fatalf("a snapshot of %q gives %d records, not %d", w.g.Prefix(), len(is), len(was))
	}
}

// TestDelegationLosesNothing: whatever was done before, parent and child hold
// together what the parent held; and both are what a snapshot of them gives.
func TestDelegationLosesNothing(t *testing.T) {
	testshort.Skip(t)
	rapid.Check(t, func(t *rapid.T) {
		r := newRealm(t, func(p *Policy) { p.EpochBlocks = 8 })
		r.skip = true
		key := rapid.SampledFrom([]string{"a", "ab", "a\x00b", "b", "b1", "b2", "\xff\xff", "\xff\xffz"})
		for range rapid.IntRange(1, 8).Draw(t, "blocks") {
			r.now += 20e9
			var muts []Mutation
			for range rapid.IntRange(0, 4).Draw(t, "mutations") {
				switch rapid.IntRange(0, 5).Draw(t, "what") {
				case 0:
					muts = append(muts, r.mutation(Lease, drawLeaseRequest(t, r.world)))
				case 1:
					muts = append(muts, r.ops(leased(key.Draw(t, "key"), "leased", drawLease(t))))
				case 2:
					if n := drawNaming(t, r.world); n.check(r.g.Policy.Limits) == nil {
						muts = append(muts, r.naming(n))
					}
				case 3:
					muts = append(muts, r.ops(del("a", key.Draw(t, "end"))))
				default:
					muts = append(muts, r.put(key.Draw(t, "key"), rapid.StringN(0, 5, 10).Draw(t, "value")))
				}
			}
			if b := r.next(nil, nil, r.world.sign(muts...)...); true {
				r.add(b)
			}
		}
		before := r.live()
		prefix := rapid.SampledFrom([]string{"a", "b", "b1", "\xff", "\xff\xff"}).Draw(t, "prefix")
		d := r.decision(prefix, quorum.Crash, "a", "b", "c")
		r.turn()
		switch out := r.approve("a", d); {
		case strings.Contains(out.Reason, "name one object"):
			return
		case out.Code != Applied:
			t.Fatalf("%s %s", out.Code, out.Reason)
		}
		r.approve("b", d)
		r.approve("c", d)
		res := r.turn()
		r.skip = false
		r.checkDigest()
		if len(res.Founded) == 0 {
			t.Fatal("no scope was founded")
		}
		after := r.live()
		g := res.Founded[0]
		c := r.child(g)
		for k, v := range c.live() {
			if !strings.HasPrefix(k, prefix) || after[k].UID != (aweigh.UID{}) {
				t.Fatalf("%q is the child's, and in the parent %+v", k, after[k])
			}
			after[k] = v
		}
		for k, v := range before {
			if fmt.Sprint(after[k]) != fmt.Sprint(v) && v.Lease == 0 { // leases may have ended meanwhile
				t.Fatalf("%q was %+v, is %+v", k, v, after[k])
			}
		}
		restores(t, c, taken{first: &g, records: c.records(300)})
		for _, w := range []*world{r.world, c} {
			h := Header{}
			for range 2 {
				w.now += 20e9
				b := w.block(nil)
				w.execute(b)
				h = b.Header
			}
			restores(t, w, w.take(h, 300))
		}
	})
}
