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

// name executes a naming. The response names the object.
func (m *Model) name(mut *scope.CheckedMutation) ([]scope.Response, error) {
	n := mut.Naming
	for _, key := range [][]byte{n.Key, n.To, n.From} {
		if len(key) > 0 && !m.owns(key, nil) {
			return nil, scope.ErrElsewhere
		}
	}
	v, there := m.keys()[string(n.Key)]
	if n.Kind != scope.Fork && (!there || v.UID != n.Object && !n.Object.IsZero()) {
		return nil, scope.ErrUnnamed
	}
	m.block.room, m.block.reach = make(map[int64]volume), nil
	all := m.renames(n, v)
	if n.Kind == scope.Fork && !m.mayCopy(mut, n.From) {
		return nil, fmt.Errorf("%w, or to read it", m.denied(mut, ask{"alias", n.From, nil}))
	}
	if failure := m.permitted(mut, all); failure != nil {
		return nil, failure
	}
	if a, failure := m.asked(all, ""); a != nil || failure != nil {
		return nil, scope.ErrApproval
	}
	if n.Kind != scope.Unbind && m.full() {
		return nil, scope.ErrNoSpace
	}
	resp := scope.Response{Kind: scope.OpPut, UID: v.UID}
	var failure error
	switch n.Kind {
	case scope.Bind, scope.Move:
		failure = m.bind(n, v)
	case scope.Unbind:
		m.remove(v, "")
	case scope.Fork:
		failure = m.fork(n, &resp)
	case scope.Rollback:
		failure = m.rollback(n)
	}
	if failure != nil {
		return nil, failure
	}
	resp.Revision = m.revision()
	return []scope.Response{resp}, nil
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
	case scope.Unbind:
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

func (m *Model) bind(n *scope.Naming, v scope.KeyValue) error {
	now, to, o := m.block.Header.Time, string(n.To), m.named(v)
	if failure := m.free(to, v.Value); failure != nil {
		return failure
	}
	switch {
	case n.Until != 0 && (n.Until <= now || n.Until.Sub(now) > scope.MaxRedirect):
		return scope.ErrUntil
	case n.Until != 0 && int64(len(m.view.redirects)) >= m.bounds.Redirects:
		return scope.ErrRedirects
	case n.Kind == scope.Bind && len(o.held) >= m.bounds.Aliases:
		return scope.ErrAliases
	}
	before := int64(0)
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
	return nil
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

func (m *Model) fork(n *scope.Naming, resp *scope.Response) error {
	v, failure := m.version(n)
	if failure == nil {
		failure = m.free(string(n.To), v.Value)
	}
	if failure != nil {
		return failure
	}
	delete(m.view.redirects, string(n.To))
	resp.UID = m.uid()
	m.view.objects[resp.UID] = object{
		parent: &scope.Parent{Object: n.Object, Key: n.From, Revision: n.Revision, Sub: n.Sub}, held: []held{{key: string(n.To)}},
	}
	m.write(scope.KeyValue{Key: n.To, Value: v.Value, Version: 1, UID: resp.UID}, lineage.Entry{Class: lineage.Insert, Prior: v.Digest()})
	return nil
}

func (m *Model) rollback(n *scope.Naming) error {
	v, failure := m.version(n)
	op := scope.Op{Kind: scope.OpPut, Key: n.Key, Value: v.Value, IgnoreLease: true}
	if failure == nil {
		failure = m.checkPut(&op)
	}
	if failure != nil {
		return failure
	}
	m.put(&op, new(scope.Response))
	return nil
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
