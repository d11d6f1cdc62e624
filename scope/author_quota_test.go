package scope

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// checkUsages counts what entries have from the charges, and holds each charge against what it is for.
func (w *world) checkUsages() {
	w.t.Helper()
	s := w.state
	counted := make(map[string]Usage)
	prefix := s.space.at(atCharge)
	var charged []string
	_ = w.r.Scan(prefix, kv.PrefixEnd(prefix), false, func(k, raw []byte) bool {
		var c charge
		if err := canon.Decode(raw, &c); err != nil || len(c.Entries) == 0 {
			w.t.Fatalf("charge %q: %+v, %v", k[len(prefix):], c, err)
		}
		what, of := heldBytes, k[len(prefix)+1:]
		want := int64(1)
		switch k[len(prefix)] {
		case chargedKey:
			v, ok, err := s.newest(of)
			if err != nil || !ok {
				w.t.Fatalf("%q is charged to %q, and is not there (%v)", of, c.Entries, err)
			}
			want = int64(len(v.Key) + len(v.Value))
		case chargedLease:
			what = heldLeases
			if _, ok, err := s.lease(int64(binary.BigEndian.Uint64(of))); err != nil || !ok {
				w.t.Fatalf("lease %x is charged to %q, and is not there (%v)", of, c.Entries, err)
			}
		case chargedMotion:
			what = openMotions
			if rec, ok, err := s.motion(votes.MotionID(of)); err != nil || !ok || rec.Ending != nil {
				w.t.Fatalf("motion %x is charged to %q, and is not open (%v)", of, c.Entries, err)
			}
		}
		if c.Amount != want {
			w.t.Fatalf("%q is charged with %d, want %d", k[len(prefix):], c.Amount, want)
		}
		for _, name := range c.Entries {
			u := counted[name]
			*u.held(what) += c.Amount
			counted[name] = u
		}
		charged = append(charged, string(k))
		return true
	})
	all, err := s.Usages()
	if err != nil {
		w.t.Fatalf("usages: %v", err)
	}
	for _, u := range all {
		if u.Usage == (Usage{}) || u.Full != 0 && (u.Full <= s.head.Time || u.Full.Sub(s.head.Time) > rateBurst) {
			w.t.Fatalf("entry %s has the usage %+v at %d", u.Name, u.Usage, s.head.Time)
		}
		is, want := u.Usage, counted[u.Name]
		delete(counted, u.Name)
		if is.Full = 0; is != want {
			w.t.Fatalf("entry %s counts %+v, and its charges come to %+v", u.Name, is, want)
		}
	}
	if len(counted) > 0 {
		w.t.Fatalf("charges of %v, which are not counted", counted)
	}
}

// used is what the entry with a name has.
func (w *world) used(name string) Usage {
	w.t.Helper()
	all, err := w.state.Usages()
	if err != nil {
		w.t.Fatalf("usages: %v", err)
	}
	for _, u := range all {
		if u.Name == name {
			return u.Usage
		}
	}
	return Usage{}
}

// over executes a mutation that must fail as over a quota.
func (w *world) over(m Mutation, want error, why string) {
	w.t.Helper()
	before := w.state.Head().Revision
	o := w.step(m).Outcomes[0]
	if err := Failure(o.Reason); o.Code != Failed || !errors.Is(err, want) || !errors.Is(err, ErrQuota) || !strings.Contains(o.Reason, why) {
		w.t.Fatalf("%s %q, want %v: %s", o.Code, o.Reason, want, why)
	}
	if w.state.Head().Revision != before {
		w.t.Fatalf("it changed something")
	}
}

func (a Author) with(q Quota) Author {
	a.Quota = q
	return a
}

// meters is a world with one author, alice, with a quota.
func meters(t fataler, q Quota, more ...Author) *world {
	t.Helper()
	return withAuthors(t, nil, append([]Author{alice(t, nil).with(q)}, more...)...)
}

// TestP46BytesAreTheAuthors: what lives and was last written under an entry counts; to overwrite, to delete and to
// expire gives the bytes back.
func TestP46BytesAreTheAuthors(t *testing.T) {
	w := meters(t, Quota{Bytes: 100})
	holds := func(want int64) {
		t.Helper()
		if is := w.used("alice").Bytes; is != want {
			t.Fatalf("alice holds %d bytes, want %d", is, want)
		}
	}
	long := strings.Repeat("x", 60)
	w.one(w.put("a", long))
	holds(61)
	w.over(w.put("b", long), ErrQuotaSpace, "the entry alice may hold 100 bytes; delete something, or ask for more")
	w.over(w.ops(put("b", "2"), put("c", long)), ErrQuotaSpace, "alice")
	w.over(w.ops(del("a", ""), put("b", long)), ErrQuotaSpace, "alice") // deletions of a mutation make it no room
	w.one(w.put("a", long[:50]))
	holds(51)
	w.one(w.put("b", long[:48]))
	holds(100)
	w.over(w.put("a", long[:51]), ErrQuotaSpace, "alice")
	w.one(w.ops(Op{Kind: OpPut, Key: []byte("a"), IgnoreValue: true}))
	holds(100)
	w.one(w.ops(del("a", "b")))
	holds(49)
	w.step(w.grant(1, 2), w.ops(leased("l", "1", 1)))
	holds(51)
	for range 3 {
		w.step()
	}
	holds(49)
	w.one(w.bind("b", "b2"))
	holds(99)
	w.over(w.put("b", long[:49]), ErrQuotaSpace, "alice") // under both names
	w.over(w.bind("b", "b3"), ErrQuotaSpace, "alice")
	w.one(w.put("b2", "1"))
	holds(2 + 3)
	w.one(w.fork("b", "f"))
	holds(2 + 3 + 2)
	w.one(w.move("b2", "long", 0))
	holds(2 + 5 + 2)
	w.one(w.ops(del("\x00", "\x00")))
	if all, err := w.state.Usages(); err != nil || len(all) != 0 {
		t.Fatalf("with nothing left there are %+v, %v", all, err)
	}
}

// fork gives a new object the newest content of a key.
func (w *world) fork(from, to string) Mutation {
	w.t.Helper()
	v, _, err := w.state.newest([]byte(from))
	if err != nil {
		w.t.Fatalf("reading: %v", err)
	}
	return w.naming(Naming{Kind: Fork, Object: v.UID, From: v.Key, Revision: v.ModRevision, Sub: v.Sub, To: []byte(to)})
}

// TestP46RatesAreByTheBlocksTime: an entry makes as many mutations as its rate in the time that passes, and saves up no
// more than those of ten seconds. Failed mutations count.
func TestP46RatesAreByTheBlocksTime(t *testing.T) {
	w := meters(t, Quota{Rate: 2})
	burst := func() (n int) {
		t.Helper()
		var all []Mutation
		for i := range 50 {
			m := w.put(fmt.Sprint("k", i), "1")
			if i%2 == 0 {
				m = w.ops(Op{Kind: OpPut, Key: []byte("none"), IgnoreValue: true}) // fails
			}
			all = append(all, m)
		}
		for i, o := range w.step(all...).Outcomes {
			if errors.Is(Failure(o.Reason), ErrRate) {
				if !strings.Contains(o.Reason, "alice may make 2 a second") {
					t.Fatalf("it fails with %q", o.Reason)
				}
				return i
			}
		}
		return len(all)
	}
	if n := burst(); n != 20 {
		t.Fatalf("%d mutations at once, want 20", n)
	}
	if u := w.used("alice"); u.Made(&Quota{Rate: 2}, w.now) != 20 || u.Made(&Quota{Rate: 2}, w.now.Add(time.Second)) != 18 {
		t.Fatalf("%+v, which counts %d", u, u.Made(&Quota{Rate: 2}, w.now))
	}
	if n := burst(); n != 2 { // a second later
		t.Fatalf("%d mutations a second later, want 2", n)
	}
	w.now = w.now.Add(time.Hour)
	if n := burst(); n != 20 {
		t.Fatalf("%d mutations after an hour, want 20", n)
	}
	w.now = w.now.Add(time.Hour)
	if w.step(); len(w.usages()) != 0 {
		t.Fatalf("%+v is left after an hour", w.usages())
	}
}

func (w *world) usages() []EntryUsage {
	w.t.Helper()
	all, err := w.state.Usages()
	if err != nil {
		w.t.Fatalf("usages: %v", err)
	}
	return all
}

// TestP46RatesCountWhatEntriesPermit: a mutation counts once under each entry that it needs, for both of its branches;
// one that no entry permits counts under the first.
func TestP46RatesCountWhatEntriesPermit(t *testing.T) {
	entry := func(name string, prefix string, rate int64) Author {
		return author(t, name, 99, nil, prefix).with(Quota{Rate: rate})
	}
	q := Quota{Rate: 1}
	for _, c := range []struct {
		name    string
		entries []Author
		make    func(w *world) Mutation
		want    string // entries that count it
	}{
		{"its entry", []Author{entry("a", "/a/", 1), entry("b", "/b/", 1)}, func(w *world) Mutation { return w.put("/b/1", "1") }, "b"},
		{"two entries", []Author{entry("a", "/a/", 1), entry("b", "/b/", 1)}, func(w *world) Mutation { return w.ops(put("/a/1", "1"), put("/b/1", "1"), put("/b/2", "1")) }, "ab"},
		{"the other branch", []Author{entry("a", "/a/", 1), entry("b", "/b/", 1)}, func(w *world) Mutation {
			return w.txn(Txn{Success: []Op{put("/a/1", "1")}, Failure: []Op{{Kind: OpTxn, Txn: &Txn{Success: []Op{put("/b/1", "1")}}}}})
		}, "ab"},
		{"an entry without a rate", []Author{entry("a", "/a/", 1), entry("b", "/a/", 0)}, func(w *world) Mutation { return w.put("/a/1", "1") }, ""},
		{"the first of two", []Author{entry("a", "/a/", 1), entry("b", "/a/", 1)}, func(w *world) Mutation { return w.put("/a/1", "1") }, "a"},
		{"reads", []Author{entry("a", "/a/", 1), entry("b", "/b/", 1)}, func(w *world) Mutation { return w.ops(get("/b/1", "")) }, "a"},
		{"what is denied", []Author{entry("a", "/a/", 1), entry("b", "/b/", 1)}, func(w *world) Mutation { return w.put("/c", "") }, ""},
		{"what a grant does not permit", []Author{entry("a", "/a/", 1)}, func(w *world) Mutation {
			m := w.put("/a/x", "")
			m.Grants = [][]byte{grantTest{w}.grant(99, 99, only("/a/b/"))}
			return m
		}, ""},
		{"an empty branch beside what is denied", []Author{entry("a", "/a/", 1), entry("b", "/b/", 1)}, func(w *world) Mutation {
			never := Compare{Target: OnVersion, Relation: Greater, Key: []byte("/a/x"), Number: 9}
			return w.txn(Txn{Compare: []Compare{never}, Success: []Op{put("/c", "")}})
		}, "a"},
		{"an empty branch beside what a grant does not permit", []Author{entry("a", "/a/", 1)}, func(w *world) Mutation {
			never := Compare{Target: OnVersion, Relation: Greater, Key: []byte("/a/x"), Number: 9}
			m := w.txn(Txn{Compare: []Compare{never}, Success: []Op{put("/a/x", "")}})
			m.Grants = [][]byte{grantTest{w}.grant(99, 99, only("/a/b/"))}
			return m
		}, "a"},
		{"what is denied in part", []Author{entry("a", "/a/", 1), entry("b", "/b/", 1)}, func(w *world) Mutation { return w.ops(put("/b/1", ""), put("/c", "")) }, "b"},
		{"a lease", []Author{entry("a", "/a/", 1), author(t, "b", 99, []string{VerbPut}).with(q)}, func(w *world) Mutation { return w.grant(1, 10) }, "a"},
		{"a compaction", []Author{entry("a", "/a/", 1), author(t, "b", 99, nil).with(q)}, func(w *world) Mutation { return w.compaction(1) }, "b"},
		{"names", []Author{entry("a", "/a/", 1), entry("b", "/b/", 1)}, func(w *world) Mutation {
			return w.naming(Naming{Kind: Bind, Key: []byte("/a/1"), To: []byte("/b/1")})
		}, "ab"},
	} {
		w := withAuthors(t, nil, c.entries...)
		w.step(c.make(w))
		is := ""
		for _, u := range w.usages() {
			if u.Made(&q, w.now) != 1 {
				t.Errorf("%s: %+v", c.name, u)
			}
			is += u.Name
		}
		if is != c.want {
			t.Errorf("%s: counted by %q, want %q", c.name, is, c.want)
		}
	}
	w := withAuthors(t, nil, entry("a", "/a/", 1), entry("b", "/a/", 1)) // and the next one if the first is used up
	var all []Mutation
	for i := range 21 {
		all = append(all, w.put(fmt.Sprint("/a/", i), "1"))
	}
	if out := w.step(all...).Outcomes; out[19].Code != Applied || !errors.Is(Failure(out[20].Reason), ErrRate) {
		t.Errorf("20: %+v; 21: %+v", out[19], out[20])
	}
}

// TestP46EntriesShareTheirQuota: any number of keys of an entry have one quota, and so have the holders of grants.
func TestP46EntriesShareTheirQuota(t *testing.T) {
	for _, who := range []string{"anyone", "holders"} {
		w := grantTest{meters(t, Quota{Bytes: 50, Rate: 1})}
		if who == "anyone" {
			w = grantTest{withAuthors(t, nil, open.with(Quota{Bytes: 50, Rate: 1}))}
		}
		name := w.g.Policy.Authors[0].Name
		var out Outcome
		for n := byte(0); n < 6; n++ {
			var chain [][]byte
			if who == "holders" {
				chain = [][]byte{w.grant(99, 10+n)}
			}
			if out = w.does(10+n, w.put(fmt.Sprint(n), "123456789"), chain...); n < 5 && out.Code != Applied {
				t.Fatalf("%s: %s", who, out.Reason)
			}
		}
		if u := w.used(name); !errors.Is(Failure(out.Reason), ErrQuotaSpace) || u.Bytes != 50 {
			t.Errorf("%s: %s, %+v", who, out.Reason, u)
		}
	}
}

// TestP46ChangesGoToTheFirstEntryWithRoom: an entry without the quota is preferred, and then the first that has room. A
// key that is overwritten goes to the entry that pays now.
func TestP46ChangesGoToTheFirstEntryWithRoom(t *testing.T) {
	small := author(t, "a", 99, nil).with(Quota{Bytes: 10})
	large := author(t, "b", 99, nil).with(Quota{Bytes: 20})
	other := author(t, "c", 98, nil)
	w := withAuthors(t, nil, small, large, other)
	w.one(w.put("1", "12345678"))
	w.one(w.put("2", "12345678"))
	if w.used("a").Bytes != 9 || w.used("b").Bytes != 9 {
		t.Fatalf("%+v", w.usages())
	}
	w.one(w.put("2", ""))
	if w.used("a").Bytes != 10 || w.used("b").Bytes != 0 {
		t.Fatalf("%+v", w.usages())
	}
	w.author = testKey(t, 98)
	w.one(w.put("1", "an author without a quota overwrites it"))
	if w.used("a").Bytes != 1 {
		t.Fatalf("%+v", w.usages())
	}
	w = withAuthors(t, nil, small, author(t, "b", 99, nil, "/free/"))
	w.one(w.put("/free/1", strings.Repeat("x", 100)))
	if all := w.usages(); len(all) != 0 {
		t.Fatalf("%+v", all)
	}
}

// TestP46LeasesAreTheAuthors: a lease counts from its grant until it ends.
func TestP46LeasesAreTheAuthors(t *testing.T) {
	w := meters(t, Quota{Leases: 2})
	w.step(w.grant(1, 3), w.grant(2, 100))
	w.over(w.grant(3, 10), ErrQuota, "the entry alice may have 2 leases; revoke one, or ask for more")
	w.one(w.keepAlive(2))
	for range 3 {
		w.step()
	}
	w.one(w.grant(3, 10))
	w.over(w.grant(4, 10), ErrQuota, "leases")
	w.one(w.revoke(2))
	w.one(w.grant(4, 10))
	if u := w.used("alice"); u.Leases != 2 {
		t.Fatalf("%+v", u)
	}
}

// TestP46MotionsAreTheAuthors: a motion counts while it is open.
func TestP46MotionsAreTheAuthors(t *testing.T) {
	g, _ := testGenesis(t, 4)
	g.Policy.Authors = []Author{alice(t, nil).with(Quota{Motions: 2})}
	g.Policy.Approvals = []Approval{{Matter: Changes, Num: 1, Den: 2, Window: 5 * time.Second}}
	w := newWorldOf(t, g)
	opens := func(key string) Mutation { return w.ops(put(key, "1")) }
	pending := func(m Mutation) aweigh.Hash {
		t.Helper()
		o := w.step(m).Outcomes[0]
		if o.Code != Pending {
			t.Fatalf("%s %s", o.Code, o.Reason)
		}
		return o.Mutation
	}
	first := pending(opens("1"))
	pending(opens("2"))
	w.over(opens("3"), ErrQuota, "the entry alice may have 2 open motions; withdraw one, or ask for more")
	w.one(w.mutation(Withdraw, Withdrawal{Motion: votes.MotionID(first)}))
	pending(opens("3"))
	w.over(opens("4"), ErrQuota, "open motions")
	for range 6 {
		w.step()
	}
	if all := w.usages(); len(all) != 0 {
		t.Fatalf("%+v after all deadlines", all)
	}
	pending(opens("4"))
}

// TestP46CountersGoOn: where a policy drops a quota or an entry, what is there stays counted until it goes.
func TestP46CountersGoOn(t *testing.T) {
	anchors := Author{Name: "anchors", Who: Anchors}
	r := newRealm(t, func(p *Policy) {
		p.Authors = []Author{alice(t, nil).with(Quota{Bytes: 100, Leases: 1, Rate: 1}), anchors}
	})
	r.author = testKey(t, 99)
	does := func(want error, m Mutation) {
		t.Helper()
		o := r.add(r.next(nil, nil, r.reserving(enough, m))).Outcomes[0]
		if why := Failure(o.Reason); want == nil && o.Code != Applied || want != nil && !errors.Is(why, want) {
			t.Fatalf("%s %q, want %v", o.Code, o.Reason, want)
		}
	}
	next := func(authors ...Author) {
		t.Helper()
		p := r.epoch().Policy
		p.Authors = append(authors, anchors)
		if authors[0].Who == Anyone {
			p.Authors = []Author{anchors, authors[0]}
		}
		for _, name := range []string{"a", "b", "c"} {
			r.approve(name, Decision{Kind: SetPolicy, Policy: &p})
		}
		r.turn()
		r.author = testKey(t, 99)
		if got := r.epoch().Policy.Hash(); got != p.Hash() {
			t.Fatal("it did not take effect")
		}
	}
	does(nil, r.put("a", "123456789"))
	does(nil, r.put("b", "1234"))
	does(nil, r.grant(1, 1000))
	next(open)
	does(nil, r.put("c", "not counted"))
	does(nil, r.put("b", "by another entry now"))
	if u := r.used("alice"); u.Bytes != 10 || u.Leases != 1 {
		t.Fatalf("%+v", u)
	}
	next(alice(t, nil).with(Quota{Bytes: 5, Leases: 1}))
	does(ErrQuotaSpace, r.put("d", ""))
	does(ErrQuota, r.grant(2, 10))
	does(nil, r.put("a", "1234567")) // above the quota, but less than before
	next(open)
	does(nil, r.revoke(1))
	does(nil, r.ops(del("a", "")))
	if all := r.usages(); len(all) != 0 {
		t.Fatalf("%+v", all)
	}
}

// TestP46ChargesAreHandedOver: what goes to another scope no longer counts in the one above, and counts under the
// entry of the same name in the new one; a lease of which keys went counts in both.
func TestP46ChargesAreHandedOver(t *testing.T) {
	q := Quota{Bytes: 100, Leases: 1}
	anyone := Author{Name: "x", Who: Anyone}.with(q)
	r := newRealm(t, func(p *Policy) { p.Authors = []Author{anyone} })
	r.add(r.next(nil, nil, r.world.sign(r.grant(1, 1000))...))
	r.add(r.next(nil, nil, r.world.sign(r.put("/a/1", "12345"), r.ops(leased("/a/2", "1", 1)), r.put("/b", "1234"))...))
	d := r.decision("/a/", quorum.BFT, "a", "b", "c", "d")
	d.Child.Policy.Authors = []Author{anyone}
	g := r.delegate(d).Founded[0]
	if u := r.used("x"); u.Bytes != 6 || u.Leases != 1 {
		t.Errorf("above: %+v", u)
	}
	c := r.below(g)
	if u := c.used("x"); u.Bytes != 9+5 || u.Leases != 1 {
		t.Errorf("below: %+v", u)
	}
	if err := (Audit{Reader: c.r, Genesis: &g}).Founded(); err != nil {
		t.Error(err)
	}
	out := c.step(c.put("/a/3", strings.Repeat("x", 83)), c.grant(2, 10), c.ops(del("/a/1", "")), c.revoke(1)).Outcomes
	if !errors.Is(Failure(out[0].Reason), ErrQuotaSpace) || !errors.Is(Failure(out[1].Reason), ErrQuota) {
		t.Errorf("below: %+v", out)
	}
	if all := c.usages(); len(all) != 0 {
		t.Errorf("below, with nothing left: %+v", all)
	}
}

// TestP46QuotasHold: whatever programs do, what entries have is what is there, and no entry has more than its quota.
func TestP46QuotasHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, _ := testGenesis(t, 4)
		quota := func() Quota {
			n := func(most int64) int64 { return rapid.Int64Range(0, most).Draw(t, "most") }
			return Quota{Rate: n(2), Bytes: n(40), Leases: n(2), Motions: n(2)}
		}
		g.Policy = OpenPolicy(quorum.BFT)
		g.Policy.Authors = []Author{
			{Name: "a", Who: Anyone, Prefixes: [][]byte{[]byte("a")}, Quota: quota()},
			{Name: "b", Who: Anyone, Verbs: []string{VerbAlias, VerbDelete, VerbLease, VerbPut}, Quota: quota()},
		}
		if rapid.Bool().Draw(t, "approvals") {
			g.Policy.Approvals = []Approval{{Matter: Changes, Prefix: []byte("ab"), Num: 1, Den: 2, Window: 3 * time.Second}}
		}
		w := newWorldOf(t, g)
		keys := []string{"a", "a1", "ab", "b", "c"}
		key := func() string { return rapid.SampledFrom(keys).Draw(t, "key") }
		for range rapid.IntRange(1, 12).Draw(t, "blocks") {
			var all []Mutation
			for range rapid.IntRange(0, 5).Draw(t, "mutations") {
				value := strings.Repeat("x", rapid.IntRange(0, 20).Draw(t, "value"))
				switch lease := rapid.Int64Range(1, 4).Draw(t, "lease"); rapid.IntRange(0, 8).Draw(t, "kind") {
				case 0:
					all = append(all, w.grant(lease, 3))
				case 1:
					all = append(all, w.revoke(lease))
				case 2:
					all = append(all, w.ops(leased(key(), value, lease)))
				case 3:
					all = append(all, w.ops(del(key(), "\x00")))
				case 4:
					all = append(all, w.naming(Naming{Kind: Bind, Key: []byte(key()), To: []byte(key() + "+")}))
				case 5:
					all = append(all, w.naming(Naming{Kind: Move, Key: []byte(key()), To: []byte(key() + "+")}))
				case 6:
					all = append(all, w.ops(put("a", value), put("a+", value+value), put("b", "1")))
				default:
					all = append(all, w.put(key(), value))
				}
			}
			w.step(all...)
			for _, u := range w.usages() {
				q := g.Policy.Authors[int(u.Name[0]-'a')].Quota
				if u.Bytes > q.Bytes || u.Leases > q.Leases || u.Motions > q.Motions || u.Made(&q, w.now) > q.Burst() {
					t.Fatalf("%+v under %+v", u, q)
				}
			}
		}
	})
}
