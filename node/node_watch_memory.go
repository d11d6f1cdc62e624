package node

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// Memory is the budget in bytes for the content of changes that the watches of a node
// hold, in all scopes and of all APIs: what was read and not yet taken by the client, and what
// was read ahead of scopes that the node does not hold. The content of a change is held
// once for all watches that deliver it, and stays while there is room. A watch that has
// to wait for room holds nothing but the revision that it needs next.
//
// Above the budget go what loadsAtOnce loads read last, and one loan of a revision that is
// larger than the budget: a revision is delivered as a whole, unless the watch takes fragments.
type Memory struct {
	limit   int64
	slow    time.Duration // after which a borrower that takes nothing is cut off, if others wait
	loading chan struct{} // holds a token for each load

	mu        sync.Mutex
	used      int64 // bytes, of resting content too
	held      map[heldKey]*heldChange
	resting   list.List // of *heldChange that no loan has, the one that rests longest first
	rests     int64     // bytes of those
	loans     int64     // that are out
	large     bool      // one of them may be larger than the budget
	returned  chan struct{}
	borrowers map[*Borrower]struct{}
	waited    uint64
	cut       uint64
}

const (
	// DefaultWatchMemory is the budget of a node for its watches, in bytes.
	DefaultWatchMemory = 64 << 20

	loadsAtOnce = 4
	loanBytes   = 1 << 20  // of content in a loan at most, unless one revision has more
	leastLoan   = 64 << 10 // of content in a loan, however many are out
)

func newMemory(limit int64, slow time.Duration) *Memory {
	return &Memory{
		limit: limit, slow: slow, loading: make(chan struct{}, loadsAtOnce), returned: make(chan struct{}),
		held: make(map[heldKey]*heldChange), borrowers: make(map[*Borrower]struct{}),
	}
}

// MemoryCounts is what a Memory counted.
type MemoryCounts struct {
	Limit, Used int64  // bytes, now
	Waited      uint64 // loads that had to wait for room
	Cut         uint64 // clients that took nothing while others waited, and were cut off
}

// WatchMemory tells what the watches of the node hold.
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
	of   *Memory
	key  heldKey // zero if others cannot find it
	size int64
	uses int
	rest *list.Element // nil while it is used
}

// sizeOf is about what an event takes, in bytes.
func sizeOf(e *scope.Event) int64 {
	n := 256 + len(e.Kv.Key) + len(e.Kv.Value)
	if e.Prev != nil {
		n += 128 + len(e.Prev.Value)
	}
	return int64(n)
}

// find takes a use of the content of a change, nil if it is not held.
func (m *Memory) find(k heldKey) *heldChange {
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
	if h.uses++; h.rest != nil {
		m.resting.Remove(h.rest)
		m.rests -= h.size
		h.rest = nil
	}
	return h
}

// keep holds what was read, with one use. Others find it by its key, unless that is zero.
func (m *Memory) keep(k heldKey, e scope.Event) *heldChange {
	h := &heldChange{Event: e, of: m, key: k, size: sizeOf(&e), uses: 1}
	m.mu.Lock()
	defer m.mu.Unlock()
	if k != (heldKey{}) && m.held[k] == nil {
		m.held[k] = h
	}
	m.take(h.size)
	return h
}

// take counts bytes, and lets resting content go if it is too much. Under mu.
func (m *Memory) take(n int64) {
	m.used += n
	for m.used > m.limit && m.resting.Len() > 0 {
		m.drop(m.resting.Front().Value.(*heldChange))
	}
}

func (m *Memory) drop(h *heldChange) {
	if h.rest != nil {
		m.resting.Remove(h.rest)
		m.rests -= h.size
	}
	m.used -= h.size
	if m.held[h.key] == h {
		delete(m.held, h.key)
	}
}

// unuse gives a use back. Under mu.
func (m *Memory) unuse(h *heldChange) {
	if h.uses--; h.uses > 0 {
		return
	}
	if m.held[h.key] != h || m.used > m.limit {
		m.drop(h)
		return
	}
	h.rest = m.resting.PushBack(h)
	m.rests += h.size
}

// stir wakes those that wait. Under mu.
func (m *Memory) stir() {
	close(m.returned)
	m.returned = make(chan struct{})
}

// free gives back what was kept and is in no loan.
func (m *Memory) free(changes ...*heldChange) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range changes {
		m.unuse(h)
	}
	m.stir()
}

// await waits until ok, which is called under mu. The error is ctx's.
func (m *Memory) await(ctx context.Context, ok func() bool) error {
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

// room says that there is room for something. Under mu.
func (m *Memory) room() bool { return m.used-m.rests < m.limit }

// cutSlow cuts off those who took nothing for long of what was read for them.
func (m *Memory) cutSlow(now time.Time) {
	var slow []*Borrower
	m.mu.Lock()
	for b := range m.borrowers {
		if b.cut != nil && !b.wasCut && len(b.loans) > 0 && now.Sub(b.moved) > m.slow {
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

// Borrower is a client that takes the content of changes. Its methods are safe for
// concurrent use.
type Borrower struct {
	memory *Memory
	cut    func()

	// Guarded by the memory's mu.
	loans  map[*Loan]struct{}
	moved  time.Time
	wasCut bool
}

// Borrower opens an account for a client, which is to be closed. cut ends a client that takes
// nothing for long while others wait; nil if it ends by itself.
func (n *Node) Borrower(cut func()) *Borrower {
	b := &Borrower{memory: n.memory, cut: cut, loans: make(map[*Loan]struct{})}
	b.memory.mu.Lock()
	defer b.memory.mu.Unlock()
	b.memory.borrowers[b] = struct{}{}
	return b
}

// Close returns all loans.
func (b *Borrower) Close() {
	m := b.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	for l := range b.loans {
		l.giveBack()
	}
	delete(m.borrowers, b)
	m.stir()
}

// Loan is the content of some changes, until it is returned.
type Loan struct {
	Events []*scope.Event
	of     *Borrower
	held   []*heldChange
	own    int64 // bytes besides
	large  bool
}

// Take counts more bytes in, such as those of an encoding.
func (l *Loan) Take(n int) {
	m := l.of.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, out := l.of.loans[l]; out {
		l.own += int64(n)
		m.take(int64(n))
	}
}

// Moved notes that the client took some of it.
func (l *Loan) Moved() {
	m := l.of.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	l.of.moved = time.Now()
}

// Return gives everything back. A second call does nothing.
func (l *Loan) Return() {
	m := l.of.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	l.giveBack()
	m.stir()
}

func (l *Loan) giveBack() {
	m := l.of.memory
	if _, out := l.of.loans[l]; !out {
		return
	}
	delete(l.of.loans, l)
	m.loans--
	l.of.moved = time.Now()
	m.used -= l.own
	for _, h := range l.held {
		m.unuse(h)
	}
	if l.large {
		m.large = false
	}
}

// Load reads the content of changes, from the first one on: as many as go into a loan, and
// the whole of each revision, or, with split, at least one change. What a change replaced
// is read if prev is set. It waits for room. Errors wrap scope.ErrCompacted if a change
// cannot be read any more, and ErrInstalling if the state of its scope is on its way.
func (n *Node) Load(ctx context.Context, b *Borrower, changes []Change, prev, split bool) (l *Loan, err error) {
	m := b.memory
	select {
	case m.loading <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-m.loading }()
	if err := m.await(ctx, m.room); err != nil {
		return nil, err
	}
	l = &Loan{of: b}
	m.mu.Lock()
	if len(b.loans) == 0 {
		b.moved = time.Now()
	}
	b.loans[l] = struct{}{}
	m.loans++
	most := max(leastLoan, min(loanBytes, m.limit/2/m.loans)) // many that take nothing leave room for others
	m.mu.Unlock()
	open := make(map[*Part]*View, 1)
	defer func() {
		for _, v := range open {
			err = errors.Join(err, v.Close())
		}
		if err != nil {
			l.lose(changes)
			l = nil
			return
		}
		for i := range l.Events {
			changes[i].held = nil // it is the loan's
		}
	}()
	size := int64(0)
	for i := range changes {
		c := &changes[i]
		apart := i > 0 && (split || c.Revision != changes[i-1].Revision)
		if apart && size >= most {
			return l, nil
		}
		if !apart && size >= most {
			if err := m.enlarge(ctx, l); err != nil {
				return l, err
			}
		}
		h := c.held
		if h == nil {
			if h, err = n.content(ctx, m, c, prev, open); err != nil {
				return l, err
			}
		}
		if apart && size+h.size > most {
			if c.held == nil {
				m.free(h)
			}
			return l, nil
		}
		size += h.size
		l.held, l.Events = append(l.held, h), append(l.Events, &h.Event)
	}
	return l, nil
}

// lose returns a loan that came to nothing: what the changes held themselves stays theirs.
func (l *Loan) lose(changes []Change) {
	m := l.of.memory
	m.mu.Lock()
	for i, h := range l.held {
		if changes[i].held == h {
			h.uses++
		}
	}
	m.mu.Unlock()
	l.Return()
}

// enlarge waits until a loan may become larger.
func (m *Memory) enlarge(ctx context.Context, l *Loan) error {
	return m.await(ctx, func() bool {
		if l.large || m.room() {
			return true
		}
		if m.large {
			return false
		}
		m.large, l.large = true, true
		return true
	})
}

// content is that of one change.
func (n *Node) content(ctx context.Context, m *Memory, c *Change, prev bool, open map[*Part]*View) (*heldChange, error) {
	k := heldKey{scope: c.Part.id, revision: c.Revision, sub: c.Sub, prev: prev}
	if h := m.find(k); h != nil {
		return h, nil
	}
	v := open[c.Part]
	if v == nil {
		var err error
		if v, err = c.Part.Read(ctx, false); err != nil {
			return nil, err
		}
		open[c.Part] = v
	}
	e, err := v.Event(c.Place, prev)
	if err != nil {
		return nil, err
	}
	return m.keep(k, e), nil
}

// double counts what a loan holds once more.
func (l *Loan) double() {
	size := int64(0)
	for _, h := range l.held {
		size += h.size
	}
	l.Take(int(size))
}
