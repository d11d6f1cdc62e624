package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// lender is a node that is nothing but the memory of its watches.
func lender(limit int64) *Node { return &Node{memory: newWatchBudget(limit, 20*time.Millisecond)} }

// found is a change of a revision whose content the node holds for all, without a use of it.
func (n *Node) found(p *Replica, revision int64, sub uint32, size int) (Change, int64) {
	k := heldKey{revision: revision, sub: sub}
	h := n.memory.keep(k, scope.Event{Kv: scope.KeyValue{Value: bytes.Repeat([]byte{1}, size)}})
	n.memory.free(h)
	return Change{Part: p, Place: scope.Place{Revision: revision, Sub: sub}}, h.size
}

// waiting waits until so many loads had to wait for room.
func (n *Node) waiting(t *testing.T, count uint64) {
	t.Helper()
	testwait.For(t, func() error {
		if n.WatchMemory().Waited < count {
			return fmt.Errorf("%d loads wait, not %d", n.WatchMemory().Waited, count)
		}
		return nil
	})
}

// TestWhatIsStillReadIsNotSlow: a watch whose loan waits for room in the midst of a revision is not cut off for it, has
// no turn to load meanwhile, and ends its load when there is room, or gives it up; what took nothing since is cut off.
func TestWhatIsStillReadIsNotSlow(t *testing.T) {
	for _, givenUp := range []bool{false, true} {
		n, p := lender(2<<20), new(Replica)
		m := n.memory
		first, size := n.found(p, 7, 0, 5<<18)
		brought := m.keep(heldKey{}, scope.Event{})
		second := Change{Part: p, Place: scope.Place{Revision: 7, Sub: 1}, held: brought}

		slow, cut := make(chan struct{}), make(chan struct{})
		taker := n.Borrower(func() { close(slow) })
		defer taker.Close()
		took, _, err := n.Load(t.Context(), taker, nil, false, false)
		if err != nil {
			t.Fatal(err)
		}
		took.Take(int(m.limit - size - brought.size)) // there is room for the first change, and then none
		m.large = true                                // and somebody has the one loan that may be larger

		waits := n.Borrower(func() { close(cut) })
		defer waits.Close()
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		var loan *Loan
		var rest []Change
		done := make(chan error, 1)
		go func() {
			var err error
			loan, rest, err = n.Load(ctx, waits, []Change{first, second}, false, false)
			done <- err
		}()
		n.waiting(t, 1)
		took.Moved() // later than the other began, so that one would be cut off first
		select {
		case <-slow:
		case <-cut:
			t.Fatal("a watch whose loan is still read was cut off")
		case <-time.After(10 * time.Second):
			t.Fatal("what takes nothing is not cut off")
		}
		if kept, cut := len(m.loading), n.WatchMemory().Cut; kept != 0 || cut != 1 {
			t.Errorf("what waits for room keeps %d turns to load; %d were cut off", kept, cut)
		}
		if givenUp {
			stop()
		} else {
			taker.Close()
		}
		switch err := <-done; {
		case givenUp && !errors.Is(err, context.Canceled):
			t.Errorf("the load that was given up: %v", err)
		case !givenUp && (err != nil || len(loan.Events) != 2 || len(rest) != 0):
			t.Errorf("the load ends with %v; %d changes are left", err, len(rest))
		}
		if kept, cut := len(m.loading), n.WatchMemory().Cut; kept != 0 || cut != 1 {
			t.Errorf("%d turns are kept, %d were cut off", kept, cut)
		}
	}
}

// TestLoansCountWhatTheyTakeBesides lends one revision of small changes twice: the content is counted once, and for
// each loan its lists and an encoding.
func TestLoansCountWhatTheyTakeBesides(t *testing.T) {
	const many = 1000
	n, p := lender(1<<20), new(Replica)
	b := n.Borrower(nil)
	defer b.Close()
	var changes []Change
	content := int64(0)
	for i := range uint32(many) {
		c, size := n.found(p, 7, i, 1)
		changes, content = append(changes, c), content+size
	}
	for range 2 {
		if l, rest, err := n.Load(t.Context(), b, changes, false, false); err != nil || len(l.Events) != many || len(rest) > 0 {
			t.Fatalf("%d are left: %v", len(rest), err)
		}
	}
	if used := n.WatchMemory().Used; used < content+2*64*many || used > 2*content {
		t.Errorf("%d bytes are counted for two loans of %d", used, content)
	}
}

// TestLoadsThatWaitLeaveTheirTurn: as many loads as there are turns wait for room, with none of them.
func TestLoadsThatWaitLeaveTheirTurn(t *testing.T) {
	n := lender(1 << 20)
	taker := n.Borrower(nil)
	defer taker.Close()
	took, _, err := n.Load(t.Context(), taker, nil, false, false)
	if err != nil {
		t.Fatal(err)
	}
	took.Take(1 << 20)
	done := make(chan error, loadsAtOnce)
	for range loadsAtOnce {
		b := n.Borrower(nil)
		defer b.Close()
		go func() {
			_, _, err := n.Load(t.Context(), b, nil, false, false)
			done <- err
		}()
	}
	n.waiting(t, loadsAtOnce)
	if kept := len(n.memory.loading); kept != 0 {
		t.Errorf("loads that wait for room keep %d turns", kept)
	}
	took.Return()
	for range loadsAtOnce {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestWatchesThatDeliverSlowlyAreCutOff: one that delivers to a function, which does not return while others wait for
// room.
func TestWatchesThatDeliverSlowlyAreCutOff(t *testing.T) {
	n := lender(1 << 20)
	has := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- n.patiently(t.Context(), func(ctx context.Context, b *Borrower, late <-chan struct{}) error {
			l, _, err := n.Load(ctx, b, nil, false, false)
			if err != nil {
				return err
			}
			defer l.Return()
			l.Take(1 << 20)
			close(has)
			select {
			case <-late:
			case <-time.After(10 * time.Second):
				t.Error("it does not hear that others wait")
			}
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	<-has
	other := n.Borrower(nil)
	defer other.Close()
	if _, _, err := n.Load(t.Context(), other, nil, false, false); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, machine.ErrBusy) || n.WatchMemory().Cut != 1 {
		t.Errorf("it ends with %v", err)
	}
}
