package scope

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
)

func (w *world) naming(n Naming) Mutation { return w.mutation(Name, n) }

// uid is the object that a key names.
func (w *world) uid(key string) aweigh.UID {
	w.t.Helper()
	v, ok, err := w.state.newest([]byte(key))
	if err != nil || !ok {
		w.t.Fatalf("%q names nothing (%v)", key, err)
	}
	return v.UID
}

func (w *world) bind(key, to string) Mutation {
	return w.naming(Naming{Kind: Bind, Object: w.uid(key), Key: []byte(key), To: []byte(to)})
}

func (w *world) move(key, to string, until aweigh.Instant) Mutation {
	return w.naming(Naming{Kind: Move, Object: w.uid(key), Key: []byte(key), To: []byte(to), Until: until})
}

// TestNamesAreThoseOfTheModel runs random programs of puts, deletions and namings
// against the oracle: one object an alias, no UID twice, contents and their
// numbers, the chain of every object.
func TestNamesAreThoseOfTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, m := newWorld(t), newNameModel()
		for range rapid.IntRange(1, 14).Draw(t, "blocks") {
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0, 1:
				m.puts(t, w)
			case 2:
				m.deletion(t, w)
			case 3:
				w.step(w.compaction(rapid.Int64Range(1, w.state.Head().Revision).Draw(t, "revision")))
			default:
				m.namings(t, w)
			}
			m.check(t, w)
		}
	})
}

// puts writes under one key, or under two in one transaction.
func (m *nameModel) puts(t *rapid.T, w *world) {
	var ops []Op
	a, b := drawKey(t), drawKey(t)
	ops = append(ops, put(string(a), rapid.StringN(0, 3, 8).Draw(t, "value")))
	if string(a) != string(b) && rapid.Bool().Draw(t, "two") {
		ops = append(ops, put(string(b), rapid.StringN(0, 3, 8).Draw(t, "value")))
	}
	out := w.one(w.ops(ops...))
	for i, op := range ops {
		got := out.Responses[i].UID
		if u, ok := m.keys[string(op.Key)]; ok {
			if got != u {
				t.Fatalf("a put under %q wrote %s, not %s", op.Key, got, u)
			}
			m.write(u, string(op.Value))
		} else if !m.create(string(op.Key), string(op.Value), got, aweigh.UID{}) {
			t.Fatalf("%s came back", got)
		}
	}
}

func (m *nameModel) deletion(t *rapid.T, w *world) {
	key, end := drawKey(t), drawEnd(t)
	gone := int64(0)
	for _, k := range someKeys {
		if _, ok := m.keys[k]; ok && Within([]byte(k), key, end) {
			m.leave(k)
			gone++
		}
	}
	if got := w.one(w.ops(del(string(key), string(end)))).Responses[0].Deleted; got != gone {
		t.Fatalf("%d keys deleted, want %d", got, gone)
	}
}

// namings executes one naming, and maybe the same again in the same block.
func (m *nameModel) namings(t *rapid.T, w *world) {
	n := drawNaming(t, w)
	muts := []Mutation{w.naming(n)}
	if rapid.Bool().Draw(t, "again") {
		muts = append(muts, w.naming(n))
	}
	content, known := "", false
	_ = w.state.Versions(n.Object, func(v Version) bool {
		if kv, ok, err := w.state.Content(v); err == nil && ok && kv.ModRevision == n.Revision && kv.Sub == n.Sub && string(kv.Key) == string(n.From) {
			content, known = string(kv.Value), true
		}
		return true
	})
	for _, out := range w.step(muts...).Outcomes {
		made := aweigh.NewUID(out.Mutation, 0)
		var want error
		if !known && (n.Kind == Fork || n.Kind == Rollback && m.keys[string(n.Key)] == n.Object) {
			want = ErrNoVersion
		} else {
			want = m.naming(&n, w.now, content, made)
		}
		if got := Failure(out.Reason); got != want {
			t.Fatalf("%s of %q to %q: %v, want %v", n.Kind, n.Key, n.To, got, want)
		}
		if want == nil && n.Kind == Fork && out.Responses[0].UID != made {
			t.Fatalf("a fork made %s, want %s", out.Responses[0].UID, made)
		}
	}
}

// TestNamingIsAFunction executes one block twice, on a flat store, on a stack of
// overlays and from its encoding: the same bytes come out.
func TestNamingIsAFunction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flat, deep := newWorld(t), newWorld(t)
		deep.flat = nil
		for range rapid.IntRange(1, 8).Draw(t, "blocks") {
			muts := []Mutation{flat.put(string(drawKey(t)), "v"), flat.naming(drawNaming(t, flat)), flat.naming(drawNaming(t, flat))}
			flat.now = flat.now.Add(time.Second)
			b := flat.block(flat.sign(muts...))
			want := flat.execute(b)
			again, err := DecodeBlock(b.Encode(), deep.g.Policy.Limits, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := deep.execute(again); !reflect.DeepEqual(got.Ops, want.Ops) || got.Head != want.Head {
				t.Fatal("two executions differ")
			}
		}
		if !reflect.DeepEqual(flat.dump(), deep.dump()) {
			t.Fatal("two stores differ")
		}
	})
}

// TestAliasesShowOneContent is a rename and a further alias as clients of keys see
// them: values, versions and events are those of the keys.
func TestAliasesShowOneContent(t *testing.T) {
	w := newWorld(t)
	w.one(w.put("a", "1"))
	w.one(w.put("a", "2"))
	u := w.uid("a")
	w.one(w.bind("a", "b"))
	w.one(w.put("b", "3"))
	w.one(w.move("a", "c", 0))
	if w.uid("b") != u || w.uid("c") != u {
		t.Fatal("another object")
	}
	events, _, err := w.state.Events(4, 100, []byte{0}, []byte{0}, 100)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range events {
		got = append(got, fmt.Sprintf("%d %s %s=%s v%d c%d", e.Kv.ModRevision, e.Class, e.Kv.Key, e.Kv.Value, e.Kv.Version, e.Kv.CreateRevision))
	}
	want := []string{
		"4 insert b=2 v1 c4",
		"5 update b=3 v2 c4", "5 update a=3 v3 c2",
		"6 insert c=3 v1 c6", "6 delete a= v0 c0",
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("events\n got %q\nwant %q", got, want)
	}
	var classes []string
	a, err := w.state.Aliases(u)
	if err != nil {
		t.Fatal(err)
	}
	_ = w.state.Lineage().Chain(a.Last, func(_ int64, e lineage.Entry) bool {
		classes = append(classes, e.Class.String()+" "+string(e.Key))
		return true
	})
	if want := []string{"alias-unbind a", "alias-move c", "alias-follow a", "update b", "alias-bind b", "update a", "insert a"}; !reflect.DeepEqual(classes, want) {
		t.Fatalf("the chain is %q, want %q", classes, want)
	}
}

// TestKeysTellWhatTheyNamedBefore: the object before the one that a key names, past times at which that one had no
// such name; and none once compaction dropped it.
func TestKeysTellWhatTheyNamedBefore(t *testing.T) {
	w := newWorld(t)
	before := func(key string) aweigh.UID {
		t.Helper()
		v, ok, err := w.state.NewestChange([]byte(key))
		if err != nil || !ok {
			t.Fatalf("%v, %v", ok, err)
		}
		u, ok, err := w.state.NamedBefore(&v)
		if err != nil || ok == u.IsZero() {
			t.Fatalf("%s, %v, %v", u, ok, err)
		}
		return u
	}
	w.one(w.put("a", "1"))
	first := w.uid("a")
	w.one(w.put("a", "2"))
	if u := before("a"); !u.IsZero() {
		t.Fatalf("a key that named one object named %s before", u)
	}
	w.one(w.ops(del("a", "")))
	if v, ok, err := w.state.before([]byte("a"), w.state.Head().Revision); ok || err != nil || v.UID != (aweigh.UID{}) || v.ModRevision != 0 {
		t.Fatalf("what a deleted key holds: %+v, %v, %v", v, ok, err)
	}
	if u := before("a"); !u.IsZero() {
		t.Fatalf("a deleted key named %s before", u)
	}
	w.one(w.put("a", "3"))
	second := w.uid("a")
	w.one(w.put("a", "4"))
	if u := before("a"); second == first || u != first {
		t.Fatalf("a key that was made anew named %s before, not %s", u, first)
	}
	w.one(w.move("a", "b", 0)) // and back
	w.one(w.move("b", "a", 0))
	if u := before("a"); w.uid("a") != second || u != first {
		t.Fatalf("a key whose object came back named %s before, not %s", u, first)
	}
	if u := before("b"); !u.IsZero() {
		t.Fatalf("a key that gave its object away named %s before", u)
	}
	w.one(w.compaction(w.state.Head().Revision))
	w.step(w.put("c", "5"))
	if u := before("a"); !u.IsZero() {
		t.Fatalf("after a compaction, the key named %s before", u)
	}
}

// TestNamingsAreBounded: aliases of an object, what a put writes under all of
// them, how long and how often a moved alias leads on.
func TestNamingsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.skip = true
	w.one(w.put("k0", "v"))
	for i := range MaxAliases - 1 {
		w.one(w.bind("k0", fmt.Sprintf("k%d", i+1)))
	}
	fails := func(m Mutation, want error) {
		t.Helper()
		before := w.state.head.Revision
		if out := w.step(m).Outcomes[0]; Failure(out.Reason) != want || w.state.head.Revision != before {
			t.Fatalf("%s: %v, want %v", out.Code, Failure(out.Reason), want)
		}
	}
	fails(w.bind("k0", "more"), ErrAliases)
	big := w.put("k3", strings.Repeat("x", 1<<20))
	need := (MaxAliases-1)*given(1<<20) - mutationUnit - opUnits
	for reserve, want := range map[int64]Code{need - 1: Exceeded, need: Applied} { // order-free: what exceeds changes nothing
		w.now = w.now.Add(time.Second)
		b := w.block([]*CheckedBundle{w.reserving(reserve, big)})
		if res, err := w.state.Execute(b); err != nil || res.Outcomes[0].Code != want {
			t.Fatalf("with a reserve of %d: %+v, %v", reserve, res.Outcomes, err)
		}
	}
	fails(w.move("k0", "more", w.now), ErrUntil)
	fails(w.move("k0", "more", w.now.Add(MaxRedirect+time.Minute)), ErrUntil)
	w.one(w.put("o", "v"))
	w.one(w.move("o", "p", w.now.Add(time.Hour)))
	w.state.named = &names{Objects: w.state.must(t).Objects, Redirects: maxRedirects}
	w.now = w.now.Add(time.Second)
	res, err := w.state.Execute(w.block(w.sign(w.move("p", "q", w.now.Add(time.Hour)))))
	if err != nil || Failure(res.Outcomes[0].Reason) != ErrRedirects {
		t.Fatalf("a redirect too many: %+v, %v", res.Outcomes, err)
	}
}

func (s *State) must(t *testing.T) names {
	t.Helper()
	n, err := s.names()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestRedirectsExpire: a moved alias leads on until its time, and then leaves no
// record.
func TestRedirectsExpire(t *testing.T) {
	w := newWorld(t)
	w.one(w.put("a", "1"))
	w.one(w.move("a", "b", w.now.Add(5*time.Second)))
	w.one(w.move("b", "c", w.now.Add(3*time.Second)))
	if r, ok, err := w.state.Resolve([]byte("a")); err != nil || !ok || string(r.Kv.Key) != "c" || string(r.Moved.To) != "b" {
		t.Fatalf("%+v, %v, %v", r, ok, err)
	}
	if all, err := w.state.Redirects([]byte{0}, []byte{0}, 10); err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	for range 6 {
		w.step()
	}
	if _, ok, err := w.state.Resolve([]byte("a")); ok || err != nil {
		t.Fatalf("a redirect that is over leads on (%v)", err)
	}
	for _, kind := range []byte{atRedirect, atRedirectExpiry} {
		if left := kept(w.r, w.state.space.at(kind)); len(left) > 0 {
			t.Fatalf("left: %q", left)
		}
	}
	if n := w.state.must(t); n.Redirects != 0 || n.Objects != 1 {
		t.Fatalf("%+v", n)
	}
	w.one(w.ops(del("c", "")))
	if n := w.state.must(t); n.Objects != 0 {
		t.Fatalf("%+v", n)
	}
}

// TestNamingsMustBeWellFormed: a naming with more or fewer fields than its kind
// uses is refused.
func TestNamingsMustBeWellFormed(t *testing.T) {
	w := newWorld(t)
	u := aweigh.NewUID(aweigh.Hash{}, 1)
	a, b := []byte("a"), []byte("b")
	long := make([]byte, w.g.Policy.Limits.KeyBytes+1)
	for _, n := range []Naming{
		{}, {Kind: 6, Object: u, Key: a}, {Kind: Fork, To: b, From: a, Revision: 1}, {Kind: Rollback, Key: a, From: a, Revision: 1}, {Kind: Bind, Object: u, Key: a}, {Kind: Bind, Object: u, To: b},
		{Kind: Bind, Object: u, Key: a, To: a}, {Kind: Bind, Object: u, Key: a, To: b, Until: 1}, {Kind: Bind, Object: u, Key: a, To: long},
		{Kind: Move, Object: u, Key: a, To: b, Until: -1}, {Kind: Move, Object: u, Key: long, To: b}, {Kind: Unbind, Object: u, Key: a, To: b},
		{Kind: Unbind, Object: u, Key: a, From: b}, {Kind: Fork, Object: u, Key: a, To: b, From: a}, {Kind: Fork, Object: u, To: b},
		{Kind: Fork, Object: u, To: b, From: a, Revision: -1}, {Kind: Rollback, Object: u, Key: a}, {Kind: Rollback, Object: u, Key: a, From: b, To: b},
		{Kind: Move, Object: u, Key: a, To: b, Sub: 1},
	} {
		if _, err := Sign(w.author, w.g.Policy.Limits, w.naming(n)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", n, err)
		}
	}
	for _, n := range []Naming{
		{Kind: Bind, Key: a, To: b}, {Kind: Bind, Object: u, Key: a, To: b}, {Kind: Move, Object: u, Key: a, To: b, Until: 1}, {Kind: Unbind, Object: u, Key: a},
		{Kind: Fork, Object: u, To: b, From: a, Revision: 1, Sub: 1}, {Kind: Rollback, Object: u, Key: a, From: a, Revision: 7},
	} {
		if _, err := Sign(w.author, w.g.Policy.Limits, w.naming(n)); err != nil {
			t.Errorf("%+v: %v", n, err)
		}
	}
}

// FuzzNamings executes namings from arbitrary encodings on a scope with all kinds
// of names: each accepted naming leaves a state whose digest is that of its
// records.
func FuzzNamings(f *testing.F) {
	u := aweigh.NewUID(aweigh.Hash{}, 1)
	f.Add(canon.Encode(Naming{Kind: Move, Object: u, Key: []byte("a"), To: []byte("b"), Until: 1 << 60}))
	f.Add(canon.Encode(Naming{Kind: Fork, Object: u, To: []byte("b"), From: []byte("a"), Revision: 2}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		w := newWorld(t)
		w.one(w.put("a", "1"))
		w.one(w.bind("a", "b"))
		w.one(w.move("a", "c", w.now.Add(time.Hour)))
		var n Naming
		if canon.Decode(raw, &n) == nil && n.Object == u {
			n.Object = w.uid("b") // so that something can come of it
		}
		m := w.naming(n)
		if n.Kind == 0 {
			m.Content = raw
		}
		c, err := Sign(w.author, w.g.Policy.Limits, m)
		if err != nil {
			return
		}
		w.now = w.now.Add(time.Second)
		w.execute(w.block([]*CheckedBundle{c}))
		res, err := w.state.Range([]byte{0}, []byte{0}, Range{})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range res.Kvs {
			if r, ok, err := w.state.Resolve(v.Key); err != nil || !ok || !r.Claims {
				t.Fatalf("%q: %+v, %v, %v", v.Key, r, ok, err)
			}
		}
	})
}

// TestTheLastAliasRetiresAnObject in one block in which it got, showed and lost
// others, some to a deletion of a range.
func TestTheLastAliasRetiresAnObject(t *testing.T) {
	w := newWorld(t)
	w.one(w.ops(put("a", "1"), put("b", "2")))
	u := w.uid("a")
	w.step(w.bind("a", "c"), w.ops(del("a", "c")), w.put("c", "3"), w.ops(del("c", "")))
	a, err := w.state.Aliases(u)
	if err != nil || len(a.Keys) != 0 || a.Last == 0 {
		t.Fatalf("%+v, %v", a, err)
	}
	if left := kept(w.r, w.state.space.at(atAliases)); len(left) != 0 {
		t.Fatalf("a retired object keeps %q", left)
	}
	if _, _, ok, err := w.state.Object(u); !ok || err != nil {
		t.Fatalf("the object is forgotten (%v)", err)
	}
}
