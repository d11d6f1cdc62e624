package scope

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mr-tron/base58"

	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// withAuthors is a world whose policy has authors and rules; keys 99 and 98 are its authors "alice" and "bob".
func withAuthors(t fataler, rules []action.Rule, authors ...Author) *world {
	t.Helper()
	g, _ := testGenesis(t, 4)
	g.Policy.Authors = authors
	for _, r := range rules {
		g.Policy.Actions = g.Policy.Actions.With(r)
	}
	return newWorldOf(t, g)
}

func alice(t fataler, verbs []string, prefixes ...string) Author {
	return author(t, "alice", 99, verbs, prefixes...)
}

func author(t fataler, name string, key byte, verbs []string, prefixes ...string) Author {
	a := Author{Name: name, Who: OneKey, Key: testKey(t, key).Public(), Verbs: verbs}
	for _, p := range prefixes {
		a.Prefixes = append(a.Prefixes, []byte(p))
	}
	return a
}

var open = Author{Name: "zany", Who: Anyone}

// TestP44AuthorsChangeWhatTheirEntriesCover: every class of mutations, inside and outside of what the entries of its
// author cover. A denied mutation changes no key.
func TestP44AuthorsChangeWhatTheirEntriesCover(t *testing.T) {
	pay := action.Rule{Verb: "pay", Class: action.Write}
	own := action.Rule{Verb: "own", Class: action.Claim}
	for _, c := range []struct {
		name  string
		entry []Author
		make  func(w *world) Mutation
		why   string // empty: it is permitted
	}{
		{"everything", []Author{alice(t, nil)}, func(w *world) Mutation { return w.put("/x", "1") }, ""},
		{"another key", []Author{author(t, "bob", 98, nil)}, func(w *world) Mutation { return w.put("/x", "1") }, "does not list this author"},
		{"anchors alone", DefaultAuthors(), func(w *world) Mutation { return w.put("/x", "1") }, "does not list this author"},
		{"anyone", []Author{open}, func(w *world) Mutation { return w.put("/x", "1") }, ""},
		{"its prefix", []Author{alice(t, nil, "/a/")}, func(w *world) Mutation { return w.put("/a/1", "1") }, ""},
		{"the key before its prefix", []Author{alice(t, nil, "/a/")}, func(w *world) Mutation { return w.put("/a", "1") }, `put "/a"`},
		{"another prefix", []Author{alice(t, nil, "/a/")}, func(w *world) Mutation { return w.put("/b/1", "1") }, `put "/b/1"`},
		{"one of two prefixes", []Author{alice(t, nil, "/a/", "/b/")}, func(w *world) Mutation { return w.put("/b/1", "1") }, ""},
		{"entries add up", []Author{alice(t, []string{VerbDelete}, "/a/"), author(t, "alice2", 99, []string{VerbPut}, "/b/")},
			func(w *world) Mutation { return w.ops(del("/a/1", ""), put("/b/1", "1")) }, ""},
		{"entries do not mix", []Author{alice(t, []string{VerbDelete}, "/a/"), author(t, "alice2", 99, []string{VerbPut}, "/b/")},
			func(w *world) Mutation { return w.put("/a/1", "1") }, `put "/a/1"`},
		{"a put beside it", []Author{alice(t, nil, "/a/")}, func(w *world) Mutation { return w.ops(put("/a/1", "1"), put("/c", "1")) }, `put "/c"`},
		{"a put within", []Author{alice(t, nil, "/a/")}, func(w *world) Mutation {
			return w.ops(Op{Kind: OpTxn, Txn: &Txn{Success: []Op{put("/c", "1")}}})
		}, `put "/c"`},
		{"reads are free", []Author{alice(t, nil, "/a/")}, func(w *world) Mutation { return w.ops(get("/c", ""), put("/a/1", "1")) }, ""},
		{"a range of its prefix", []Author{alice(t, nil, "/a/")}, func(w *world) Mutation { return w.ops(del("/a/", "/a0")) }, ""},
		{"a range beyond", []Author{alice(t, nil, "/a/")}, func(w *world) Mutation { return w.ops(del("/a/", "/a1")) }, `delete "/a/"`},
		{"a range to the end", []Author{alice(t, nil, "/a/")}, func(w *world) Mutation { return w.ops(del("/a/", "\x00")) }, `delete "/a/"`},
		{"no deletions", []Author{alice(t, []string{VerbPut})}, func(w *world) Mutation { return w.ops(del("/a/1", "")) }, `delete "/a/1"`},
		{"a verb", []Author{alice(t, []string{"pay"}, "/a/")}, func(w *world) Mutation { return w.act("pay", action.Write, "/a/1", "5") }, ""},
		{"a verb elsewhere", []Author{alice(t, []string{"pay"}, "/a/")}, func(w *world) Mutation { return w.act("pay", action.Write, "/b/1", "5") }, `pay "/b/1"`},
		{"put for a verb", []Author{alice(t, []string{"pay"}, "/a/")}, func(w *world) Mutation { return w.put("/a/1", "5") }, `put "/a/1"`},
		{"a verb for put", []Author{alice(t, []string{VerbPut})}, func(w *world) Mutation { return w.act("pay", action.Write, "/a/1", "5") }, `pay "/a/1"`},
		{"a claim", []Author{alice(t, []string{"own"}, "/b/")}, func(w *world) Mutation { return w.act("own", action.Claim, "/b/0", "") }, ""},
		{"a claim elsewhere", []Author{alice(t, []string{"own"}, "/a/")}, func(w *world) Mutation { return w.act("own", action.Claim, "/b/0", "") }, `own "/b/0"`},
		{"a lease", []Author{alice(t, []string{VerbLease})}, func(w *world) Mutation { return w.grant(3, 600) }, ""},
		{"no lease", []Author{alice(t, []string{VerbPut})}, func(w *world) Mutation { return w.grant(3, 600) }, "to lease"},
		{"compaction", []Author{alice(t, []string{VerbCompact})}, func(w *world) Mutation { return w.compaction(1) }, ""},
		{"compaction of a part", []Author{alice(t, nil, "/a/")}, func(w *world) Mutation { return w.compaction(1) }, "to compact"},
		{"a name", []Author{alice(t, []string{VerbAlias}, "/b/")}, func(w *world) Mutation { return w.naming(Naming{Kind: Move, Key: []byte("/b/0"), To: []byte("/b/2")}) }, ""},
		{"a name that leaves", []Author{alice(t, nil, "/b/")}, func(w *world) Mutation { return w.naming(Naming{Kind: Move, Key: []byte("/b/0"), To: []byte("/c/2")}) }, `alias "/c/2"`},
		{"a name that comes", []Author{alice(t, nil, "/c/")}, func(w *world) Mutation { return w.naming(Naming{Kind: Bind, Key: []byte("/b/0"), To: []byte("/c/2")}) }, `alias "/b/0"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := withAuthors(t, []action.Rule{pay, own}, append(c.entry, author(t, "zz", 97, nil))...)
			w.author = testKey(t, 97)
			w.step(w.put("/b/0", "first"), w.put("/a/9", "first"))
			w.author = testKey(t, 99)
			before := w.state.Head()
			out := w.step(c.make(w)).Outcomes[0]
			if c.why == "" {
				if out.Code != Applied {
					t.Fatalf("%s: %s", out.Code, out.Reason)
				}
				return
			}
			if err := Failure(out.Reason); out.Code != Failed || !errors.Is(err, ErrDenied) || !strings.Contains(out.Reason, c.why) {
				t.Fatalf("%s: %s; want a denial with %q", out.Code, out.Reason, c.why)
			}
			if after := w.state.Head(); after.Revision != before.Revision || after.Bytes != before.Bytes || after.Leases != before.Leases {
				t.Errorf("a denied mutation changed the state: revision %d to %d", before.Revision, after.Revision)
			}
		})
	}
}

// TestP44AliasesDoNotExtendRights: a put under one name of an object needs rights to all its names.
func TestP44AliasesDoNotExtendRights(t *testing.T) {
	w := withAuthors(t, nil, alice(t, nil, "/pub/"), author(t, "root", 97, nil))
	w.author = testKey(t, 97)
	w.step(w.put("/sec/a", "first"))
	w.step(w.naming(Naming{Kind: Bind, Key: []byte("/sec/a"), To: []byte("/pub/a")}))
	w.author = testKey(t, 99)
	if out := w.step(w.put("/pub/a", "stolen")).Outcomes[0]; out.Code != Failed || !strings.HasSuffix(out.Reason, "to put another alias of the object") {
		t.Errorf("%s: %s", out.Code, out.Reason)
	}
	if out := w.step(w.put("/sec/b", "own")).Outcomes[0]; out.Code != Failed || !strings.HasSuffix(out.Reason, `to put "/sec/b"`) {
		t.Errorf("a key that the mutation names: %s: %s", out.Code, out.Reason)
	}
	within := []Compare{{Target: OnVersion, Relation: Greater, Key: []byte("/"), End: []byte("0"), Number: 0}}
	x := Txn{Compare: within, Success: []Op{{Kind: OpPut, Key: []byte("/pub/a"), Value: []byte("stolen")}}}
	if out := w.step(w.mutation(Write, x)).Outcomes[0]; out.Code != Failed || strings.Contains(out.Reason, "/sec/a") {
		t.Errorf("a range that it compares: %s: %s", out.Code, out.Reason)
	}
	if got := w.value("/sec/a"); got != "first" {
		t.Errorf("it is %q now", got)
	}
}

// TestP44LeasesDoNotExtendRights: revoking a lease deletes its keys, and needs rights to delete them.
func TestP44LeasesDoNotExtendRights(t *testing.T) {
	w := withAuthors(t, nil, alice(t, nil, "/pub/"), author(t, "root", 97, nil))
	w.author = testKey(t, 97)
	w.step(w.grant(7, 600), w.ops(leased("/sec/a", "first", 7)))
	w.author = testKey(t, 99)
	if out := w.step(w.mutation(Lease, LeaseRequest{Kind: LeaseRevoke, IDs: []int64{7}})).Outcomes[0]; out.Code != Failed || !strings.HasSuffix(out.Reason, "to delete a key of the lease") {
		t.Errorf("%s: %s", out.Code, out.Reason)
	}
}

// TestP44MotionsNeedRightsAtTheirEnd: a motion whose author lost its rights meanwhile is void, however many approve.
func TestP44MotionsNeedRightsAtTheirEnd(t *testing.T) {
	for _, kept := range []bool{true, false} {
		w := newAssembly(t, 4, func(p *Policy) { p.Authors = []Author{alice(t, nil), {Name: "anchors", Who: Anchors}} })
		w.author = testKey(t, 99)
		id := w.propose(w.put("/secrets/a", "1"))
		p := w.g.Policy
		p.EpochBlocks++
		if !kept {
			p.Authors = DefaultAuthors()
		}
		w.author = w.keys[0]
		out := w.step(w.mutation(Govern, Decision{Kind: SetPolicy, Policy: &p})).Outcomes[0]
		w.cast(w.approve(out.Mutation, 4)[1:])
		w.turn()
		w.cast(w.approve(id, 4))
		want, value := "void: "+reason(ErrNoAuthor), ""
		if kept {
			want, value = "carried", "1"
		}
		if got := w.fate(id); got != want || w.value("/secrets/a") != value {
			t.Errorf("with an entry kept (%v), the motion is %s, want %s; the key holds %q", kept, got, want, w.value("/secrets/a"))
		}
	}
}

// TestP44AnchorsAndTheirNodesAreAuthors: an entry for anchors permits both of their keys, and no others.
func TestP44AnchorsAndTheirNodesAreAuthors(t *testing.T) {
	g, keys := testGenesis(t, 4)
	g.Policy.Authors = DefaultAuthors()
	node := testKey(t, 60)
	g.Anchors[1].Peer = base58.Encode(append([]byte("\x00\x24\x08\x01\x12\x20"), node.Public().Bytes...))
	w := newWorldOf(t, g)
	for _, key := range []votes.PrivateKey{keys[0], node} {
		w.author = key
		if out := w.step(w.put("/x", "1")).Outcomes[0]; out.Code != Applied {
			t.Errorf("%s: %s", out.Code, out.Reason)
		}
	}
	w.author = testKey(t, 61)
	if out := w.step(w.put("/x", "2")).Outcomes[0]; out.Code != Failed {
		t.Errorf("an unlisted author's put: %s", out.Code)
	}
}

// TestP44UsersChangeByAnchorsThatMay: users and roles are changed by an anchor, or its node, that the policy lets.
func TestP44UsersChangeByAnchorsThatMay(t *testing.T) {
	for name, c := range map[string]struct {
		authors []Author
		by      int // anchor, or 4: another key
		want    error
	}{
		"an anchor of the default":      {DefaultAuthors(), 0, nil},
		"an anchor that may put alone":  {[]Author{{Name: "anchors", Who: Anchors, Verbs: []string{VerbPut}}}, 0, ErrDenied},
		"an anchor that may below /a/":  {[]Author{{Name: "anchors", Who: Anchors, Prefixes: [][]byte{[]byte("/a/")}}}, 0, ErrDenied},
		"one that may change users":     {[]Author{{Name: "anchors", Who: Anchors, Verbs: []string{VerbPut, VerbUsers}}}, 0, nil},
		"one that is listed, no anchor": {[]Author{{Name: "all", Who: Anyone}}, 4, ErrAccessAuthor},
		"a rate that is used up":        {[]Author{{Name: "anchors", Who: Anchors, Quota: Quota{Rate: 1}}}, 0, nil},
	} { // order-free: each has its own scope
		g, keys := testGenesis(t, 4)
		g.Policy.Authors = c.authors
		w := newWorldOf(t, g)
		w.skip = true
		w.author = append(keys, testKey(t, 61))[c.by]
		m := w.mutation(Permit, Access{Revision: 2})
		out := w.step(m).Outcomes[0]
		if got := Failure(out.Reason); (out.Code == Applied) != (c.want == nil) || !errors.Is(got, c.want) && !strings.HasPrefix(out.Reason, reason(c.want)) {
			t.Errorf("%s: %s %s, want %v", name, out.Code, out.Reason, c.want)
		}
		e, err := w.state.Epoch()
		if err != nil {
			t.Fatal(err)
		}
		b, err := Sign(w.author, g.Policy.Limits, w.mutation(Permit, Access{Revision: 3}))
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Admits(b); !errors.Is(err, c.want) {
			t.Errorf("%s: admitted: %v, want %v", name, err, c.want)
		}
		if c.authors[0].Quota.Rate == 0 {
			continue
		}
		var many []Mutation
		for i := range 20 {
			many = append(many, w.mutation(Permit, Access{Revision: int64(3 + i)}))
		}
		if all := w.step(many...).Outcomes; all[len(all)-1].Code != Failed || !errors.Is(Failure(all[len(all)-1].Reason), ErrRate) {
			t.Errorf("%s: %s %s", name, all[len(all)-1].Code, all[len(all)-1].Reason)
		}
	}
}

// TestP44PoliciesRefuseAuthorsThatCannotBe: every bound of an entry.
func TestP44PoliciesRefuseAuthorsThatCannotBe(t *testing.T) {
	many := make([]Author, maxAuthors+1)
	for i := range many {
		many[i] = Author{Name: fmt.Sprintf("%05d", i), Who: Anyone}
	}
	with := func(change func(*Author)) []Author {
		a := alice(t, nil, "/a/", "/b/")
		change(&a)
		return []Author{a}
	}
	for name, authors := range map[string][]Author{
		"none":                 nil,
		"too many":             many,
		"twice":                {alice(t, nil), alice(t, nil)},
		"out of order":         {author(t, "bob", 98, nil), alice(t, nil)},
		"no name":              with(func(a *Author) { a.Name = "" }),
		"a name like a word":   with(func(a *Author) { a.Name = "who=any" }),
		"a name of no text":    with(func(a *Author) { a.Name = "\xff" }),
		"a name with a space":  with(func(a *Author) { a.Name = "a b" }),
		"a long name":          with(func(a *Author) { a.Name = strings.Repeat("a", maxAuthorName+1) }),
		"for none":             with(func(a *Author) { a.Who = 0 }),
		"unknown":              with(func(a *Author) { a.Who = Anyone + 1 }),
		"a key for all":        with(func(a *Author) { a.Who = Anyone }),
		"no key":               with(func(a *Author) { a.Key = votes.PublicKey{} }),
		"half a key":           with(func(a *Author) { a.Key.Bytes = a.Key.Bytes[:16] }),
		"prefixes not ordered": with(func(a *Author) { a.Prefixes = [][]byte{[]byte("/b/"), []byte("/a/")} }),
		"one below another":    with(func(a *Author) { a.Prefixes = [][]byte{[]byte("/a/"), []byte("/a/b/")} }),
		"an empty prefix":      with(func(a *Author) { a.Prefixes = [][]byte{{}} }),
		"a long prefix":        with(func(a *Author) { a.Prefixes = [][]byte{[]byte(strings.Repeat("a", 4000))} }),
		"a verb twice":         with(func(a *Author) { a.Verbs = []string{"put", "put"} }),
		"no verb":              with(func(a *Author) { a.Verbs = []string{"Put!"} }),
	} {
		p := OpenPolicy(quorum.BFT)
		if p.Authors = authors; !errors.Is(p.Check(), ErrInvalid) {
			t.Errorf("%s: %v", name, p.Check())
		}
	}
	p := OpenPolicy(quorum.BFT)
	if p.Authors = with(func(*Author) {}); p.Check() != nil {
		t.Error(p.Check())
	}
	for _, verb := range AuthorVerbs {
		p := OpenPolicy(quorum.BFT)
		if p.Actions = p.Actions.With(action.Rule{Verb: verb, Class: action.Write}); !errors.Is(p.Check(), ErrInvalid) {
			t.Errorf("an action %s, which every author with the verb could do: %v", verb, p.Check())
		}
	}
}

// TestP44RightsEndWithTheEpoch: a decision that removes an author holds from the block that ends the epoch on: no block
// after the one that carries it holds a change by that author.
func TestP44RightsEndWithTheEpoch(t *testing.T) {
	r := newRealm(t, func(p *Policy) { p.Authors = []Author{alice(t, nil), {Name: "anchors", Who: Anchors}} })
	r.author = testKey(t, 99)
	if out := r.add(r.next(nil, nil, r.reserving(enough, r.put("/x", "1")))).Outcomes[0]; out.Code != Applied {
		t.Fatalf("before: %s: %s", out.Code, out.Reason)
	}
	next := r.g.Policy
	next.Authors = DefaultAuthors()
	for _, name := range []string{"a", "b", "c"} {
		r.approve(name, Decision{Kind: SetPolicy, Policy: &next})
	}
	r.turn()
	if out := r.add(r.next(nil, nil, r.reserving(enough, r.put("/x", "2")))).Outcomes[0]; !strings.Contains(out.Reason, "does not list this author") {
		t.Errorf("after: %s: %s", out.Code, out.Reason)
	}
	if got := r.value("/x"); got != "1" {
		t.Errorf("it is %q", got)
	}
}

// TestP44PrefixesAreFound: the search among the prefixes of an entry finds what a walk through all of them does.
func TestP44PrefixesAreFound(t *testing.T) {
	a := alice(t, nil, "\x00", "/a/", "/b", "/c/d/", "/c/e", "\xff")
	keys := []string{"\x00", "\x00\x01", "\x01", "/", "/a", "/a/", "/a/x", "/a0", "/b", "/b/x", "/c/", "/c/d/", "/c/d/\xff", "/c/e", "/d", "\xfe\xff", "\xff", "\xff\xff"}
	for _, key := range keys {
		for _, end := range append(keys, "", "\x00", "/a0", "/c") {
			want := slices.ContainsFunc(a.Prefixes, func(prefix []byte) bool { return Covers(prefix, []byte(key), []byte(end)) })
			if got := a.covers([]byte(key), []byte(end)); got != want {
				t.Errorf("%q to %q: %v, want %v", key, end, got, want)
			}
		}
	}
}

// TestP44EntryAnswersAsExecutionDoes: leases and compactions are of no key.
func TestP44EntryAnswersAsExecutionDoes(t *testing.T) {
	for _, c := range []struct {
		entry Author
		verb  string
		want  bool
	}{
		{alice(t, []string{VerbLease}, "/a/"), VerbLease, true},
		{alice(t, []string{VerbPut}), VerbLease, false},
		{alice(t, []string{VerbCompact}, "/b/"), VerbCompact, false},
		{alice(t, []string{VerbCompact}), VerbCompact, true},
		{alice(t, nil, "/a/"), VerbPut, false},
		{alice(t, nil, "/b/"), VerbPut, true},
	} {
		p := Policy{Authors: []Author{c.entry}}
		if got := p.Rights(c.entry.Key.ID(), false).Entry(c.verb, []byte("/b/x")); (got != nil) != c.want {
			t.Errorf("%v %q: %v", c.entry.Verbs, c.verb, got)
		}
	}
}
