package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/sim/scenario"
)

// liars are the anchors that lie, by number.
func liars(r *sim.Result) map[int]bool {
	all := make(map[int]bool)
	for _, a := range r.Liars {
		all[a] = true
	}
	return all
}

// roleTable lists the liars, with their attacks.
func roleTable(r *sim.Result) table {
	t := table{Head: []string{"who", "plays", "which means that it", "when"}}
	for _, role := range r.Scenario.Roles {
		for i, attack := range role.Attacks {
			who, when := "", ""
			if i == 0 {
				who, when = whoOf(role), whenOf(role)
				if len(role.Victims) > 0 {
					when += "; aimed at " + nodes(role.Victims)
				}
			}
			t.Rows = append(t.Rows, []string{who, attack, about(scenario.Attacks, attack), when})
		}
	}
	return t
}

// faultTable reports what else breaks, and when.
func faultTable(s scenario.Scenario) table {
	t := table{Head: []string{"fault", "which means that", "at", "for", "nodes"}}
	for _, f := range s.Faults.Timed {
		lasts, who := "until the end", "drawn"
		if f.For > 0 {
			lasts = brief(f.For)
		}
		switch {
		case len(f.Groups) > 0:
			sides := make([]string, len(f.Groups))
			for i, g := range f.Groups {
				sides[i] = nodes(g)
			}
			who = strings.Join(sides, " | ")
		case len(f.Nodes) > 0:
			who = nodes(f.Nodes)
		}
		t.Rows = append(t.Rows, []string{f.Kind, about(scenario.FaultKinds, f.Kind), brief(f.At), lasts, who})
	}
	return t
}

// about is the description of a name.
func about(all []scenario.Named, name string) string {
	for _, n := range all {
		if n.Name == name {
			return n.About
		}
	}
	return ""
}

// counted are the counts that are not zero, the largest first.
func counted(all []sim.Count) []sim.Count {
	some := slices.DeleteFunc(slices.Clone(all), func(c sim.Count) bool { return c.Count == 0 })
	slices.SortStableFunc(some, func(a, b sim.Count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Name, b.Name))
	})
	return some
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
