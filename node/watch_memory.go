package node

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// WatchBudget is the budget in bytes for the content of changes that the watches of a node hold, in all scopes and for
// all APIs: what was read and not yet taken by the client, and what was read ahead from scopes that the node does not
// hold. The content of a change is held once for all watches that deliver it, and stays while there is room. A watch
// that waits for room holds only the revision that it needs next.
//
// Two things may exceed the budget: what loadsAtOnce loads read last, and one loan of a revision that is larger than
// the budget, because a revision is delivered as a whole unless the watch takes fragments.
type WatchBudget struct {
	limit   int64
	slow    time.Duration // after which a borrower that takes nothing is cut off, if others wait
	loading chan struct{} // holds a token for each load

	mu          sync.Mutex
	used        int64 // bytes, including unused content
	held        map[heldKey]*heldChange
	unused      list.List // of *heldChange that no loan has, in the order of their last use
	unusedBytes int64     // their bytes
	loans       int64     // how many are not returned
	large       bool      // one of them may exceed the budget
	returned    chan struct{}
	borrowers   map[*Borrower]struct{}
	waited      uint64
	cut         uint64
}

const (
	// defaultWatchMemory is the budget of a node for its watches, in bytes.
	defaultWatchMemory = 64 << 20

	loadsAtOnce = 4
	loanBytes   = 1 << 20  // of content in a loan at most, unless one revision has more
	leastLoan   = 64 << 10 // of content in a loan, however many are out
)

func newWatchBudget(limit int64, slow time.Duration) *WatchBudget {
	return &WatchBudget{
		limit: limit, slow: slow, loading: make(chan struct{}, loadsAtOnce), returned: make(chan struct{}),
		held: make(map[heldKey]*heldChange), borrowers: make(map[*Borrower]struct{}),
	}
}

// MemoryCounts is what a WatchBudget or an AnswerBudget counted.
type MemoryCounts struct {
	Limit, Used int64  // bytes, now
	Waited      uint64 // loads or reads that had to wait for room
	Cut         uint64 // clients that took nothing while others waited, and were cut off
}

// WatchMemory returns what the watches of the node hold.
func (n *Node) WatchMemory() MemoryCounts {
	m := n.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	return MemoryCounts{Limit: m.limit, Used: m.used, Waited: m.waited, Cut: m.cut}
}

type heldKey struct {
	scope    aweigh.ScopeID
	revision int64
	sub      uint32
	prev     bool
}

// heldChange is the content of one change.
type heldChange struct {
	scope.Event
	of     *WatchBudget
	key    heldKey // zero if it cannot be found by others
	size   int64
	uses   int
	unused *list.Element // nil while it is used
}

// sizeOf returns roughly the memory of an event, in bytes.
func sizeOf(e *scope.Event) int64 {
	n := 256 + len(e.Kv.Key) + len(e.Kv.Value)
	if e.Prev != nil {
		n += 128 + len(e.Prev.Value)
	}
	return int64(n)
}

// find returns the content of a change and counts a use, or returns nil if it is not held.
func (m *WatchBudget) find(k heldKey) *heldChange {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.held[k]
	if h == nil && !k.prev {
		k.prev = true
		h = m.held[k]
	}
	if h == nil {
		return nil
	}
	if h.uses++; h.unused != nil {
		m.unused.Remove(h.unused)
		m.unusedBytes -= h.size
		h.unused = nil
	}
	return h
}

// keep holds what was read, with one use. find returns it by its key, unless the key is zero.
func (m *WatchBudget) keep(k heldKey, e scope.Event) *heldChange {
	h := &heldChange{Event: e, of: m, key: k, size: sizeOf(&e), uses: 1}
	m.mu.Lock()
	defer m.mu.Unlock()
	if k != (heldKey{}) && m.held[k] == nil {
		m.held[k] = h
	}
	m.take(h.size)
	return h
}

// take counts bytes, and drops unused content if the budget is exceeded. The caller holds mu.
func (m *WatchBudget) take(n int64) {
	m.used += n
	for m.used > m.limit && m.unused.Len() > 0 {
		m.drop(m.unused.Front().Value.(*heldChange))
	}
}

func (m *WatchBudget) drop(h *heldChange) {
	if h.unused != nil {
		m.unused.Remove(h.unused)
		m.unusedBytes -= h.size
	}
	m.used -= h.size
	if m.held[h.key] == h {
		delete(m.held, h.key)
	}
}

// unuse ends one use. The caller holds mu.
func (m *WatchBudget) unuse(h *heldChange) {
	if h.uses--; h.uses > 0 {
		return
	}
	if m.held[h.key] != h || m.used > m.limit {
		m.drop(h)
		return
	}
	h.unused = m.unused.PushBack(h)
	m.unusedBytes += h.size
}

// wake wakes all that wait for room. The caller holds mu.
func (m *WatchBudget) wake() {
	close(m.returned)
	m.returned = make(chan struct{})
}

// free drops what was kept and is in no loan.
func (m *WatchBudget) free(changes ...*heldChange) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range changes {
		m.unuse(h)
	}
	m.wake()
}

// await waits until ok returns true; ok is called under mu. The error is that of ctx.
func (m *WatchBudget) await(ctx context.Context, ok func() bool) error {
	var tick *time.Ticker
	for {
		m.mu.Lock()
		if ok() {
			m.mu.Unlock()
			return nil
		}
		if tick == nil {
			m.waited++
			tick = time.NewTicker(max(m.slow/10, time.Millisecond))
			defer tick.Stop()
		}
		returned := m.returned
		m.mu.Unlock()
		select {
		case <-returned:
		case now := <-tick.C:
			m.cutSlow(now)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// room reports whether there is room. The caller holds mu.
func (m *WatchBudget) room() bool { return m.used-m.unusedBytes < m.limit }

// turn waits until ok returns true and there is a turn to load, which it takes. While it waits for room, others have
// the turn. The error is that of ctx; then there is no turn.
func (m *WatchBudget) turn(ctx context.Context, ok func() bool) error {
	for {
		select {
		case m.loading <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		m.mu.Lock()
		now := ok()
		m.mu.Unlock()
		if now {
			return nil
		}
		<-m.loading
		if err := m.await(ctx, ok); err != nil {
			return err
		}
	}
}

// cutSlow ends the clients that for long took nothing of what was read for them.
func (m *WatchBudget) cutSlow(now time.Time) {
	var slow []*Borrower
	m.mu.Lock()
	for b := range m.borrowers {
		if b.cut != nil && !b.wasCut && b.out > 0 && now.Sub(b.moved) > m.slow {
			b.wasCut = true
			m.cut++
			slow = append(slow, b)
		}
	}
	m.mu.Unlock()
	for _, b := range slow {
		b.cut()
	}
}
