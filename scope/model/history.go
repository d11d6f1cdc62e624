package model

import (
	"maps"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

// compareObjects looks up every object that there ever was, and its versions: those of the content that keys show now
// or did, from the newest to the first, each once however many names show it.
func (m *Model) compareObjects(d *Differences, s *scope.State) {
	written := make(map[int64]scope.KeyValue) // by its entry
	for _, r := range m.revisions {
		for _, c := range r.events {
			written[c.kv.Entry] = c.kv
		}
	}
	for _, kv := range m.revisions[0].keys { // order-free: each for itself
		written[kv.Entry] = kv
	}
	newest := make(map[aweigh.UID]scope.KeyValue)
	for _, key := range slices.Sorted(maps.Keys(m.keys())) {
		kv := m.keys()[key]
		newest[kv.UID] = kv
	}
	for _, u := range slices.SortedFunc(maps.Keys(m.chains), func(a, b aweigh.UID) int { return slices.Compare(a[:], b[:]) }) {
		_, last, ok, err := s.Object(u)
		if d.fail(err, "object") {
			continue
		}
		d.look(ok && last == m.chains[u], "object %s is there: %v, with %d as its newest entry, want %d", u, ok, last-1, m.chains[u]-1)
		if kv, lives := newest[u]; lives {
			m.compareVersions(d, s, &kv, written)
		}
	}
}

// compareVersions visits the versions of an object that lives.
func (m *Model) compareVersions(d *Differences, s *scope.State, newest *scope.KeyValue, written map[int64]scope.KeyValue) {
	number := m.view.number(*newest)
	first, foreign := number, false
	err := s.Versions(newest.UID, func(v scope.Version) bool {
		kv, made := written[v.Index]
		d.look(made && kv.UID == newest.UID && v.Number == number, "version %d of %s, want %d, is entry %d, of %+v", v.Number, newest.UID, number, v.Index, kv)
		is, ok, err := s.Content(v)
		if d.fail(err, "content"); err == nil {
			d.look(!ok || string(is.Value) == string(kv.Value), "version %d of %s is %q, want %q", number, newest.UID, is.Value, kv.Value)
			d.look(ok || number < first && m.view.Compacted > 0, "version %d of %s has no content", number, newest.UID)
		}
		if number--; v.Entry.Class == lineage.CameHome || v.Entry.Class == lineage.Received { // those between are another scope's
			number, foreign = m.went[v.Entry.Prev-1], v.Entry.Prev == 0
		}
		return len(*d) == 0
	})
	if far := m.walks[newest.UID] > m.bounds.Walked; far || err == scope.ErrFar {
		d.look(far && err == scope.ErrFar, "the %d entries of %s are walked: %v", m.walks[newest.UID], newest.UID, err)
		return
	}
	if !d.fail(err, "versions") && len(*d) == 0 && m.genesis.Descent == nil && !foreign {
		d.look(number == 0, "%s has %d versions, want %d", newest.UID, first-number, first)
	}
}
