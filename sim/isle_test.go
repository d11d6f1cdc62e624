package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
)

// parted is a world of two sides without a quorum that have an island each, as they meet again.
func parted(t *testing.T) *World {
	t.Helper()
	w := newWorld(t, scenario.Scenario{
		Network: scenario.Network{Anchors: 4, Partitions: []string{"prefix=/isle/ share=2/5 after=1s gather=1s window=1m"}},
		Faults:  scenario.Faults{Timed: []scenario.Fault{{Kind: "partition", At: time.Second, For: 4 * time.Second, Groups: [][]int{{0, 1}, {2, 3}}}}},
		Load:    scenario.Load{Isles: 20}, Stop: 6 * time.Second, Heal: &scenario.Heal{Within: 20 * time.Second},
	})
	w.startClients()
	w.scheduleFaults()
	w.startMotions()
	w.startIsles()
	w.Run(5*time.Second, nil)
	if len(w.isles.all) != 2 || len(w.watch.broken) > 0 {
		t.Fatalf("%d islands, %v", len(w.isles.all), w.watch.broken)
	}
	return w
}

// TestIslandsAreHeldToTheirScope breaks the invariant by hand.
func TestIslandsAreHeldToTheirScope(t *testing.T) {
	for name, c := range map[string]struct { // order-free: each is checked alone
		do     func(w *World)
		broken string
	}{
		"nothing": {func(*World) {}, ""},
		"a provisional value in the scope": {func(w *World) {
			op := scope.Op{Kind: scope.OpPut, Key: []byte("/isle/new"), Value: []byte(provisionalMark + "1: 1")}
			w.Nodes[0].Submit(w.mutation(scope.Txn{Success: []scope.Op{op}}, []byte("bent bent")), func(machine.Reply) {})
		}, "took from none"},
		"a member with another state": {func(w *World) {
			c := w.isles.all[0]
			id := c.id
			c.id = aweigh.ScopeID{1}
			c.enlist(w.Nodes[c.members[0].Index])
			c.id = id
		}, "computes another island"},
		"no member brings it back": {func(w *World) {
			var again func()
			again = func() {
				for _, c := range w.isles.all {
					for _, n := range w.Nodes {
						c.busy[n] = w.now.Add(time.Hour)
					}
				}
				w.at(100*time.Millisecond, again)
			}
			again()
		}, "the scope lacks what island"},
	} {
		w := parted(t)
		c.do(w)
		w.Run(time.Second, nil)
		w.heal()
		pass := func(within time.Duration, done func() bool) error {
			for until := w.Now() + within; w.Now() < until && !w.watch.over() && !done(); {
				w.Run(slice, nil)
			}
			return nil
		}
		if err := w.settle(pass); err != nil {
			t.Fatal(err)
		}
		if len(w.watch.broken) == 0 {
			w.audit()
		}
		if broken := len(w.watch.broken) > 0; broken != (c.broken != "") || broken && !strings.Contains(w.watch.broken[0].Text, c.broken) {
			t.Errorf("%s: %v", name, w.watch.broken)
		}
	}
}
