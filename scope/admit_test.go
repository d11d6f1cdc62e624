package scope

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/votes"
)

// TestNodesAdmitWhatIsPermitted: a bundle of which most mutations can change nothing by their author's rights does not
// reach a block. What depends on the state does.
func TestNodesAdmitWhatIsPermitted(t *testing.T) {
	other := []Compare{{Target: OnValue, Relation: Equal, Key: []byte("/b/x"), Value: []byte("1")}}
	inner := func(t Txn) Op { return Op{Kind: OpTxn, Txn: &t} }
	for _, c := range []struct {
		name string
		make func(w *world) []Mutation
		why  string // empty: admitted
	}{
		{"a permitted put", func(w *world) []Mutation { return []Mutation{w.put("/a/x", "1")} }, ""},
		{"a read", func(w *world) []Mutation { return []Mutation{w.ops(get("/b/x", ""))} }, ""},
		{"a denied put", func(w *world) []Mutation { return []Mutation{w.put("/b/x", "1")} }, `put "/b/x"`},
		{"a denied deletion", func(w *world) []Mutation { return []Mutation{w.ops(del("/", "0"))} }, `delete "/"`},
		{"a compaction", func(w *world) []Mutation { return []Mutation{w.compaction(1)} }, "to compact"},
		{"a lease", func(w *world) []Mutation { return []Mutation{w.grant(1, 10)} }, "to lease"},
		{"one of two puts", func(w *world) []Mutation { return []Mutation{w.ops(put("/a/x", "1"), put("/b/x", "1"))} }, `put "/b/x"`},
		{"one branch", func(w *world) []Mutation {
			return []Mutation{w.txn(Txn{Compare: other, Success: []Op{put("/b/x", "1")}, Failure: []Op{put("/a/x", "1")}})}
		}, ""},
		{"a branch that is never taken", func(w *world) []Mutation {
			return []Mutation{w.txn(Txn{Success: []Op{put("/b/x", "1")}, Failure: []Op{put("/a/x", "1")}})}
		}, `put "/b/x"`},
		{"both branches", func(w *world) []Mutation {
			return []Mutation{w.txn(Txn{Compare: other, Success: []Op{put("/b/x", "1")}, Failure: []Op{put("/b/y", "1")}})}
		}, `put "/b/x"`},
		{"within", func(w *world) []Mutation {
			return []Mutation{w.ops(inner(Txn{Compare: other, Success: []Op{put("/b/x", "1")}, Failure: []Op{put("/a/y", "1")}}))}
		}, ""},
		{"denied within", func(w *world) []Mutation { return []Mutation{w.ops(inner(Txn{Success: []Op{put("/b/x", "1")}}))} }, `put "/b/x"`},
		{"a name", func(w *world) []Mutation {
			return []Mutation{w.naming(Naming{Kind: Bind, Key: []byte("/a/x"), To: []byte("/b/x")})}
		}, `alias "/a/x"`},
		{"half", func(w *world) []Mutation { return []Mutation{w.put("/b/x", "1"), w.put("/a/x", "1")} }, ""},
		{"most", func(w *world) []Mutation {
			return []Mutation{w.put("/b/x", "1"), w.put("/a/x", "1"), w.put("/b/y", "1")}
		}, `put "/b/x"`},
	} {
		w := withAuthors(t, nil, alice(t, []string{VerbDelete, VerbPut}, "/a/"), author(t, "root", 97, nil))
		w.author = testKey(t, 99)
		b := w.reserving(enough, c.make(w)...)
		denied, err := w.state.Admits(b, w.now)
		if err != nil {
			t.Fatal(err)
		}
		if errors.Is(denied, ErrDenied) != (c.why != "") || denied != nil && !strings.Contains(denied.Error(), c.why) {
			t.Errorf("%s: %v", c.name, denied)
		}
		if c.why != "" && len(b.Mutations()) == 1 { // it would fail
			w.now = w.now.Add(1)
			if out := w.execute(w.block([]*CheckedBundle{b})).Outcomes[0]; out.Code != Failed {
				t.Errorf("%s: it is refused, and would be %s", c.name, out.Code)
			}
		}
	}
}

// TestOutsidersHandInNothing: what needs no entry of the policy needs an anchor, or a motion of its own.
func TestOutsidersHandInNothing(t *testing.T) {
	w := withAuthors(t, nil, alice(t, nil, "/a/"), author(t, "root", 97, nil))
	users := func() Mutation { return w.permit(2) }
	e, err := w.state.Epoch()
	if err != nil {
		t.Fatal(err)
	}
	anchor := e.Roster.Anchors[0].Key.ID()
	retire := func() Mutation { return w.mutation(Govern, Decision{Kind: Retire, Subject: anchor}) }
	evict := func() Mutation { return w.mutation(Govern, Decision{Kind: Evict, Subject: anchor}) }
	gone := func() Mutation { return w.mutation(Withdraw, Withdrawal{Motion: votes.MotionID{1}}) }
	for _, c := range []struct {
		name string
		by   byte
		make func() []Mutation
		why  error // nil: admitted
	}{
		{"users", 50, func() []Mutation { return []Mutation{users()} }, ErrAccessAuthor},
		{"users, by a listed author", 99, func() []Mutation { return []Mutation{users()} }, ErrAccessAuthor},
		{"another one retires an anchor", 50, func() []Mutation { return []Mutation{retire()} }, errRetires},
		{"an eviction", 99, func() []Mutation { return []Mutation{evict()} }, errNoWeight},
		{"an unknown motion", 50, func() []Mutation { return []Mutation{gone()} }, errNoMotion},
		{"an unknown motion, by a listed author", 99, func() []Mutation { return []Mutation{gone()} }, errNoMotion},
		{"a write beside it", 50, func() []Mutation { return []Mutation{w.put("/a/x", "1"), gone()} }, ErrNoAuthor},
	} {
		w.author = testKey(t, c.by)
		denied, err := w.state.Admits(w.reserving(enough, c.make()...), w.now)
		if err != nil {
			t.Fatal(err)
		}
		if c.why == nil && denied != nil || c.why != nil && (!errors.Is(denied, c.why) || !errors.Is(denied, ErrDenied)) {
			t.Errorf("%s: %v", c.name, denied)
		}
	}
}

// TestOutsidersWithdrawTheirOpenMotionsOnce: a key without a seat hands in no withdrawal that would fail.
func TestOutsidersWithdrawTheirOpenMotionsOnce(t *testing.T) {
	g, _ := testGenesis(t, 4)
	g.Policy.Authors = []Author{alice(t, nil)}
	g.Policy.Approvals = []Approval{{Matter: Changes, Num: 1, Den: 2, Window: time.Hour}}
	w := newWorldOf(t, g)
	e, err := w.state.Epoch()
	if err != nil {
		t.Fatal(err)
	}
	opens := func(m Mutation) votes.MotionID {
		t.Helper()
		out := w.step(m).Outcomes[0]
		if _, end, err := w.state.Motion(votes.MotionID(out.Mutation)); out.Code == Failed || end != nil || err != nil {
			t.Fatalf("%s %s", out.Code, out.Reason)
		}
		return votes.MotionID(out.Mutation)
	}
	withdraws := func(id votes.MotionID) Mutation { return w.mutation(Withdraw, Withdrawal{Motion: id}) }
	admits := func(what, why string, all ...Mutation) {
		t.Helper()
		denied, err := w.state.Admits(w.reserving(enough, all...), w.now)
		if err != nil || errors.Is(denied, ErrDenied) != (why != "") || denied != nil && !strings.Contains(denied.Error(), why) {
			t.Errorf("%s: %v, %v", what, denied, err)
		}
	}
	applicant := testKey(t, 50)
	w.author = applicant
	applies := opens(w.mutation(Govern, Admission(w.g.Hash(), applicant, "n50", "peer50", e.Roster.Anchors[0].Key.ID())))
	admits("an application", "reject it", withdraws(applies))
	w.author = testKey(t, 99)
	first, second := opens(w.put("a", "1")), opens(w.put("b", "1"))
	admits("its own", "", withdraws(first))
	admits("two", "", withdraws(first), withdraws(second))
	admits("one again and again", "closed already", withdraws(first), withdraws(first), withdraws(first))
	w.author = applicant
	admits("another author's", "only its author", withdraws(first))
	w.author = testKey(t, 99)
	w.one(withdraws(first))
	admits("a closed one", "closed already", withdraws(first))
}

// TestRevokedGrantsAreNotAdmitted: a node refuses what acts by a grant whose record does not name its object, be it
// revoked or never on record.
func TestRevokedGrantsAreNotAdmitted(t *testing.T) {
	w := newGrantTest(t)
	admitted := func(g []byte) error {
		t.Helper()
		w.author = testKey(t, 50)
		m := w.put("/a/x", "1")
		m.Grants = [][]byte{g}
		denied, err := w.state.Admits(w.reserving(enough, m), w.now)
		if err != nil {
			t.Fatal(err)
		}
		return denied
	}
	recorded := func(u aweigh.UID) []byte {
		return w.grant(99, 50, func(g *Grant) { g.Record, g.Object = []byte("/tokens/ci"), u })
	}
	for range 2 {
		if why := admitted(recorded(aweigh.UID{1})); !errors.Is(why, ErrDenied) {
			t.Errorf("for an object that never was: %v", why)
		}
		w.does(97, w.put("/other", "1"))
	}
	w.does(97, w.put("/tokens/ci", "1"))
	g := recorded(w.uid("/tokens/ci"))
	if why := admitted(g); why != nil {
		t.Errorf("with its record: %v", why)
	}
	w.does(97, w.ops(del("/tokens/ci", "")))
	for i := range 2 {
		if why := admitted(g); !errors.Is(why, ErrDenied) || !strings.Contains(why.Error(), "revoked") {
			t.Errorf("%d: without its record: %v", i, why)
		}
		w.does(97, w.put("/tokens/ci", fmt.Sprint("another object ", i)))
	}
	if why := admitted(recorded(w.uid("/tokens/ci"))); why != nil {
		t.Errorf("a new grant with a record of the same key: %v", why)
	}
}

// TestP45GrantsKeepWhatTheirSignersRule: the holder of a grant changes neither the record that revokes it nor the lists
// of those that may read, unless the grant names them.
func TestP45GrantsKeepWhatTheirSignersRule(t *testing.T) {
	w := grantTest{withAuthors(t, nil,
		Author{Name: "listed", Who: OnList, Verbs: []string{VerbRead}, List: []byte("/observers/")}, author(t, "root", 97, nil))}
	for _, key := range []string{"/tokens/ci", "/tokens/other", "/observers/invites/i", "/x"} {
		w.does(97, w.put(key, "1"))
	}
	record := func(prefixes ...string) func(*Grant) {
		return func(g *Grant) {
			g.Record, g.Object = []byte("/tokens/ci"), w.uid("/tokens/ci")
			for _, p := range prefixes {
				g.Prefixes = append(g.Prefixes, []byte(p))
			}
		}
	}
	whole := [][]byte{w.grant(97, 50, record())}
	part := [][]byte{w.grant(97, 50, record("/"))}
	second := [][]byte{w.grant(97, 51, record()), w.grant(51, 50)}
	named := [][]byte{w.grant(97, 50, record("/observers/", "/tokens/ci"))}
	peers := [][]byte{w.grant(97, 50, record("/observers/peers/"))}
	alias := func(key string) Mutation { return w.naming(Naming{Kind: Bind, Key: []byte(key), To: []byte("/mine")}) }
	for i, c := range []struct {
		what   string
		chain  [][]byte
		m      Mutation
		denied bool
	}{
		{"another key", whole, w.put("/x", "2"), false},
		{"the record of another", whole, w.put("/tokens/other", "2"), false},
		{"the record", whole, w.put("/tokens/ci", "2"), true},
		{"by a prefix", part, w.put("/tokens/ci", "2"), true},
		{"of a grant before", second, w.put("/tokens/ci", "2"), true},
		{"its deletion", whole, w.ops(del("/tokens/ci", "")), true},
		{"that of a range", part, w.ops(del("/", "0")), true},
		{"another name of it", whole, alias("/tokens/ci"), true},
		{"a reader", whole, w.put("/observers/peers/p", "{}"), true},
		{"an invite", part, w.put("/observers/invites/i", "{}"), true},
		{"another name of an invite", whole, alias("/observers/invites/i"), true},
		{"all readers", whole, w.ops(del("/observers/", "/observers0")), true},
		{"a list that it names", named, w.put("/observers/peers/p", "{}"), false},
		{"a part of it", peers, w.put("/observers/peers/q", "{}"), false},
		{"not another", peers, w.put("/observers/invites/i", "{}"), true},
		{"the record that it names", named, w.put("/tokens/ci", "2"), false},
	} {
		c.m.Nonce = fmt.Appendf(nil, "nonce %8d", i)
		out := w.does(50, c.m, c.chain...)
		if denied := errors.Is(Failure(out.Reason), ErrDenied); denied != c.denied || !denied && out.Code != Applied {
			t.Errorf("%s: %s: %q", c.what, out.Code, out.Reason)
		}
	}
}

// TestP44ForksNeedTheirSource: a fork shows under another key what is there, so it takes the right to name that or to
// read it.
func TestP44ForksNeedTheirSource(t *testing.T) {
	for _, c := range []struct {
		name   string
		verbs  []string // of the source
		grant  []string
		denied bool
	}{
		{"none", nil, nil, true},
		{"another one", []string{VerbPut}, nil, true},
		{"to name it", []string{VerbAlias}, nil, false},
		{"to read it", []string{VerbPut, VerbRead}, nil, false},
		{"to read it alone", []string{VerbRead}, nil, false},
		{"to read it alone, not by a grant", []string{VerbRead}, []string{VerbAlias, VerbPut}, true},
		{"to read it alone, by a grant", []string{VerbRead}, []string{VerbAlias, VerbRead}, false},
		{"not by a grant", []string{VerbAlias, VerbPut, VerbRead}, []string{VerbPut}, true},
		{"by a grant to name it", []string{VerbAlias}, []string{VerbAlias}, false},
	} {
		listed := Author{Name: "observers", Who: OnList, Verbs: []string{VerbRead}, List: []byte("/observers/")}
		entries := []Author{alice(t, []string{VerbAlias}, "/a/"), listed, author(t, "root", 97, nil)}
		if c.verbs != nil {
			entries = []Author{entries[0], author(t, "alice2", 99, c.verbs, "/s/"), listed, entries[2]}
		}
		w := grantTest{withAuthors(t, nil, entries...)}
		w.does(97, w.put("/s/x", "secret"))
		at, ok, err := w.state.newest([]byte("/s/x"))
		if err != nil || !ok {
			t.Fatal(err)
		}
		fork := w.naming(Naming{Kind: Fork, Object: at.UID, To: []byte("/a/copy"), From: []byte("/s/x"), Revision: at.ModRevision, Sub: at.Sub})
		by, chain := byte(99), [][]byte(nil)
		if c.grant != nil {
			by, chain = 50, [][]byte{w.grant(99, 50, only("/", c.grant...))}
		}
		out := w.does(by, fork, chain...)
		if denied := errors.Is(Failure(out.Reason), ErrDenied); denied != c.denied || !denied && out.Code != Applied {
			t.Errorf("%s: %s: %q", c.name, out.Code, out.Reason)
		}
	}
}
