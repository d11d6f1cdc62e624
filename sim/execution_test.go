package sim

import (
	"bytes"
	"slices"
	"testing"

	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/sim/scenario"
)

// TestStatesAreComparedWithTheModel changes one record of one node's state: the last version of a key, a receipt, a
// change of a key, or a key of a lease.
func TestStatesAreComparedWithTheModel(t *testing.T) {
	for _, kind := range []byte{0, 'k', 'm', 'e', 'h'} {
		w := newWorld(t, scenario.Scenario{Network: scenario.Network{Anchors: 4}, Load: scenario.Load{Leases: 3}})
		w.startClients()
		w.Run(w.Scenario.Stop, nil)
		n := w.Nodes[2]
		if v := w.watch.verdicts[Execution]; v.Broken > 0 || v.Checks < 100 {
			t.Fatalf("%+v: %v", v, w.watch.broken)
		}
		if kind != 0 {
			prefix := append(append([]byte{stateSpace}, w.id[:ownBytes]...), kind)
			var change []kv.Op
			must.OK(n.Disk.Scan(prefix, kv.PrefixEnd(prefix), false, func(k, v []byte) bool {
				change = []kv.Op{kv.Del(bytes.Clone(k))}
				return false
			}), "reading a record")
			must.OK(n.Disk.Commit(change, true), "changing a record")
		}
		w.audit()
		if v := w.watch.verdicts[Execution]; (v.Broken > 0) != (kind != 0) {
			t.Errorf("without a record of kind %q: %+v: %v", kind, v, w.watch.broken)
		}
	}
}

// TestLittleIsUnmodelled bounds what the model takes from nodes: governments, delegations, homecomings, and whether
// decisions wait.
func TestLittleIsUnmodelled(t *testing.T) {
	testshort.SkipUnlessLong(t)
	known := []string{"delegation", "homecoming", "outcome of govern", "impact of a decision", "waiting decision"}
	var executed, unmodelled uint64
	worlds := testshort.Cases[uint64](0, 16, 30)
	for seed := uint64(1); seed <= worlds; seed++ {
		r := mustRun(t, scenario.Draw(seed))
		if r.Executed == 0 {
			t.Errorf("seed %d runs without the model", seed)
		}
		executed += r.Executed
		for _, c := range r.Unmodelled {
			if !slices.Contains(known, c.Name) {
				t.Errorf("seed %d: %s: %d", seed, c.Name, c.Count)
			}
			if c.Name == "delegation" { // anchors ask again and again to govern
				unmodelled += c.Count
			}
		}
	}
	if executed < 15*worlds || unmodelled > executed/100 {
		t.Errorf("%d mutations are executed, and %d things taken from nodes", executed, unmodelled)
	}
}
