package sim

import (
	"bytes"
	"testing"

	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
)

// TestStatesAreComparedWithTheModel changes one record of one node's state: the last version of a key, a receipt, a
// change of a key, or what is attached to a lease.
func TestStatesAreComparedWithTheModel(t *testing.T) {
	for _, kind := range []byte{0, 'k', 'm', 'e', 'h'} {
		w := newWorld(t, Scenario{Network: Network{Anchors: 4}, Load: Load{Leases: 3}})
		w.clientele()
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
