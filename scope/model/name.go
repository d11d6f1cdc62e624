package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

// object is one that has, or had, several names, or that was forked.
type object struct {
	parent *scope.Parent
	held   []held // its names, oldest first
}

// held is one name of an object.
type held struct {
	key    string
	before int64 // versions of the object that the key never showed
}

// named is the names of an object; one that was never named but once has the one key alone.
func (m *Model) named(v scope.KeyValue) object {
	if o, ok := m.view.objects[v.UID]; ok {
		o.held = slices.Clone(o.held)
		return o
	}
	return object{held: []held{{key: string(v.Key)}}}
}

// unlist takes a name from an object, and reports whether it has others.
func (m *Model) unlist(u aweigh.UID, key string) (others bool) {
	o, ok := m.view.objects[u]
	if !ok {
		return false
	}
	o.held = slices.DeleteFunc(slices.Clone(o.held), func(h held) bool { return h.key == key })
	if len(o.held) == 0 {
		delete(m.view.objects, u)
		return false
	}
	m.view.objects[u] = o
	return true
}

// follow shows what was written under one name of an object under all others. Each keeps its own lease.
func (m *Model) follow(v scope.KeyValue) {
	for _, h := range m.view.objects[v.UID].held {
		if h.key == string(v.Key) {
			continue
		}
		old := m.block.keys[h.key]
		next := old
		next.Value, next.Version = v.Value, old.Version+1
		m.write(next, lineage.Entry{Class: lineage.AliasFollow, Prior: old.Digest()})
	}
}

// name executes a naming, or lets it wait for approval. The response names the object.
func (m *Model) name(mut *scope.CheckedMutation, out *scope.Outcome) error {
	failure := m.nameable(mut)
	if failure != nil {
		return failure
	}
	a, failure := m.mayName(mut)
	if failure != nil {
		return failure
	}
	apply, failure := m.naming(mut.Naming)
	switch {
	case failure != nil:
		return failure
	case a != nil:
		out.Code = scope.Pending
		return m.open(&motion{mut: mut, Motion: scope.Motion{Approval: *a, Success: true, Basis: m.finds(mut.Naming)}})
	case mut.Patient:
		return scope.ErrPatient
	}
	u := apply()
	out.Responses = []scope.Response{{Kind: scope.OpPut, UID: u, Revision: m.revision()}}
	return nil
}

// nameable reports why there is nothing that a naming could change, or copy.
func (m *Model) nameable(mut *scope.CheckedMutation) error {
	n := mut.Naming
	keys := [][]byte{n.Key, n.To, n.From}
	if n.Kind == scope.Send {
		keys = keys[:1]
	}
	for _, key := range keys {
		if len(key) > 0 && !m.owns(key, nil) {
			return scope.ErrElsewhere
		}
	}
	v, there := m.keys()[string(n.Key)]
	if n.Kind != scope.Fork && (!there || v.UID != n.Object && !n.Object.IsZero()) {
		return scope.ErrUnnamed
	}
	if n.Kind == scope.Fork && !m.mayCopy(mut, n.From) {
		return fmt.Errorf("%w, or to read it", m.denied(mut, ask{"alias", n.From, nil}))
	}
	return nil
}

// mayName reports why a naming is not permitted, and which approval it takes.
func (m *Model) mayName(mut *scope.CheckedMutation) (*scope.Approval, error) {
	n := mut.Naming
	m.block.room, m.block.reach = make(map[int64]volume), nil
	all := m.renames(n, m.keys()[string(n.Key)])
	if failure := m.permitted(mut, all); failure != nil {
		return nil, failure
	}
	return m.askedFor(mut, all, []bool{true})
}

// naming reports why a naming cannot be done now, and how it is.
func (m *Model) naming(n *scope.Naming) (apply func() aweigh.UID, failure error) {
	if n.Kind != scope.Unbind && n.Kind != scope.Send && m.full() {
		return nil, scope.ErrNoSpace
	}
	if n.Kind != scope.Fork && m.departs(n.Key, nil, n.Kind == scope.Unbind) {
		return nil, scope.ErrSent
	}
	v := m.keys()[string(n.Key)]
	var do func()
	switch n.Kind {
	case scope.Bind, scope.Move:
		do, failure = m.bind(n, v)
	case scope.Unbind:
		do = func() { m.remove(v, "") }
	case scope.Fork:
		return m.fork(n)
	case scope.Rollback:
		do, failure = m.rollback(n)
	case scope.Send:
		do, failure = m.send(n, v)
	}
	return func() aweigh.UID { do(); return v.UID }, failure
}

// finds is what a naming found under the keys that it changes, or shows under another name.
func (m *Model) finds(n *scope.Naming) (all []scope.Found) {
	for _, key := range changedBy(n) {
		var f scope.Found
		if v, ok := m.keys()[string(key)]; ok {
			f.Keys, f.Newest = 1, v.ModRevision
		}
		all = append(all, f)
	}
	return all
}

func changedBy(n *scope.Naming) (keys [][]byte) {
	if n.Kind == scope.Send {
		return [][]byte{n.Key}
	}
	for _, key := range [][]byte{n.Key, n.To} {
		if len(key) > 0 {
			keys = append(keys, key)
		}
	}
	return keys
}

// sameNames reports what is not as it was when a motion about a naming opened.
func (m *Model) sameNames(p *motion) error {
	now := m.finds(p.mut.Naming)
	for i, key := range changedBy(p.mut.Naming) {
		if now[i] != p.Basis[i] || m.newer(&scope.Op{Key: key}, p.Revision) {
			return fmt.Errorf("scope: %q was changed after it opened; propose it again", key)
		}
	}
	return nil
}

// mayCopy reports whether a mutation may fork or merge what a key holds.
func (m *Model) mayCopy(mut *scope.CheckedMutation, source []byte) bool {
	reads := ask{"read", source, nil}
	return m.mayDo(mut, "alias", source, nil) || slices.ContainsFunc(m.entriesAbout(mut), reads.does) && m.granting(mut, reads)
}

// renames is what a naming changes, as puts and deletions do.
func (m *Model) renames(n *scope.Naming, v scope.KeyValue) []change {
	switch n.Kind {
	case scope.Bind:
		return append(m.puts(n.Key, 0), m.puts(n.To, 0)...)
	case scope.Fork:
		return m.puts(n.To, 0)
	case scope.Move:
		return append([]change{{key: n.Key, deletes: true}}, m.puts(n.To, 0)...)
	case scope.Unbind, scope.Send:
		return []change{{key: n.Key, deletes: true}}
	}
	return m.puts(n.Key, v.Lease)
}

// free reports why a key cannot come to name an object with a value.
func (m *Model) free(key string, value []byte) error {
	if _, taken := m.keys()[key]; taken {
		return scope.ErrNamed
	}
	if failure := m.spend(given(len(value))); failure != nil {
		return failure
	}
	return m.bill([]byte(key), value)
}

func (m *Model) bind(n *scope.Naming, v scope.KeyValue) (apply func(), failure error) {
	now, to, o := m.block.Header.Time, string(n.To), m.named(v)
	if failure := m.free(to, v.Value); failure != nil {
		return nil, failure
	}
	switch {
	case n.Until != 0 && (n.Until <= now || n.Until.Sub(now) > scope.MaxRedirect):
		return nil, scope.ErrUntil
	case n.Until != 0 && int64(len(m.view.redirects)) >= m.bounds.Redirects:
		return nil, scope.ErrRedirects
	case n.Kind == scope.Bind && len(o.held) >= m.bounds.Aliases:
		return nil, scope.ErrAliases
	}
	return func() { m.bound(n, v, o) }, nil
}

// bound binds or moves: the object has these names.
func (m *Model) bound(n *scope.Naming, v scope.KeyValue, o object) {
	to, before := string(n.To), int64(0)
	for _, h := range o.held {
		if h.key == string(n.Key) {
			before = h.before
		}
	}
	delete(m.view.redirects, to)
	o.held = append(o.held, held{to, before + v.Version - 1})
	m.view.objects[v.UID] = o
	class := lineage.AliasBind
	if n.Kind == scope.Move {
		class = lineage.AliasMove
	}
	m.write(scope.KeyValue{Key: n.To, Value: v.Value, Version: 1, UID: v.UID}, lineage.Entry{Class: class})
	if n.Kind == scope.Move {
		m.remove(v, "")
	}
	if n.Until != 0 {
		m.view.redirects[string(n.Key)] = scope.Redirect{Key: n.Key, To: n.To, Object: v.UID, Until: n.Until}
	}
}

// version is the one that a naming is about: one that can still be read.
func (m *Model) version(n *scope.Naming) (scope.KeyValue, error) {
	v, ok := m.written(n)
	if !ok {
		return v, scope.ErrNoVersion
	}
	return v, m.spend(given(len(v.Value)))
}

func (m *Model) written(n *scope.Naming) (scope.KeyValue, bool) {
	ok := func(v scope.KeyValue) bool {
		return string(v.Key) == string(n.From) && v.ModRevision == n.Revision && v.Sub == n.Sub && v.UID == n.Object
	}
	if n.Revision < m.view.Compacted {
		v, there := m.asOf(m.view.Compacted)[string(n.From)]
		return v, there && ok(v)
	}
	for _, r := range m.revisions {
		for _, c := range r.events {
			if r.number == n.Revision && !c.deleted && ok(c.kv) {
				return c.kv, true
			}
		}
	}
	return scope.KeyValue{}, false
}

func (m *Model) fork(n *scope.Naming) (apply func() aweigh.UID, failure error) {
	v, failure := m.version(n)
	if failure == nil {
		failure = m.free(string(n.To), v.Value)
	}
	return func() aweigh.UID {
		delete(m.view.redirects, string(n.To))
		u := m.uid("")
		m.view.objects[u] = object{
			parent: &scope.Parent{Object: n.Object, Key: n.From, Revision: n.Revision, Sub: n.Sub}, held: []held{{key: string(n.To)}},
		}
		m.write(scope.KeyValue{Key: n.To, Value: v.Value, Version: 1, UID: u}, lineage.Entry{Class: lineage.Insert, Prior: v.Digest()})
		return u
	}, failure
}

func (m *Model) rollback(n *scope.Naming) (apply func(), failure error) {
	v, failure := m.version(n)
	op := scope.Op{Kind: scope.OpPut, Key: n.Key, Value: v.Value, IgnoreLease: true}
	if failure == nil {
		failure = m.checkPut(&op)
	}
	return func() { m.put(&op, new(scope.Response)) }, failure
}

// dropExpiredRedirects drops the redirects that are over, the oldest first, so many at most.
func (m *Model) dropExpiredRedirects(due int) {
	all := m.view.redirects
	over := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(all[a].Until, all[b].Until), cmp.Compare(a, b))
	})
	for _, key := range over {
		if all[key].Until >= m.block.Header.Time || due == 0 {
			return
		}
		delete(all, key)
		due--
	}
}
