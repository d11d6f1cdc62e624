package scope

import (
	"bytes"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
)

// nameModel is the oracle of names: objects with their aliases and contents in
// plain Go maps. It has no versions, revisions or records.
type nameModel struct {
	keys    map[string]aweigh.UID
	objects map[aweigh.UID]*nameObject // also those that are retired
	moved   map[string]nameMoved
}

type nameObject struct {
	aliases  []string
	contents []string
	parent   aweigh.UID
}

type nameMoved struct {
	object aweigh.UID
	until  aweigh.Instant
}

func newNameModel() *nameModel {
	return &nameModel{keys: make(map[string]aweigh.UID), objects: make(map[aweigh.UID]*nameObject), moved: make(map[string]nameMoved)}
}

// create makes a key the name of a new object; false means that its UID existed before.
func (m *nameModel) create(key, value string, u, parent aweigh.UID) bool {
	if m.objects[u] != nil {
		return false
	}
	m.objects[u] = &nameObject{contents: []string{value}, parent: parent}
	m.join(key, u)
	return true
}

func (m *nameModel) join(key string, u aweigh.UID) {
	m.keys[key] = u
	m.objects[u].aliases = append(m.objects[u].aliases, key)
	delete(m.moved, key)
}

func (m *nameModel) leave(key string) {
	o := m.objects[m.keys[key]]
	o.aliases = slices.DeleteFunc(o.aliases, func(k string) bool { return k == key })
	delete(m.keys, key)
}

func (m *nameModel) write(u aweigh.UID, value string) {
	m.objects[u].contents = append(m.objects[u].contents, value)
}

// naming carries out a Naming, or returns why not. content is that of the
// version that it names, made the UID of a fork.
func (m *nameModel) naming(n *Naming, now aweigh.Instant, content string, made aweigh.UID) error {
	named := func(k []byte) bool { _, ok := m.keys[string(k)]; return ok }
	switch u := m.keys[string(n.Key)]; {
	case n.Kind == Fork:
	case !named(n.Key) || u != n.Object && !n.Object.IsZero():
		return ErrUnnamed
	}
	u := n.Object
	if u.IsZero() {
		u = m.keys[string(n.Key)]
	}
	if n.Kind != Unbind && n.Kind != Rollback && named(n.To) {
		return ErrNamed
	}
	switch n.Kind {
	case Bind:
		if len(m.objects[u].aliases) >= MaxAliases {
			return ErrAliases
		}
		m.join(string(n.To), u)
	case Move:
		if n.Until != 0 && (n.Until <= now || n.Until > now.Add(MaxRedirect)) {
			return ErrUntil
		}
		m.leave(string(n.Key))
		m.join(string(n.To), u)
		if n.Until != 0 {
			m.moved[string(n.Key)] = nameMoved{u, n.Until}
		}
	case Unbind:
		m.leave(string(n.Key))
	case Fork:
		m.create(string(n.To), content, made, u)
	case Rollback:
		m.write(u, content)
	}
	return nil
}

// check compares all that can be asked about names with the model.
func (m *nameModel) check(t *rapid.T, w *world) {
	t.Helper()
	res, err := w.state.Range([]byte{0}, []byte{0}, Range{})
	if err != nil || len(res.Kvs) != len(m.keys) {
		t.Fatalf("%d keys, want %v (%v)", len(res.Kvs), m.keys, err)
	}
	for i := range res.Kvs {
		v := &res.Kvs[i]
		if o := m.objects[v.UID]; m.keys[string(v.Key)] != v.UID || string(v.Value) != o.contents[len(o.contents)-1] {
			t.Fatalf("%q names %s with %q, want %s with %q", v.Key, v.UID, v.Value, m.keys[string(v.Key)], o.contents)
		}
	}
	for u, o := range m.objects { // order-free: each is checked alone
		m.checkObject(t, w, u, o)
	}
	for _, key := range someKeys {
		m.checkResolve(t, w, key)
	}
}

func (m *nameModel) checkObject(t *rapid.T, w *world, u aweigh.UID, o *nameObject) {
	t.Helper()
	a, err := w.state.Aliases(u)
	var keys []string
	for _, k := range a.Keys {
		keys = append(keys, string(k))
	}
	if err != nil || !slices.Equal(keys, o.aliases) {
		t.Fatalf("%s is named %q, want %q (%v)", u, keys, o.aliases, err)
	}
	if len(keys) > 0 && (a.Parent != nil) != !o.parent.IsZero() || a.Parent != nil && a.Parent.Object != o.parent {
		t.Fatalf("%s was forked from %+v, want %s", u, a.Parent, o.parent)
	}
	n := int64(len(o.contents))
	err = w.state.Versions(u, func(v Version) bool {
		kv, ok, err := w.state.Content(v)
		switch {
		case err != nil || v.Number != n || v.Entry.Object != u:
			t.Fatalf("%s: version %d, want %d: %+v, %v", u, v.Number, n, v.Entry, err)
		case !ok && (w.state.head.Compacted == 0 || n == int64(len(o.contents)) && len(keys) > 0):
			t.Fatalf("%s: version %d has no content", u, n)
		case ok && string(kv.Value) != o.contents[n-1]:
			t.Fatalf("%s: version %d is %q, want %q", u, n, kv.Value, o.contents[n-1])
		}
		n--
		return true
	})
	if err != nil || n != 0 {
		t.Fatalf("%s: %d versions are missing (%v)", u, n, err)
	}
	if found, err := w.state.UIDs(u.String()[:12], 2); err != nil || len(found) != 1 || found[0] != u {
		t.Fatalf("%s is found as %v (%v)", u, found, err)
	}
	m.checkChain(t, w, u, a.Last, len(keys) > 0)
}

// checkChain holds the whole life of an object against its end: no change of it is
// missing in its chain.
func (m *nameModel) checkChain(t *rapid.T, w *world, u aweigh.UID, last int64, lives bool) {
	t.Helper()
	in := make(map[int64]bool)
	newest := lineage.Class(0)
	err := w.state.Lineage().Chain(last, func(i int64, e lineage.Entry) bool {
		if len(in) == 0 {
			newest = e.Class
		}
		in[i] = e.Object == u
		return true
	})
	if err != nil || (newest == lineage.Delete) == lives {
		t.Fatalf("the chain of %s ends in %s (%v)", u, newest, err)
	}
	for i := range w.state.head.LineageSize {
		if e, _, err := w.state.Lineage().Entry(i); err != nil || (e.Object == u) != in[i] {
			t.Fatalf("entry %d of %s, of the object: %v, is in the chain of %s: %v (%v)", i, e.Class, e.Object == u, u, in[i], err)
		}
	}
}

func (m *nameModel) checkResolve(t *rapid.T, w *world, key string) {
	t.Helper()
	r, ok, err := w.state.Resolve([]byte(key))
	if err != nil {
		t.Fatal(err)
	}
	u, named := m.keys[key]
	left, moved := m.moved[key]
	moved = moved && !named && left.until >= w.state.head.Time
	if moved {
		u = left.object
	}
	if (r.Moved != nil) != moved || moved && r.Moved.Object != u {
		t.Fatalf("%q moved as %+v, want %v", key, r.Moved, moved)
	}
	o := m.objects[u]
	if want := o != nil && len(o.aliases) > 0; ok != want {
		t.Fatalf("%q resolves: %v, want %v", key, ok, want)
	}
	if ok {
		m.checkClaim(t, w, &r)
	}
	if ok && (r.Kv.UID != u || !r.Claims || r.Number != int64(len(o.contents)) || !slices.Contains(o.aliases, string(r.Kv.Key))) {
		t.Fatalf("%q stands for %+v, want version %d of %s", key, r, len(o.contents), u)
	}
}

// checkClaim compares a resolution with the object's own records, and with that of a
// state that has read nothing before.
func (m *nameModel) checkClaim(t *rapid.T, w *world, r *Resolution) {
	t.Helper()
	a, err := w.state.Aliases(r.Kv.UID)
	if err != nil || slices.ContainsFunc(a.Keys, func(k []byte) bool { return bytes.Equal(k, r.Kv.Key) }) != r.Claims {
		t.Fatalf("%q claims: %v, where %s has %q (%v)", r.Kv.Key, r.Claims, r.Kv.UID, a.Keys, err)
	}
	fresh, err := Open(w.r, w.g.Hash())
	if err != nil {
		t.Fatal(err)
	}
	if again, ok, err := fresh.Resolve(r.Kv.Key); err != nil || !ok || again.Kv.UID != r.Kv.UID || again.Number != r.Number || again.Claims != r.Claims {
		t.Fatalf("%q resolves to %+v anew, was %+v (%v)", r.Kv.Key, again, *r, err)
	}
}

// drawNaming is a naming of what is there, or nearly: some are refused.
func drawNaming(t *rapid.T, w *world) Naming {
	n := Naming{Kind: NameKind(rapid.IntRange(int(Bind), int(Rollback)).Draw(t, "naming"))}
	n.Key = drawKey(t)
	if res, err := w.state.Range([]byte{0}, []byte{0}, Range{}); err == nil && len(res.Kvs) > 0 && rapid.IntRange(0, 4).Draw(t, "there") > 0 {
		n.Key = rapid.SampledFrom(res.Kvs).Draw(t, "alias").Key
	}
	if v, ok, err := w.state.newest(n.Key); err == nil && ok {
		n.Object = v.UID
	} else {
		n.Object = aweigh.NewUID(aweigh.Hash{1}, 0)
	}
	switch n.Kind {
	case Bind, Move, Fork:
		n.To = []byte(rapid.SampledFrom(someKeys).Filter(func(k string) bool { return k != string(n.Key) }).Draw(t, "to"))
		if n.Kind == Move && rapid.Bool().Draw(t, "redirected") {
			n.Until = w.now.Add(time.Duration(rapid.IntRange(0, 8).Draw(t, "until")) * time.Second)
		}
	}
	if n.Kind <= Unbind && rapid.Bool().Draw(t, "whichever") {
		n.Object = aweigh.UID{}
	}
	if n.Kind == Fork || n.Kind == Rollback {
		n.From, n.Revision = []byte("a"), 1
		back := rapid.IntRange(0, 3).Draw(t, "back")
		_ = w.state.Versions(n.Object, func(v Version) bool {
			if kv, ok, err := w.state.Content(v); ok && err == nil {
				n.From, n.Revision, n.Sub = kv.Key, kv.ModRevision, kv.Sub
			}
			back--
			return back >= 0
		})
	}
	if n.Kind == Fork {
		n.Key = nil
	}
	return n
}
