package scope

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/votes"
)

// grantTest is a world whose policy lists alice (key 99) for /a/, and root (key 97) for everything.
type grantTest struct{ *world }

func newGrantTest(t *testing.T) grantTest {
	t.Helper()
	return grantTest{withAuthors(t, nil, alice(t, []string{VerbDelete, VerbPut}, "/a/"), author(t, "root", 97, nil))}
}

// grant is one that a key signs for another, for an hour.
func (w grantTest) grant(by, to byte, change ...func(*Grant)) []byte {
	w.t.Helper()
	g := Grant{Scope: w.g.Hash(), To: testKey(w.t, to).Public(), Name: "ci", NotAfter: w.now.Add(time.Hour)}
	for _, c := range change {
		c(&g)
	}
	g, err := SignGrant(testKey(w.t, by).Signer(), g)
	if err != nil {
		w.t.Fatalf("granting: %v", err)
	}
	return g.Encode()
}

// does executes a mutation that a key signs under grants.
func (w grantTest) does(key byte, m Mutation, grants ...[]byte) Outcome {
	w.t.Helper()
	w.author, m.Grants = testKey(w.t, key), grants
	for _, raw := range grants {
		var g Grant
		if err := canon.Decode(raw, &g); err != nil {
			w.t.Fatalf("decoding: %v", err)
		}
		m.ValidUntil = min(m.ValidUntil, g.NotAfter)
	}
	return w.step(m).Outcomes[0]
}

func only(prefix string, verbs ...string) func(*Grant) {
	return func(g *Grant) { g.Prefixes, g.Verbs = [][]byte{[]byte(prefix)}, verbs }
}

// TestP45GrantsNarrowRights: what a chain permits is what its first signer may do and every grant permits.
func TestP45GrantsNarrowRights(t *testing.T) {
	w := newGrantTest(t)
	for _, c := range []struct {
		name   string
		chain  [][]byte // for the key 50
		key    string
		delete bool
		denied string
	}{
		{"all rights of alice", [][]byte{w.grant(99, 50)}, "/a/x", false, ""},
		{"more than alice has", [][]byte{w.grant(99, 50)}, "/b/x", false, "to put"},
		{"a part", [][]byte{w.grant(99, 50, only("/a/b/"))}, "/a/b/x", false, ""},
		{"outside of the part", [][]byte{w.grant(99, 50, only("/a/b/"))}, "/a/c", false, "to put"},
		{"another verb", [][]byte{w.grant(99, 50, only("/a/", VerbPut))}, "/a/x", true, "to delete"},
		{"a prefix that alice lacks", [][]byte{w.grant(99, 50, only("/b/"))}, "/b/x", false, "to put"},
		{"a part of a part", [][]byte{w.grant(99, 51, only("/a/b/")), w.grant(51, 50, only("/a/b/c/"))}, "/a/b/c/x", false, ""},
		{"more than the part", [][]byte{w.grant(99, 51, only("/a/b/")), w.grant(51, 50)}, "/a/c", false, "to put"},
		{"a wider part", [][]byte{w.grant(99, 51, only("/a/b/")), w.grant(51, 50, only("/a/"))}, "/a/c", false, "to put"},
		{"of a key without rights", [][]byte{w.grant(49, 50)}, "/a/x", false, "does not list this author"},
		{"of one that may do everything", [][]byte{w.grant(97, 50)}, "/b/x", false, ""},
		{"a part of everything", [][]byte{w.grant(97, 50, only("/b/"))}, "/c/x", false, "to put"},
	} {
		m := w.put(c.key, "1")
		if c.delete {
			m = w.ops(del(c.key, ""))
		}
		out := w.does(50, m, c.chain...)
		if denied := errors.Is(Failure(out.Reason), ErrDenied); denied != (c.denied != "") || !strings.Contains(out.Reason, c.denied) || !denied && out.Code != Applied {
			t.Errorf("%s: %s: %q", c.name, out.Code, out.Reason)
		}
	}
	if out := w.does(50, w.put("/a/x", "1")); !strings.Contains(out.Reason, "does not list this author") {
		t.Errorf("without its grants: %s: %q", out.Code, out.Reason)
	}
	// An author that has rights of its own does not add them to those of a grant.
	if out := w.does(99, w.put("/a/x", "1"), w.grant(97, 99, only("/b/"))); !strings.Contains(out.Reason, "to put") {
		t.Errorf("its own rights under a grant: %s: %q", out.Code, out.Reason)
	}
}

// TestP45TheLineageNamesWhoseRightsWereUsed: the principal of an entry is the first signer of the chain, also of
// failures, and there is none without a chain.
func TestP45TheLineageNamesWhoseRightsWereUsed(t *testing.T) {
	w := newGrantTest(t)
	last := func() lineage.Entry {
		t.Helper()
		log := w.state.Lineage()
		e, _, err := log.Entry(log.Size() - 1)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	alice, holder := testKey(t, 99).Public().ID(), testKey(t, 50).Public().ID()
	for _, key := range []string{"/a/x", "/b/denied"} {
		w.does(50, w.put(key, "1"), w.grant(99, 51), w.grant(51, 50))
		if e := last(); e.Author != holder || !bytes.Equal(e.Principal, alice[:]) || e.Acts() != alice {
			t.Errorf("%s: %s of author %s and principal %x", key, e.Class, e.Author, e.Principal)
		}
	}
	w.does(99, w.put("/a/x", "2"))
	if e := last(); e.Author != alice || len(e.Principal) != 0 || e.Acts() != alice {
		t.Errorf("without a chain: %s of author %s and principal %x", e.Class, e.Author, e.Principal)
	}

	for _, fate := range []string{"carried", "rejected", "expired"} {
		a := newAssembly(t, 4, func(p *Policy) { p.Authors = []Author{author(t, "alice", 99, nil), {Name: "anchors", Who: Anchors}} })
		w = grantTest{a.world}
		m := w.put("/secrets/a", "1")
		g := w.grant(99, 50, func(g *Grant) { g.NotAfter = w.now.Add(1000 * time.Hour) })
		opened := w.does(50, m, g)
		if opened.Code != Pending {
			t.Fatalf("%s: %q", opened.Code, opened.Reason)
		}
		switch fate {
		case "carried":
			a.cast(a.approve(opened.Mutation, 4))
		case "rejected":
			var all []votes.MotionBallot
			for _, k := range a.keys[:3] {
				all = append(all, a.ballot(k, opened.Mutation, votes.Reject))
			}
			a.cast(all)
		case "expired":
			w.now = w.now.Add(500 * time.Hour)
			w.step()
		}
		if got := a.fate(opened.Mutation); !strings.HasPrefix(got, fate) {
			t.Fatalf("the motion is %s, and not %s", got, fate)
		}
		log, seen := w.state.Lineage(), 0
		for i := range log.Size() {
			e, _, err := log.Entry(i)
			if err != nil {
				t.Fatal(err)
			}
			if e.Mutation == opened.Mutation && e.Class != lineage.Voted {
				if seen++; e.Acts() != alice {
					t.Errorf("%s: %s has principal %x", fate, e.Class, e.Principal)
				}
			}
		}
		if seen < 2 {
			t.Errorf("%s: %d entries", fate, seen)
		}
	}
}

// TestOriginsCompareThePrincipal: an entry with another principal than its mutation's is of another mutation.
func TestOriginsCompareThePrincipal(t *testing.T) {
	w := newGrantTest(t)
	m := w.put("/a/x", "1")
	m.Author, m.Grants = testKey(t, 50).Public().ID(), [][]byte{w.grant(99, 50)}
	raw := m.Encode()
	o := Origin{Mutation: raw}
	alice, other := testKey(t, 99).Public().ID(), testKey(t, 97).Public().ID()
	for _, c := range []struct {
		principal []byte
		want      bool
	}{{alice[:], true}, {other[:], false}, {nil, false}} {
		e := lineage.Entry{Mutation: ID(raw), Author: m.Author, Principal: c.principal, Scope: m.Scope, Justification: m.Justification, Caller: m.Caller}
		if got := o.about(&e, &m); got != c.want {
			t.Errorf("principal %x: %t", c.principal, got)
		}
	}
}

// TestP45GrantsEnd: at their time, with their record, and with the entry of the author that signed the first.
func TestP45GrantsEnd(t *testing.T) {
	w := newGrantTest(t)
	soon := w.grant(99, 50, func(g *Grant) { g.NotAfter = w.now.Add(10 * time.Second) })
	if out := w.does(50, w.put("/a/x", "1"), soon); out.Code != Applied {
		t.Fatalf("before its end: %s: %q", out.Code, out.Reason)
	}
	w.now = w.now.Add(11 * time.Second)
	if out := w.does(50, w.put("/a/x", "2"), soon); out.Code != Expired {
		t.Errorf("after its end: %s: %q", out.Code, out.Reason)
	}
	w.does(97, w.put("/tokens/ci", "for the build"))
	recorded := w.grant(99, 51, func(g *Grant) { g.Record, g.Object = []byte("/tokens/ci"), w.uid("/tokens/ci") })
	chain := [][]byte{recorded, w.grant(51, 50)}
	if out := w.does(50, w.put("/a/x", "3"), chain...); out.Code != Applied {
		t.Fatalf("with its record: %s: %q", out.Code, out.Reason)
	}
	if out := w.does(97, w.ops(del("/tokens/ci", ""))); out.Code != Applied {
		t.Fatal(out.Reason)
	}
	w.does(97, w.put("/tokens/ci", "another object"))
	if out := w.does(50, w.put("/a/x", "4"), chain...); !strings.Contains(out.Reason, `the grant "ci" is revoked`) {
		t.Errorf("with another record: %s: %q", out.Code, out.Reason)
	}
}

// TestP45RevocationHoldsWithinABlock: the mutation after the deletion of the record is denied, in the same block.
func TestP45RevocationHoldsWithinABlock(t *testing.T) {
	w := newGrantTest(t)
	w.does(97, w.put("/tokens/ci", "1"))
	g := w.grant(99, 50, func(g *Grant) { g.Record, g.Object = []byte("/tokens/ci"), w.uid("/tokens/ci") })
	w.author = testKey(t, 97)
	revoke := w.reserving(enough, w.ops(del("/tokens/ci", "")))
	w.author = testKey(t, 50)
	m := w.put("/a/x", "1")
	m.Grants = [][]byte{g}
	use := w.reserving(enough, m)
	w.now = w.now.Add(time.Second)
	out := w.execute(w.block([]*CheckedBundle{revoke, use})).Outcomes
	if out[0].Code != Applied || !strings.Contains(out[1].Reason, "revoked") {
		t.Errorf("%s, then %s: %q", out[0].Code, out[1].Code, out[1].Reason)
	}
}

// TestP45MotionsNeedGrantsAtTheirEnd: a motion whose author's grant was revoked or has ended meanwhile is void.
func TestP45MotionsNeedGrantsAtTheirEnd(t *testing.T) {
	for _, meanwhile := range []string{"", "revoked", "ended"} {
		a := newAssembly(t, 4, func(p *Policy) { p.Authors = []Author{alice(t, nil), {Name: "anchors", Who: Anchors}} })
		w := grantTest{a.world}
		w.does(99, w.put("/tokens/ci", "1"))
		g := w.grant(99, 50, func(g *Grant) {
			g.Record, g.Object = []byte("/tokens/ci"), w.uid("/tokens/ci")
			g.NotAfter = w.now.Add(2 * time.Minute)
		})
		opened := w.does(50, w.put("/secrets/a", "1"), g)
		if opened.Code != Pending {
			t.Fatalf("%s: %q", opened.Code, opened.Reason)
		}
		want := "carried"
		switch meanwhile {
		case "revoked":
			w.does(99, w.ops(del("/tokens/ci", "")))
			want = `void: denied: the grant "ci" is revoked`
		case "ended":
			w.now = w.now.Add(3 * time.Minute)
			w.step()
			want = `void: denied: the grant "ci" has expired`
		}
		a.cast(a.approve(opened.Mutation, 4))
		if got := a.fate(opened.Mutation); got != want {
			t.Errorf("meanwhile it was %q: the motion is %s", meanwhile, got)
		}
	}
}

// TestP45BadGrantsReachNoBlock: a bundle with grants that are no chain to its author is invalid.
func TestP45BadGrantsReachNoBlock(t *testing.T) {
	w := newGrantTest(t)
	forged := func(change func(*Grant)) []byte {
		var g Grant
		if err := canon.Decode(w.grant(99, 50), &g); err != nil {
			t.Fatal(err)
		}
		change(&g)
		return g.Encode()
	}
	raw := func(g Grant) []byte { // signed, whatever it holds
		g.By = testKey(t, 99).Public()
		g.Signature = testKey(t, 99).Sign(votes.ContextGrant, g.signingBytes())
		return g.Encode()
	}
	good := Grant{Scope: w.g.Hash(), To: testKey(t, 50).Public(), Name: "ci", NotAfter: w.now.Add(time.Hour)}
	with := func(change func(*Grant)) []byte {
		g := good
		change(&g)
		return raw(g)
	}
	for name, chain := range map[string][][]byte{
		"a field changed":       {forged(func(g *Grant) { g.NotAfter++ })},
		"another signer":        {forged(func(g *Grant) { g.By = testKey(t, 97).Public() })},
		"no signature":          {forged(func(g *Grant) { g.Signature = nil })},
		"garbage":               {[]byte("grant")},
		"trailing bytes":        {append(w.grant(99, 50), 0)},
		"another holder":        {w.grant(99, 51)},
		"a gap":                 {w.grant(99, 51), w.grant(52, 50)},
		"the wrong order":       {w.grant(51, 50), w.grant(99, 51)},
		"another scope":         {with(func(g *Grant) { g.Scope = aweigh.ScopeID{1} })},
		"no end":                {with(func(g *Grant) { g.NotAfter = 0 })},
		"no name":               {with(func(g *Grant) { g.Name = "" })},
		"a record alone":        {with(func(g *Grant) { g.Record = []byte("/x") })},
		"an object alone":       {with(func(g *Grant) { g.Object = aweigh.UID{1} })},
		"a long record":         {with(func(g *Grant) { g.Record, g.Object = make([]byte, 2000), aweigh.UID{1} })},
		"prefixes out of order": {with(func(g *Grant) { g.Prefixes = [][]byte{[]byte("/b"), []byte("/a")} })},
		"a long chain":          {w.grant(99, 51), w.grant(51, 52), w.grant(52, 53), w.grant(53, 54), w.grant(54, 50)},
	} {
		w.author = testKey(t, 50)
		m := w.put("/a/x", "1")
		m.Grants = chain
		if _, err := Sign(w.author, w.g.Policy.Limits, m); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.author = testKey(t, 50)
	one, two := w.put("/a/x", "1"), w.put("/a/y", "1")
	one.Grants = [][]byte{raw(good)}
	if _, err := Sign(w.author, w.g.Policy.Limits, one, two); !errors.Is(err, ErrInvalid) {
		t.Errorf("different grants in one bundle: %v", err)
	}
	one, two = w.put("/a/x", "1"), w.put("/a/y", "1")
	for _, m := range []*Mutation{&one, &two} {
		m.Grants = [][]byte{with(func(g *Grant) { g.NotAfter = one.ValidUntil })}
	}
	two.ValidUntil++
	if _, err := Sign(w.author, w.g.Policy.Limits, one, two); !errors.Is(err, ErrInvalid) {
		t.Errorf("the second of a bundle is valid for longer than its grant: %v", err)
	}
	decision := w.mutation(Withdraw, Withdrawal{})
	decision.Grants = [][]byte{raw(good)}
	if _, err := Sign(w.author, w.g.Policy.Limits, decision); !errors.Is(err, ErrInvalid) {
		t.Errorf("a withdrawal with grants: %v", err)
	}
	// What the author signed is what peers verify.
	b, err := Sign(w.author, w.g.Policy.Limits, one)
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(_ votes.PublicKey, c votes.Context, _, _ []byte) error {
		if c == votes.ContextGrant {
			return votes.ErrForged
		}
		return nil
	}
	if _, err := CheckBundle(bytes.Clone(b.Raw()), w.g.Policy.Limits, refuse); !errors.Is(err, ErrInvalid) {
		t.Errorf("a grant that does not verify: %v", err)
	}
}

// TestP45GrantsCount: a mutation pays for its grants, and the holders of one author's grants are one author in turns.
func TestP45GrantsCount(t *testing.T) {
	w := newGrantTest(t)
	w.author = testKey(t, 50)
	plain, granted := w.put("/a/x", "1"), w.put("/a/x", "1")
	granted.Grants = [][]byte{w.grant(99, 51), w.grant(51, 50)}
	a, b := w.reserving(0, plain), w.reserving(0, granted)
	if more := b.Cost() - a.Cost(); more != 2*grantUnits {
		t.Errorf("two grants cost %d units", more)
	}
	if got := b.Mutations()[0].Principal(); got != testKey(t, 99).Public().ID() {
		t.Errorf("the principal is %s", got)
	}
	if got := a.Mutations()[0].Principal(); got != w.author.Public().ID() {
		t.Errorf("without grants, the principal is %s", got)
	}
}

// TestP45RecordsArePaid: a look at a large record costs what other looks at it do.
func TestP45RecordsArePaid(t *testing.T) {
	w := newGrantTest(t)
	w.does(97, w.put("/tokens/ci", strings.Repeat("x", 1<<20)))
	m := w.put("/a/x", "1")
	m.Grants = [][]byte{w.grant(99, 50, func(g *Grant) { g.Record, g.Object = []byte("/tokens/ci"), w.uid("/tokens/ci") })}
	w.author = testKey(t, 50)
	for _, c := range []struct {
		reserve int64
		want    Code
	}{{100, Exceeded}, {300, Applied}} {
		w.now = w.now.Add(time.Second)
		if out := w.execute(w.block([]*CheckedBundle{w.reserving(c.reserve, m)})).Outcomes[0]; out.Code != c.want {
			t.Errorf("with a reserve of %d units: %s: %q", c.reserve, out.Code, out.Reason)
		}
	}
}
