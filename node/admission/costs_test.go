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
		if err := c.WaitPriced(gone, ownUnits, nil); err == nil {
			t.Fatal("a client that is gone has its turn")
		}
	}
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.Begin(soon, nil); !errors.Is(err, machine.ErrBusy) {
		t.Errorf("the next request is priced at once: %v", err)
	}
}
