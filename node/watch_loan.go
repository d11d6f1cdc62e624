package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// Borrower is a client that takes the content of changes. Its methods are safe for
// concurrent use.
type Borrower struct {
	memory *WatchBudget
	cut    func()

	// Guarded by the memory's mu.
	loans  map[*Loan]struct{}
	out    int       // how many of them were read: the client's turn
	moved  time.Time // when the client last took something, or received what it has
	wasCut bool
}

// Borrower opens an account for a client. The caller must close it. cut is called to end a client that takes nothing
// for long while others wait.
func (n *Node) Borrower(cut func()) *Borrower {
	b := &Borrower{memory: n.memory, cut: cut, loans: make(map[*Loan]struct{})}
	b.memory.mu.Lock()
	defer b.memory.mu.Unlock()
	b.memory.borrowers[b] = struct{}{}
	return b
}

// errSlow ends a watch whose deliveries took too long.
var errSlow = fmt.Errorf("%w: the watch took none of its changes, and others wait for room", machine.ErrBusy)

// patiently runs a watch that delivers to a function. When it is cut off, late is closed, its context ends, and the
// error is errSlow.
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
	m.wake()
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

// Take counts n bytes that are held besides the content, for example those of an encoding, if that is more than was
// counted before.
func (l *Loan) Take(n int) {
	m := l.of.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, out := l.of.loans[l]; out && int64(n) > l.own {
		m.take(int64(n) - l.own)
		l.own = int64(n)
	}
}

// Moved notes that the client took a part of the loan.
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
	m.wake()
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

// Load reads the content of changes, from the first one on, as many as fit into a loan. It reads whole revisions or,
// with split, at least one change. rest holds the changes that are left; if the loan has no event, there are none. The
// values that a change replaced are read if prev is set. Load waits for room. Errors wrap scope.ErrCompacted if a
// change can no longer be read, and ErrInstalling if the state of its scope is being replaced; the changes are then as
// before.
func (n *Node) Load(ctx context.Context, b *Borrower, changes []Change, prev, split bool) (
	l *Loan, rest []Change, err error) {
	m := b.memory
	if err := m.turn(ctx, m.room); err != nil {
		return nil, nil, err
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
	most := max(leastLoan, min(loanBytes, m.limit/2/m.loans)) // many loans that are not returned leave room for others
	m.mu.Unlock()
	open := make(opened, 1)
	var brought []*heldChange // content that came with the changes
	size, aside, revision := int64(0), 0, int64(0)
	defer func() {
		if err = errors.Join(err, open.close()); err != nil {
			l.lose(brought)
			l, rest = nil, nil
			return
		}
		l.Take(aside)
		l.lent()
	}()
	for rest = changes; len(rest) > 0; {
		c := &rest[0]
		apart := len(l.held) > 0 && (split || c.Revision != revision)
		if apart && size >= most {
			return l, rest, nil
		}
		if c.Remainder {
			if rest, err = open.expand(ctx, rest); err != nil {
				return l, nil, err
			}
			continue
		}
		if !apart && size >= most {
			l.Take(aside)
			if err := m.enlarge(ctx, l); err != nil {
				turn = false
				return l, nil, err
			}
		}
		h := c.held
		if h == nil {
			if h, err = m.content(ctx, c, prev, open); err != nil {
				return l, nil, err
			}
		}
		if apart && size+h.size > most {
			if c.held == nil {
				m.free(h)
			}
			return l, rest, nil
		}
		if c.held != nil {
			brought = append(brought, h)
		}
		size, aside, revision, rest = size+h.size, aside+overhead(&h.Event), c.Revision, rest[1:]
		l.held, l.Events = append(l.held, h), append(l.Events, &h.Event)
	}
	return l, nil, nil
}

// overhead returns roughly how many bytes a loan takes for an event besides its content: its place in lists, and its
// encoding, which copies everything except large values.
func overhead(e *scope.Event) int {
	const fixed, large = 64, 4 << 10
	n := fixed + len(e.Kv.Key) + min(len(e.Kv.Value), large)
	if e.Prev != nil {
		n += fixed + len(e.Prev.Key) + min(len(e.Prev.Value), large)
	}
	return n
}

// lose returns a loan that failed. Content that came with the changes stays with them.
func (l *Loan) lose(brought []*heldChange) {
	m := l.of.memory
	m.mu.Lock()
	for _, h := range brought {
		h.uses++
	}
	m.mu.Unlock()
	l.Return()
}

// lent gives the client what was read: from now on a delay is the client's. While a loan is read, its client waits as
// well.
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

// enlarge waits until a loan may become larger. The caller has a turn to load, which it gives up while it waits; if
// enlarge returns an error, the caller has no turn.
func (m *WatchBudget) enlarge(ctx context.Context, l *Loan) error {
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

// content returns the content of one change.
func (m *WatchBudget) content(ctx context.Context, c *Change, prev bool, open opened) (*heldChange, error) {
	k := heldKey{scope: c.Part.id, revision: c.Revision, sub: c.Sub, prev: prev}
	if h := m.find(k); h != nil {
		return h, nil
	}
	v, err := open.view(ctx, c.Part)
	if err != nil {
		return nil, err
	}
	e, err := v.Event(c.Place, prev)
	if err != nil {
		return nil, err
	}
	return m.keep(k, e), nil
}

// opened holds the views that a load reads from. They must be closed.
type opened map[*Replica]*View

func (o opened) view(ctx context.Context, p *Replica) (v *View, err error) {
	if v = o[p]; v == nil {
		if v, err = p.Read(ctx, false); err == nil {
			o[p] = v
		}
	}
	return v, err
}

func (o opened) close() (err error) {
	for _, v := range o {
		err = errors.Join(err, v.Close())
	}
	return err
}

// expand replaces the first change, which stands for the rest of its revision, with the changes that are next.
func (o opened) expand(ctx context.Context, changes []Change) ([]Change, error) {
	c := &changes[0]
	v, err := o.view(ctx, c.Part)
	if err != nil {
		return nil, err
	}
	places, err := v.State.Remainder(c.Place, c.of.key, c.of.end)
	if err != nil {
		return nil, err
	}
	next := make([]Change, len(places), len(places)+len(changes)-1)
	for i, p := range places {
		next[i] = Change{Place: p, Part: c.Part, of: c.of}
	}
	return append(next, changes[1:]...), nil
}

// double counts the content of a loan a second time.
func (l *Loan) double() {
	size := int64(0)
	for _, h := range l.held {
		size += h.size
	}
	l.Take(int(size))
}
