package sim

import (
	"slices"
	"testing"

	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
)

// TestChangesWithoutRightsAreSeen narrows the entries of the policy that the watch knows: the changes of a world that
// held to them must break the invariant by their effects.
func TestChangesWithoutRightsAreSeen(t *testing.T) {
	s := scenario.Scenario{
		Network: scenario.Network{Anchors: 4, Authors: []string{"anchors who=anchors", "rest who=any prefix=/k"}},
		Roles:   []scenario.Role{{Attacks: []string{"pose"}, Weight: "budget"}}, Load: scenario.Load{Acts: 120},
	}
	w := newWorld(t, s)
	w.startClients()
	w.Run(w.Scenario.Stop, nil)
	n, right := w.Nodes[0], *w.epochs[0]
	if len(w.watch.broken) > 0 || w.watch.attacks["pose"] == 0 || w.watch.goals["pretence failed"] == 0 {
		t.Fatalf("broken: %v; lies %v; goals %v", w.watch.broken, w.watch.attacks, w.watch.goals)
	}
	again := func() uint64 {
		w.watch.verdicts[Access].Broken = 0
		history := machine.History{Reader: n.Disk, Scope: w.id}
		var log []lineage.Entry
		for i := range n.state().Head().LineageSize {
			e, _, err := n.state().Lineage().Entry(i)
			if err != nil {
				t.Fatal(err)
			}
			log = append(log, e)
		}
		for at := range n.state().Height() {
			b, err := history.Block(at + 1)
			if err != nil {
				t.Fatal(err)
			}
			w.watch.rightful(n, n.state(), b, log)
		}
		return w.watch.verdicts[Access].Broken
	}
	if again() > 0 {
		t.Errorf("broken: %v", w.watch.broken)
	}
	for name, change := range map[string]func(*scope.Author){
		"of another":     func(a *scope.Author) { a.Who = scope.OnList },
		"by a verb":      func(a *scope.Author) { a.Verbs = []string{"compact"} },
		"below a prefix": func(a *scope.Author) { a.Prefixes = [][]byte{[]byte("/other/")} },
	} {
		e := right
		e.Policy.Authors = slices.Clone(right.Policy.Authors)
		for i := range e.Policy.Authors {
			change(&e.Policy.Authors[i])
		}
		w.epochs[0] = &e
		if again() == 0 {
			t.Errorf("%s: no change without a right is seen", name)
		}
	}
}
