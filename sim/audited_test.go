package sim

import (
	"bytes"
	"testing"

	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
)

// TestStoresAreAudited takes a record away that no read of keys looks at: an object.
func TestStoresAreAudited(t *testing.T) {
	found := 0
	for seed := uint64(1); seed <= 16; seed++ {
		w := newWorld(t, Scenario{Seed: seed, Network: Network{Anchors: 4}})
		w.clientele()
		w.Run(w.Scenario.Stop, nil)
		w.audited()
		if v := w.watch.verdicts[Execution]; v.Broken > 0 {
			t.Fatalf("%v", w.watch.broken)
		}
		for _, n := range w.Nodes {
			prefix := append(append([]byte{stateSpace}, w.id[:ownBytes]...), 'u')
			var change []kv.Op
			must.OK(n.Disk.Scan(prefix, kv.PrefixEnd(prefix), false, func(k, _ []byte) bool {
				change = []kv.Op{kv.Del(bytes.Clone(k))}
				return false
			}), "reading a record")
			must.OK(n.Disk.Commit(change, true), "changing a record")
		}
		w.audited()
		found += int(w.watch.verdicts[Execution].Broken)
	}
	if found == 0 {
		t.Error("no audit missed a record")
	}
}
