package edge

import (
	"errors"
	"sync"
	"time"

	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/store"
)

// disk is what outlives a node's lives: a store.Mem that forgets at a kill what was not synced.
type disk struct {
	turn chan struct{} // holds a token while a commit is under way: a mutex must not be held while time passes

	mu   sync.Mutex
	mem  *store.Mem
	slow time.Duration // of each sync
	full bool
	lost bool // the next sync fails, and a crash may take back what it was for
}

func newDisk() *disk { return &disk{turn: make(chan struct{}, 1), mem: store.NewMem()} }

// set changes how the disk behaves.
func (d *disk) set(slow time.Duration, full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slow, d.full, d.lost = slow, full, false
}

// loseSync makes the next sync fail after its writes: a node may have read them, and they may not be there in its
// next life.
func (d *disk) loseSync() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lost = true
}

// mount opens the disk for one life of a node. keep is how many of the commits that were not synced are still there.
func (d *disk) mount(keep int) *mounted {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mem.Crash(keep)
	return &mounted{disk: d, failed: make(chan struct{})}
}

// mounted is a disk during one life of a node: a store.Store.
type mounted struct {
	*disk
	once   sync.Once
	failed chan struct{}
	killed bool // guarded by mu
}

var (
	errFull   = errors.New("no space left on device")
	errIO     = errors.New("input/output error")
	errKilled = errors.New("the process was killed")
)

// kill ends all writes: no further one reaches the disk.
func (m *mounted) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.killed = true
}

// write is a step of a commit. While it runs nothing else happens to the disk.
func (m *mounted) write(ops []kv.Op, sync bool) (slow time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.killed {
		return 0, errKilled
	}
	if m.full {
		m.mem.FailNext(store.FaultCommit, errFull)
	}
	if m.lost && sync {
		m.lost = false
		m.mem.FailNext(store.FaultSync, errIO)
	}
	return m.slow, m.mem.Commit(ops, sync)
}

// Commit implements store.Store.
func (m *mounted) Commit(ops []kv.Op, sync bool) error {
	m.turn <- struct{}{}
	defer func() { <-m.turn }()
	slow, err := m.write(ops, false)
	if err == nil && sync {
		if slow > 0 {
			time.Sleep(slow)
		}
		_, err = m.write(nil, true)
	}
	if errors.Is(err, store.ErrFailed) {
		m.once.Do(func() { close(m.failed) })
	}
	return err
}

// Failed is closed when the store has failed.
func (m *mounted) Failed() <-chan struct{} { return m.failed }

// Get implements store.Store.
func (m *mounted) Get(key []byte) ([]byte, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mem.Get(key)
}

// Scan implements store.Store.
func (m *mounted) Scan(from, to []byte, reverse bool, visit func(key, value []byte) bool) error {
	return m.Snapshot().Scan(from, to, reverse, visit)
}

// Snapshot implements store.Store.
func (m *mounted) Snapshot() store.Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mem.Snapshot()
}

// Close implements store.Store: the disk outlives it.
func (m *mounted) Close() error { return nil }
