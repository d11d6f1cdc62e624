package node

import (
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/store"
)

// TestFewSnapshotsAreKept: however many are asked for.
func TestFewSnapshotsAreKept(t *testing.T) {
	var s snapshotStore
	for i := range 3 * mostKept {
		s.put(keptSnapshot{}, aweigh.Height(i))
		s.take(aweigh.Height(i))
	}
	if n := len(s.kept); n == 0 || n > mostKept {
		t.Errorf("%d snapshots are kept, at most %d", n, mostKept)
	}
}

// keptSnapshot is one of which nothing is read.
type keptSnapshot struct{ store.Snapshot }

func (keptSnapshot) Close() error { return nil }
