package node

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
)

const (
	// stepsBehind is how many common heights lie within the blocks that a node may
	// lack without a snapshot.
	stepsBehind = 5

	newestKept   = 3                // snapshots that are kept whether they are used or not
	mostKept     = 6                // and all together
	keepSnapshot = 10 * time.Minute // one that is old, since it was used last
	keepNewest   = time.Hour
)

// shelf holds the snapshots that this node offers. All nodes take them at common
// heights, so that a node that is behind finds several with the same.
type shelf struct {
	mu     sync.Mutex // guards what its snapshots say of themselves, too
	kept   []*shelved // by height
	orders chan *shelved
}

// shelved is one snapshot.
type shelved struct {
	at    aweigh.Height
	store store.Snapshot

	users int // who read it now; it is closed after the last of them
	gone  bool
	used  time.Time

	made  chan struct{} // closed when the rest is there
	offer []byte
	after [][]byte // the key before each part
}

func newShelf() shelf { return shelf{orders: make(chan *shelved, 1)} }

// put adds a snapshot, unless there is one of its height, and lets go of others.
func (s *shelf) put(kept store.Snapshot, at aweigh.Height) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, there := slices.BinarySearchFunc(s.kept, at, func(k *shelved, at aweigh.Height) int { return cmp.Compare(k.at, at) })
	k := &shelved{at: at, store: kept, used: time.Now(), made: make(chan struct{})}
	if there {
		k.gone = true
		k.close()
		return
	}
	s.kept = slices.Insert(s.kept, i, k)
	s.trim()
}

// sweep lets go of what nobody has used for long.
func (s *shelf) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trim()
}

func (s *shelf) trim() {
	n := len(s.kept)
	s.keep(func(i int, k *shelved) bool {
		idle := time.Since(k.used)
		return n-i <= mostKept && (n-i <= newestKept && idle <= keepNewest || k.offer != nil && idle <= keepSnapshot)
	})
}

// drop lets go of the snapshot of one height.
func (s *shelf) drop(at aweigh.Height) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(func(_ int, k *shelved) bool { return k.at != at })
}

// clear lets go of all.
func (s *shelf) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(func(int, *shelved) bool { return false })
}

func (s *shelf) keep(stays func(i int, k *shelved) bool) {
	var left []*shelved
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

func (k *shelved) close() {
	if k.gone && k.users == 0 && k.store != nil {
		_ = k.store.Close() // it was only read
		k.store = nil
	}
}

// from is the heights that are there from one on. Those whose offer is made come
// alone: to make another is work.
func (s *shelf) from(h aweigh.Height) (all []aweigh.Height) {
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

// take is the snapshot of a height, to be given back, or nil.
func (s *shelf) take(at aweigh.Height) *shelved {
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

func (s *shelf) giveBack(k *shelved) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k.users--
	k.close()
}

// finished notes what was made of a snapshot.
func (s *shelf) finished(k *shelved, offer []byte, after [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k.offer, k.after = offer, after
	close(k.made)
}

// ready is the offer of a snapshot, and the key before each of its parts; nil
// until it is made.
func (s *shelf) ready(k *shelved) (offer []byte, after [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return k.offer, k.after
}

// shelve takes a snapshot when the state is that of a common height: it is called
// between two steps, after blocks became final.
func (n *Part) shelve(at aweigh.Height) {
	step := max(n.cfg.SnapshotBehind/stepsBehind, 1)
	if at%step == 0 && at > n.cfg.SnapshotBehind {
		n.takeSnapshot(at)
	}
}

// takeSnapshot puts a snapshot of the present state on the shelf, if the state is
// that after a block of this height (0: of any height), and can be proven.
func (n *Part) takeSnapshot(at aweigh.Height) bool {
	kept := n.cfg.Store.Snapshot()
	h := History{Reader: kept, Scope: n.id}
	state, err := scope.Open(h.Reader, n.id)
	if err == nil && (at == 0 || state.Height() == at) {
		at = state.Height()
		own, err := h.Certificate(at)
		if first := at == 0 && n.genesis.Descent != nil; first || err == nil && !own.IsZero() {
			n.shelf.put(kept, at)
			return true
		}
	}
	_ = kept.Close() // it was only read
	return false
}
