package admission

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aweigh/aweigh/node/machine"
)

// TestAbandonedPricesArePaid: a client that gives up once its request is priced has made the node work for nothing.
// That is paid for before anything else is priced.
func TestAbandonedPricesArePaid(t *testing.T) {
	var c Costs
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 4 {
		if err := c.WaitPriced(gone, ownUnits, false, nil); err == nil {
			t.Fatal("a client that is gone has its turn")
		}
	}
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Begin(soon, false, nil); !errors.Is(err, machine.ErrBusy) {
		t.Errorf("the next request is priced at once: %v", err)
	}
}

// TestPricesWaitWithinTheirDeadline: while a request is priced, the next one waits for three quarters of its time, and
// transactions of keys do not wait for it.
func TestPricesWaitWithinTheirDeadline(t *testing.T) {
	var c Costs
	end, err := c.Begin(t.Context(), false, nil)
	if err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := c.Begin(soon, false, nil); !errors.Is(err, machine.ErrBusy) {
		t.Errorf("behind a price that takes long: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Begin(gone, false, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("the client is gone: %v", err)
	}
	c.Lost(8*ownUnits, false)
	keys, err := c.Begin(t.Context(), true, nil)
	if err != nil {
		t.Fatalf("a transaction of keys: %v", err)
	}
	keys()
	end()
	if end, err = c.Begin(t.Context(), false, nil); err != nil {
		t.Fatalf("after the price is known: %v", err)
	}
	end()
}

// TestLargeReservesLeaveRoom: requests that reserve a little have their turn while large ones have taken all of the
// rest, for as long as a minute.
func TestLargeReservesLeaveRoom(t *testing.T) {
	var c Costs
	long, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	waiting := make(chan error, 6)
	for range 6 {
		go func() { waiting <- c.Wait(long, 8*ownUnits, nil) }()
	}
	if err := <-waiting; err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if err := c.Wait(ctx, 100, nil); err != nil {
			t.Errorf("a small request: %v", err)
		}
		cancel()
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("small requests wait for %v", took)
	}
	cancel()
	for range 5 {
		<-waiting
	}
}
