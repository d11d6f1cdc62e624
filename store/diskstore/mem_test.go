package diskstore

import (
	"errors"
	"testing"

	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/store"
)

var errDisk = errors.New("disk on fire")

func TestPlannedFaultsHappenOnce(t *testing.T) {
	set := []kv.Op{kv.Set([]byte("k"), []byte("new"))}
	cases := []struct {
		name    string
		fault   store.Fault
		visible string // seen by a read after the fault
		kept    string // and after a crash that keeps all that it may
	}{
		{"commit", store.FaultCommit, "old", "old"},
		{"sync", store.FaultSync, "new", "new"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := store.NewMem()
			put(t, m, "k", "old", true)
			m.FailNext(c.fault, errDisk)
			for range 2 { // the second is refused because of the first
				if err := m.Commit(set, true); !errors.Is(err, store.ErrFailed) || !errors.Is(err, errDisk) {
					t.Errorf("commit: %v", err)
				}
			}
			if v, _, _ := m.Get([]byte("k")); string(v) != c.visible {
				t.Errorf("visible: %q, want %q", v, c.visible)
			}
			lost := m.Clone()
			for _, crash := range []struct {
				m    *store.Mem
				keep int
				want string
			}{{m, 9, c.kept}, {lost, 0, "old"}} {
				crash.m.Crash(crash.keep)
				if v, _, _ := crash.m.Get([]byte("k")); string(v) != crash.want {
					t.Errorf("after a crash keeping %d: %q, want %q", crash.keep, v, crash.want)
				}
				put(t, crash.m, "k", "again", true) // accepted once more
			}
		})
	}
}

func TestReadFaultChangesNothing(t *testing.T) {
	m := store.NewMem()
	put(t, m, "k", "v", false)
	m.FailNext(store.FaultRead, errDisk)
	if _, _, err := m.Get([]byte("k")); !errors.Is(err, errDisk) {
		t.Errorf("get: %v", err)
	}
	m.FailNext(store.FaultRead, errDisk)
	if err := m.Scan(nil, nil, false, func(_, _ []byte) bool { return true }); !errors.Is(err, errDisk) {
		t.Errorf("scan: %v", err)
	}
	if got := all(t, m); got != `"k"="v" ` {
		t.Errorf("afterwards: %s", got)
	}
}

func TestClosedMemIsDurableAndRefusesUse(t *testing.T) {
	m := store.NewMem()
	put(t, m, "k", "v", false)
	closed(t, m)
	if _, _, err := m.Get([]byte("k")); !errors.Is(err, store.ErrClosed) {
		t.Errorf("get: %v", err)
	}
	if err := m.Commit(nil, true); !errors.Is(err, store.ErrClosed) {
		t.Errorf("commit: %v", err)
	}
	m.Crash(0)
	if got := all(t, m); got != `"k"="v" ` {
		t.Errorf("opened again: %s", got)
	}
}
