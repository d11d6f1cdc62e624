package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/sim/scenario"
)

// TestChangedStoresAreSeen: a record that is gone from a disk, or has another content, breaks the invariant; the same
// disk without it does not.
func TestChangedStoresAreSeen(t *testing.T) {
	for _, change := range []string{"nothing", "gone", "changed"} {
		w, err := NewWorld(scenario.Scenario{Network: scenario.Network{Anchors: 4}, Stop: 2 * time.Second}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		w.startClients()
		w.Run(2*time.Second, nil)
		for _, n := range w.Nodes {
			var last kv.Op
			err := n.Disk.Scan(nil, nil, false, func(k, v []byte) bool {
				if len(v) > 0 {
					last = kv.Set(slices.Clone(k), slices.Clone(v))
				}
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
			switch change {
			case "gone":
				last = kv.Del(last.Key)
			case "changed":
				last.Value[len(last.Value)-1] ^= 1
			}
			if err := n.Disk.Commit([]kv.Op{last}, true); err != nil {
				t.Fatal(err)
			}
		}
		w.auditStores()
		if v := w.watch.verdicts[Stores]; v.Checks == 0 || (v.Broken > 0) != (change != "nothing") {
			t.Errorf("with a record %s: %+v", change, v)
		}
	}
}
