package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestRatesHoldClientsBack: clients of a node write to a scope no faster than its policy says,
// wait for their turn, and are told so if that takes too long; another scope knows nothing of it.
func TestRatesHoldClientsBack(t *testing.T) {
	testshort.Skip(t)
	c := startCluster(t, 1, quorum.Crash)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	policy := scope.OpenPolicy(quorum.Crash)
	policy.Limits.Rate = 100
	c.delegateUnder(ctx, "", "/slow/", policy, 0)
	c.delegate(ctx, "", "/fast/", quorum.Crash, 0)
	n := c.nodes[0]

	begin := time.Now()
	var done atomic.Int64
	var writing sync.WaitGroup
	writes, stop := context.WithCancel(ctx)
	for k := range 20 {
		writing.Go(func() {
			for writes.Err() == nil {
				if _, err := n.Txn(writes, putTxn(fmt.Sprint("/slow/", k), "v"), Once{}); err == nil {
					done.Add(1)
				}
			}
		})
	}
	testwait.Until(t, "100 writes", func() bool { return done.Load() >= 100 })
	short, end := context.WithTimeout(ctx, 20*time.Millisecond) // twenty wait before it
	_, err := n.Txn(short, putTxn("/slow/x", "v"), Once{})
	end()
	if !errors.Is(err, machine.ErrBusy) {
		t.Errorf("a write that cannot have its turn in time: %v", err)
	}
	for k := range 100 { // at once
		if _, err := n.Txn(ctx, putTxn(fmt.Sprint("/fast/", k), "v"), Once{}); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	writing.Wait()
	if most := 100*time.Since(begin).Seconds() + 10 + 1; float64(done.Load()) > most {
		t.Errorf("%d writes in %v", done.Load(), time.Since(begin))
	}
}
