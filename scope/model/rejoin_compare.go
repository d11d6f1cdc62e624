package model

import (
	"maps"

	"github.com/aweigh/aweigh/scope"
)

// compareIslands compares the islands on record, and what of them was set aside.
func (m *Model) compareIslands(d *Differences, s *scope.State) {
	got, err := s.Islands()
	if d.fail(err, "islands") {
		return
	}
	d.look(len(got) == len(m.islands), "%d islands are on record, want %d", len(got), len(m.islands))
	for i := range got {
		want := m.islands[got[i].ID]
		if d.look(want != nil, "island %s is on record", got[i].ID.Short()); want == nil {
			continue
		}
		d.look(same(got[i].Islanded, want.Islanded), "island %s is %+v, want %+v", got[i].ID.Short(), got[i].Islanded, want.Islanded)
		aside := make(map[string]scope.SetAside)
		err := s.AsideOf(got[i].ID, func(key []byte, is scope.SetAside) bool {
			aside[string(key)] = is
			return true
		})
		if !d.fail(err, "what was set aside") {
			d.look(maps.EqualFunc(aside, want.aside, func(a, b scope.SetAside) bool { return same(a, b) }), "of island %s %+v is set aside, want %+v", got[i].ID.Short(), aside, want.aside)
		}
	}
}
