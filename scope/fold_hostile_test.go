package scope

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// homeward is a realm with a scope of its own for /b/, which it has ordered to come home.
func homeward(t *testing.T) (above, below *realm, order *Revocation) {
	t.Helper()
	above = newRealm(t, func(p *Policy) { p.Children.Notice = time.Second })
	above.one(above.put("/a/1", "kept"))
	above.one(above.put("/b/1", "one"))
	res := above.delegate(above.decision("/b/", quorum.BFT, "a", "b", "c", "d"))
	below = &realm{world: above.child(res.Founded[0]), keys: above.keys, names: above.names, away: above.away}
	below.one(below.put("/b/2", "two"))
	above.now = max(above.now, below.now)
	return above, below, above.folds("/b/")
}

// apart is the world as it stands, which goes on by itself.
func (w *world) apart() *world {
	w.t.Helper()
	c := *w
	c.flat = kv.NewOverlay(w.r)
	c.r = c.flat
	c.open()
	return &c
}

// claims is what anchors of a scope certify that it closed with, whatever it held.
func (r *realm) claims(order aweigh.Hash, revision, keys int64, parts ...[]byte) *Bringing {
	r.t.Helper()
	b := &Bringing{Prefix: r.g.Prefix(), Genesis: r.g.Encode(), Handovers: slices.Clone(r.hands)}
	for _, p := range parts {
		b.Parts = append(b.Parts, PartHash(p))
	}
	e := r.epoch()
	terms := e.Terms()
	terms.Home = &Home{Order: order, Revision: revision, Keys: keys, Parts: partsHash(b.Parts)}
	h := r.next(nil, nil).Header
	h.Next = terms.Hash(e.Number + 1)
	b.Handovers = append(b.Handovers, Handover{Final: Finality{Header: h, Certificate: r.certificate(e, h)}, Terms: terms})
	return b
}

// TestLiarsBringNothing: whatever anchors of a scope certify that it held, and whatever they bring, nothing of the
// scope above changes but the keys of that scope, and these only to what such a scope can have held.
func TestLiarsBringNothing(t *testing.T) {
	testshort.Skip(t)
	above, c, order := homeward(t)
	before := above.live()
	head := above.state.Head()
	item := func(kind ItemKind, key string, value any) Item {
		raw, ok := value.([]byte)
		if !ok {
			raw = canon.Encode(value)
		}
		return Item{Kind: kind, Key: []byte(key), Value: raw}
	}
	u := aweigh.NewUID(aweigh.Hash{7}, 0)
	good := KeyValue{Key: []byte("/b/x"), Value: []byte("v"), CreateRevision: 2, ModRevision: 3, Version: 2, UID: u}
	changed := func(change func(*KeyValue)) Item {
		v := good
		change(&v)
		return item(ItemKey, string(v.Key), v)
	}
	id := string(binary.BigEndian.AppendUint64(nil, 9))
	some := &lease{ttl: 60, expires: above.now}
	for name, x := range map[string]struct { // order-free: none changes anything
		items []Item
		keys  int64
		why   string
	}{
		"outside of the prefix":        {[]Item{changed(func(v *KeyValue) { v.Key = []byte("/a/1") })}, 1, "outside of"},
		"from the future":              {[]Item{changed(func(v *KeyValue) { v.ModRevision = head.Revision + 5 })}, 1, "revisions"},
		"changed before it was":        {[]Item{changed(func(v *KeyValue) { v.CreateRevision = 4 })}, 1, "revisions"},
		"without a version":            {[]Item{changed(func(v *KeyValue) { v.Version = 0 })}, 1, "revisions"},
		"on a lease that is none":      {[]Item{changed(func(v *KeyValue) { v.Lease = 9 })}, 1, "lease"},
		"under another key":            {[]Item{item(ItemKey, "/b/y", good)}, 1, "no key"},
		"twice":                        {[]Item{item(ItemKey, "/b/x", good), item(ItemKey, "/b/x", good)}, 2, "out of order"},
		"fewer than it says":           {[]Item{item(ItemKey, "/b/x", good)}, 2, "1 keys"},
		"a lease without a time":       {[]Item{item(ItemLease, id, (&lease{expires: 1}).record())}, 0, "no lease"},
		"a lease twice":                {[]Item{item(ItemLease, id, some.record()), item(ItemLease, id, some.record())}, 0, "two of it"},
		"a lease without a key":        {[]Item{item(ItemLease, id, some.record())}, 0, "has no key"},
		"a charge of no lease":         {[]Item{item(ItemLeaseCharge, id, charge{Entries: []string{"a"}, Amount: 1})}, 0, "two of it"},
		"a charge of no key":           {[]Item{item(ItemKeyCharge, "/b/x", charge{Entries: []string{"a"}, Amount: 1})}, 0, "no charge"},
		"more versions than revisions": {[]Item{changed(func(v *KeyValue) { v.Version = 1<<63 - 2 })}, 1, "revisions"},
		"names with too many versions": {[]Item{
			item(ItemAliases, string(u[:]), aliases{Held: []held{{Key: []byte("/b/x"), Before: 1<<63 - 2}}}), item(ItemKey, "/b/x", good),
		}, 1, "more versions"},
		"a negative charge":        {[]Item{item(ItemKey, "/b/x", good), item(ItemKeyCharge, "/b/x", charge{Entries: []string{"a"}, Amount: -1})}, 1, "no charge"},
		"names of nothing":         {[]Item{item(ItemAliases, string(u[:]), aliases{Held: []held{{Key: []byte("/b/x")}}})}, 0, "does not have"},
		"two names without a list": {[]Item{item(ItemKey, "/b/x", good), changed(func(v *KeyValue) { v.Key = []byte("/b/y") })}, 2, "another key names"},
		"a name that is not listed": {[]Item{
			item(ItemAliases, string(u[:]), aliases{Held: []held{{Key: []byte("/b/y")}}}), item(ItemKey, "/b/x", good),
		}, 1, "does not list"},
		"a redirect to elsewhere":  {[]Item{item(ItemRedirect, "/b/x", redirect{Object: u, To: []byte("/a/1"), Until: above.now})}, 0, "no redirect"},
		"of a kind that is none":   {[]Item{{Kind: 77, Key: []byte("/b/x")}}, 0, "of kind 77"},
		"records that are garbage": {[]Item{item(ItemKey, "/b/x", []byte("garbage"))}, 1, "no key"},
	} {
		r := &realm{world: above.apart(), keys: above.keys, names: above.names, away: above.away}
		part := canon.Encode(x.items)
		if out := r.brings("b", c.claims(order.Hash(), head.Revision, x.keys, part)); out.Code != Applied {
			t.Fatalf("%s: the way: %s %s", name, out.Code, out.Reason)
		}
		if out := r.brings("b", &Bringing{Prefix: []byte("/b/"), Part: part}); out.Code != Applied {
			t.Fatalf("%s: the part: %s %s", name, out.Code, out.Reason)
		}
		r.add(r.next(nil, nil))
		r.checkDigest()
		said := ""
		for i := head.LineageSize; i < r.state.Head().LineageSize; i++ {
			if e, _, err := r.state.Lineage().Entry(i); err == nil && e.Class == lineage.Failed {
				said = e.Reason
			}
		}
		if !strings.Contains(said, x.why) || r.state.Head().Delegated != 0 || len(r.live()) != len(before) {
			t.Errorf("%s: %q, and %d keys", name, said, len(r.live()))
		}
		if out := r.brings("c", &Bringing{Prefix: []byte("/b/"), Part: part}); out.Code != Failed {
			t.Errorf("%s: it is brought again: %s", name, out.Code)
		}
		r.one(r.put("/b/x", "anew"))
	}

	// An identity that an object above has stays with that, and so do its leases; quotas above bear nothing that they
	// do not permit.
	above.step(above.mutation(Lease, LeaseRequest{Kind: LeaseGrant, IDs: []int64{8}, TTL: 60}))
	above.one(above.ops(leased("/a/lock", "held", 8)))
	r := &realm{world: above.apart(), keys: above.keys, names: above.names, away: above.away}
	other := string(binary.BigEndian.AppendUint64(nil, 8))
	part := canon.Encode([]Item{
		item(ItemLease, id, (&lease{ttl: 60, expires: 1 << 62}).record()),
		item(ItemLease, other, (&lease{ttl: MaxLeaseTTL, expires: 1 << 62}).record()),
		changed(func(v *KeyValue) { v.UID = aweigh.NewUID(order.Hash(), 1) }),
		changed(func(v *KeyValue) { v.Key, v.UID, v.Lease = []byte("/b/y"), before["/a/1"].UID, 9 }),
		item(ItemKeyCharge, "/b/y", charge{Entries: []string{"anyone", "anyone", "nobody"}, Amount: 5}),
		changed(func(v *KeyValue) { v.Key, v.Lease = []byte("/b/z"), 8 }),
		item(ItemRedirect, "/b/m", redirect{Object: u, To: []byte("/b/z"), Until: 1 << 62}),
		item(ItemRedirect, "/b/z", redirect{Object: u, To: []byte("/b/m"), Until: above.now.Add(time.Hour)}),
	})
	for _, b := range []*Bringing{c.claims(order.Hash(), head.Revision, 3, part), {Prefix: []byte("/b/"), Part: part}} {
		if out := r.brings("b", b); out.Code != Applied {
			t.Fatalf("%s %s", out.Code, out.Reason)
		}
	}
	r.add(r.next(nil, nil))
	r.checkDigest()
	now := r.live()
	x, y, z, a := now["/b/x"].UID, now["/b/y"].UID, now["/b/z"].UID, now["/a/1"].UID
	if x != aweigh.NewUID(order.Hash(), 1) || y == x || y == a || a != before["/a/1"].UID || z != u {
		t.Errorf("the objects are %v, %v, %v and %v", x, y, z, a)
	}
	for id := range int64(2) {
		if l, ok, err := r.state.Lease(8 + id); err != nil || !ok || l.Expires > leaseEnd(r.now, 60) || l.TTL != 60 {
			t.Errorf("lease %d lasts until %d, %v, %v", 8+id, l.Expires, ok, err)
		}
	}
	if all, err := r.state.Usages(); err != nil || len(all) > 0 {
		t.Errorf("entries without a quota are charged: %v, %v", all, err)
	}
	moved, err := r.state.Redirects([]byte("/b/"), []byte("/c"), 10)
	if err != nil || len(moved) != 1 || string(moved[0].Key) != "/b/m" || moved[0].Until > r.now.Add(MaxRedirect) {
		t.Errorf("redirects %v, %v", moved, err)
	}
}

// TestStepsThatAreNotNext: of what comes home, each node can bring what is next, and nothing else.
func TestStepsThatAreNotNext(t *testing.T) {
	testshort.Skip(t)
	above, c, order := homeward(t)
	for _, key := range []string{"/b/x", "/b/y", "/b/z"} { // two parts
		c.one(c.put(key, strings.Repeat(key, 100_000)))
	}
	early := c.claims(aweigh.Hash{1}, c.state.Head().Revision, 0)
	if out := above.brings("a", early); out.Code != Failed || Failure(out.Reason).Error() != errNoFold.Error() {
		t.Errorf("a scope that closes by another order: %s %s", out.Code, out.Reason)
	}
	ahead := c.claims(order.Hash(), ClockRevision(above.g.Time, above.now.Add(10*time.Minute)), 0)
	if out := above.brings("a", ahead); out.Code != Failed || Failure(out.Reason).Error() != errHomeAhead.Error() {
		t.Errorf("a scope whose time is ahead: %s %s", out.Code, out.Reason)
	}
	c.closes(order)
	above.now = max(above.now, c.now)
	src := c.source()
	step := func() *Bringing {
		b, err := src.Next(above.homing("/b/"), 1<<20)
		if err != nil || b == nil {
			t.Fatalf("no next step: %v", err)
		}
		return b
	}
	refused := func(what, by string, b Bringing, why error) {
		t.Helper()
		if out := above.brings(by, &b); out.Code != Failed || why != nil && Failure(out.Reason).Error() != why.Error() {
			t.Errorf("%s: %s %s", what, out.Code, out.Reason)
		}
	}
	invalid := func(what string, b Bringing) {
		t.Helper()
		if _, err := Sign(above.names["a"], above.g.Policy.Limits, above.mutation(Bring, b)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	way := step()
	bent := *way
	bent.Handovers = slices.Clone(way.Handovers)
	bent.Handovers[0].Final.Certificate.Signatures = bent.Handovers[0].Final.Certificate.Signatures[:1]
	invalid("handovers that are not certified", bent)
	bent = *way
	bent.Parts = bent.Parts[:1]
	invalid("fewer parts than the terms name", bent)
	bent = *way
	bent.Handovers = nil
	invalid("no handover", bent)
	bent = *way
	bent.Part = []byte{1}
	invalid("two things at once", bent)
	bent = *way
	bent.Prefix = []byte("/a/")
	refused("a scope that is none", "a", bent, errNoFold)
	invalid("a part of nothing", Bringing{Prefix: []byte("/b/"), Part: canon.Encode([]Item{})})
	refused("a part before the way", "a", Bringing{Prefix: []byte("/b/"), Part: canon.Encode([]Item{{Kind: ItemKey}})}, errOtherStep)

	m := above.mutation(Bring, way)
	m.Author = above.author.Public().ID()
	if out := above.step(m).Outcomes[0]; out.Code != Failed || !strings.Contains(out.Reason, "only the node of an anchor") {
		t.Errorf("by another key: %s %s", out.Code, out.Reason)
	}
	if out := above.brings("b", way); out.Code != Applied {
		t.Fatalf("%s %s", out.Code, out.Reason)
	}
	refused("the way again", "a", *way, errOtherStep)
	first := step()
	later := *first
	later.Index = 1
	refused("a part in the place of another", "a", later, errOtherStep)
	bent = *first
	bent.Part = canon.Encode([]Item{{Kind: ItemKey, Key: []byte("/b/1")}})
	refused("another part", "a", bent, errOtherStep)
	if out := above.brings("c", first); out.Code != Applied {
		t.Fatalf("%s %s", out.Code, out.Reason)
	}
	refused("a part again", "a", *first, errOtherStep)
	above.home("/b/", src, 1<<20)
	refused("a part of what is home", "a", *first, errNoFold)
	if got := above.live(); string(got["/b/2"].Value) != "two" || len(got) != 6 {
		t.Errorf("there are %d keys", len(got))
	}
}

// TestFoldsThatCannotBe: what is for good stays, an order is the last one, and a scope with scopes below it waits.
func TestFoldsThatCannotBe(t *testing.T) {
	testshort.Skip(t)
	good := newRealm(t, nil)
	good.delegate(good.decision("/b/", quorum.BFT, "a", "b", "c", "d"))
	for prefix, why := range map[string]string{"/b/": "founded for good", "/c/": "no scope that this one delegated to", "/b/1": "no scope that"} { // order-free
		if out := good.approve("a", Folding([]byte(prefix))); out.Code != Failed || !strings.Contains(out.Reason, why) {
			t.Errorf("folding %s: %s %s", prefix, out.Code, out.Reason)
		}
	}

	above, c, order := homeward(t)
	for _, d := range []Decision{Folding([]byte("/b/")), {Kind: Revoke, Child: above.decision("/b/", quorum.BFT, "a").Child}} {
		if out := above.approve("a", d); out.Code != Failed || !strings.Contains(out.Reason, "ordered already") {
			t.Errorf("%s after a fold: %s %s", d.Kind, out.Code, out.Reason)
		}
	}
	if out := above.approve("a", above.decision("/b/x/", quorum.BFT, "a", "b", "c", "d")); out.Code != Failed {
		t.Errorf("a scope in one that comes home: %s", out.Code)
	}
	c.now = max(c.now, order.Time.Add(time.Second))
	b := c.obeying(order)
	small := DefaultBounds()
	small.HandKeys = 1
	if err := c.state.Within(&small).CheckRevocation(b, order); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "holds more") {
		t.Errorf("a scope that holds too much obeys: %v", err)
	}
	if err := c.state.CheckRevocation(b, nil); !errors.Is(err, ErrUnheard) {
		t.Errorf("an order that is not known: %v", err)
	}
	res := c.delegate(c.decision("/b/deep/", quorum.BFT, "a", "b", "c", "d"))
	if len(res.Founded) != 1 {
		t.Fatalf("founded %v", res.Founded)
	}
	if _, awaits, err := c.state.Awaits(order); awaits || err != nil {
		t.Errorf("a scope with one below it awaits the order: %v", err)
	}
	if err := c.state.CheckRevocation(c.obeying(order), order); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "take those back first") {
		t.Errorf("a scope with one below it obeys: %v", err)
	}
}

// TestStrangersProofsAreNotVerified: of a bundle with a proof, one signature is verified if its author is no node of an
// anchor, and all if it is.
func TestStrangersProofsAreNotVerified(t *testing.T) {
	above, c, order := homeward(t)
	c.closes(order)
	above.now = max(above.now, c.now)
	way, err := c.source().Next(above.homing("/b/"), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []votes.PrivateKey{above.author, above.names["a"]} {
		b, err := Sign(by, above.g.Policy.Limits, above.mutation(Bring, way))
		if err != nil {
			t.Fatal(err)
		}
		verified, heard := 0, 0
		count := func(k votes.PublicKey, c votes.Context, m, s []byte) error {
			verified++
			return votes.Verify(k, c, m, s)
		}
		_, err = CheckBundleIf(b.Raw(), above.g.Policy.Limits, count, func(author votes.PublicKey, signatures int) error {
			heard = signatures
			return above.epoch().Proves(author)
		})
		acts := by.Public().ID() != above.author.Public().ID()
		if heard != way.signatures() || heard == 0 || acts != (err == nil) || !acts && (verified != 1 || !errors.Is(err, ErrDenied)) || acts && verified < heard {
			t.Errorf("an anchor: %v; %d signatures verified of %d; %v", acts, verified, heard, err)
		}
	}
}
