package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aweigh/aweigh/scope"
)

// Borrower is a client that takes the content of changes. Its methods are safe for
// concurrent use.
type Borrower struct {
	memory *Memory
	cut    func()

	// Guarded by the memory's mu.
	loans  map[*Loan]struct{}
	out    int       // of them, those that are read: the client's turn
	moved  time.Time // when the client took something, or got what it has
	wasCut bool
}

// Borrower opens an account for a client, which is to be closed. cut ends a client that takes
// nothing for long while others wait.
func (n *Node) Borrower(cut func()) *Borrower {
	b := &Borrower{memory: n.memory, cut: cut, loans: make(map[*Loan]struct{})}
	b.memory.mu.Lock()
	defer b.memory.mu.Unlock()
	b.memory.borrowers[b] = struct{}{}
	return b
}

// errSlow ends a watch whose deliveries took too long.
var errSlow = fmt.Errorf("%w: the watch took nothing of what it was brought, and others wait for room", ErrBusy)

// patiently runs a watch that delivers to a function. When it is cut off, late is closed, its
// context ends, and the error is errSlow.
func (n *Node) patiently(ctx context.Context, watch func(_ context.Context, _ *Borrower, late <-chan struct{}) error) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := make(chan struct{})
	b := n.Borrower(func() {
		cancel(errSlow)
		close(late)
	})
	defer b.Close()
	err := watch(inner, b, late)
	if context.Cause(inner) == errSlow {
		return errSlow
	}
	return err
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
	read   bool // the client has it
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
	if l.read {
		l.of.out--
		l.of.moved = time.Now()
	}
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
	if err := m.turn(ctx, m.room); err != nil {
		return nil, err
	}
	turn := true
	defer func() {
		if turn {
			<-m.loading
		}
	}()
	l = &Loan{of: b}
	m.mu.Lock()
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
		l.lent()
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
				turn = false
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

// lent gives the client what was read: from now on it is the client that is slow. While a loan is
// read, its client waits as well.
func (l *Loan) lent() {
	m := l.of.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, out := l.of.loans[l]; !out { // its client is gone
		return
	}
	if l.read = true; l.of.out == 0 {
		l.of.moved = time.Now()
	}
	l.of.out++
}

// enlarge waits until a loan may become larger. The caller has a turn to load, which it gives up
// while it waits; with an error it has none.
func (m *Memory) enlarge(ctx context.Context, l *Loan) error {
	ok := func() bool {
		if l.large || m.room() {
			return true
		}
		if m.large {
			return false
		}
		m.large, l.large = true, true
		return true
	}
	m.mu.Lock()
	now := ok()
	m.mu.Unlock()
	if now {
		return nil
	}
	<-m.loading
	return m.turn(ctx, ok)
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
