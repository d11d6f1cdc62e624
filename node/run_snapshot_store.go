package node

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
)

const (
	// stepsBehind is how many common heights lie within the blocks that a node may
	// lack without a snapshot.
	stepsBehind = 5

	newestKept   = 3                // snapshots that are kept whether they are used or not
	mostKept     = 6                // and all together
	keepSnapshot = 10 * time.Minute // of an older one, since its last use
	keepNewest   = time.Hour
)

// snapshotStore holds the snapshots that this node offers. All nodes take snapshots at common heights, so that a node
// that is behind finds several nodes with the same one.
type snapshotStore struct {
	mu     sync.Mutex        // also guards the fields of its snapshots
	kept   []*storedSnapshot // by height
	orders chan *storedSnapshot
}

// storedSnapshot is one snapshot.
type storedSnapshot struct {
	at    aweigh.Height
	store store.Snapshot

	users int // readers of it now; it is closed after the last of them
	gone  bool
	used  time.Time

	made  chan struct{} // closed when the rest is there
	offer []byte
	after [][]byte // the key before each part
}

func newSnapshotStore() snapshotStore { return snapshotStore{orders: make(chan *storedSnapshot, 1)} }

// put adds a snapshot, unless there is one of its height, and drops others.
func (s *snapshotStore) put(kept store.Snapshot, at aweigh.Height) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, there := slices.BinarySearchFunc(s.kept, at, func(k *storedSnapshot, at aweigh.Height) int { return cmp.Compare(k.at, at) })
	k := &storedSnapshot{at: at, store: kept, used: time.Now(), made: make(chan struct{})}
	if there {
		k.gone = true
		k.close()
		return
	}
	s.kept = slices.Insert(s.kept, i, k)
	s.trim()
}

// sweep drops snapshots that have not been used for long.
func (s *snapshotStore) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trim()
}

func (s *snapshotStore) trim() {
	n := len(s.kept)
	s.keep(func(i int, k *storedSnapshot) bool {
		idle := time.Since(k.used)
		return n-i <= mostKept && (n-i <= newestKept && idle <= keepNewest || k.offer != nil && idle <= keepSnapshot)
	})
}

// drop drops the snapshot of one height.
func (s *snapshotStore) drop(at aweigh.Height) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(func(_ int, k *storedSnapshot) bool { return k.at != at })
}

// clear drops all snapshots.
func (s *snapshotStore) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(func(int, *storedSnapshot) bool { return false })
}

func (s *snapshotStore) keep(stays func(i int, k *storedSnapshot) bool) {
	var left []*storedSnapshot
	for i, k := range s.kept {
		if stays(i, k) {
			left = append(left, k)
			continue
		}
		k.gone = true
		k.close()
	}
	s.kept = left
}

func (k *storedSnapshot) close() {
	if k.gone && k.users == 0 && k.store != nil {
		_ = k.store.Close() // it was only read
		k.store = nil
	}
}

// from returns the heights of the snapshots from h on. If there are offers that are ready, only those are returned: to
// make another is work.
func (s *snapshotStore) from(h aweigh.Height) (all []aweigh.Height) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, made := range []bool{true, false} {
		for _, k := range s.kept {
			if k.at >= h && (!made || k.offer != nil) {
				all = append(all, k.at)
			}
		}
		if len(all) > 0 {
			break
		}
	}
	return all
}

// take returns the snapshot of a height, or nil. The caller must give it back.
func (s *snapshotStore) take(at aweigh.Height) *storedSnapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kept {
		if k.at == at {
			k.users++
			k.used = time.Now()
			return k
		}
	}
	return nil
}

func (s *snapshotStore) giveBack(k *storedSnapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k.users--
	k.close()
}

// finished notes what was made of a snapshot.
func (s *snapshotStore) finished(k *storedSnapshot, offer []byte, after [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k.offer, k.after = offer, after
	close(k.made)
}

// ready returns the offer of a snapshot, and the key before each of its parts; nil until it is made.
func (s *snapshotStore) ready(k *storedSnapshot) (offer []byte, after [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return k.offer, k.after
}

// storeSnapshot takes a snapshot if the state is that of a common height. It is called between two steps, after blocks
// became final.
func (n *Replica) storeSnapshot(at aweigh.Height) {
	step := max(n.cfg.SnapshotBehind/stepsBehind, 1)
	if at%step == 0 && at > n.cfg.SnapshotBehind {
		n.takeSnapshot(at)
	}
}

// takeSnapshot stores a snapshot of the present state, if the state is that after the block at this height (0: at any
// height) and can be proven. It reports whether it did.
func (n *Replica) takeSnapshot(at aweigh.Height) bool {
	kept, err := n.views.durable.snapshot(n.cfg.Store)
	if err != nil {
		return false
	}
	h := machine.History{Reader: kept, Scope: n.id}
	state, err := scope.Open(h.Reader, n.id)
	if err == nil && (at == 0 || state.Height() == at) {
		at = state.Height()
		own, err := h.Certificate(at)
		if first := at == 0 && n.genesis.Descent != nil; first || err == nil && !own.IsZero() {
			n.snapshots.put(kept, at)
			return true
		}
	}
	_ = kept.Close() // it was only read
	return false
}
