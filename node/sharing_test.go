package node

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/node/admission"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestOnlyTheFloodedScopeWaits: on a real node whose processors are short, clients of the flooded scope wait for
// their turn, and those of another never do.
func TestOnlyTheFloodedScopeWaits(t *testing.T) {
	testshort.Skip(t)
	c := startClusterWith(t, 1, quorum.Crash, func(_ int, n *Node) {
		n.sharing = admission.NewSharing(func() float64 { return 5 })
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c.delegate(ctx, "", "/flood/", quorum.Crash, 0)
	c.delegate(ctx, "", "/quiet/", quorum.Crash, 0)
	n := c.nodes[0]
	writes, stop := context.WithCancel(ctx)
	var writing sync.WaitGroup
	defer writing.Wait()
	defer stop()
	for k := range 50 {
		writing.Go(func() {
			for writes.Err() == nil {
				_, _ = n.Txn(writes, putTxn(fmt.Sprint("/flood/", k), "v"), Once{})
			}
		})
	}
	for i := 0; n.root.Counts().GaveWay < 100; i++ {
		if _, err := n.Txn(ctx, putTxn(fmt.Sprint("/quiet/", i%100), "v"), Once{}); err != nil {
			t.Fatalf("write %d to the quiet scope: %v", i, err)
		}
		time.Sleep(20 * time.Millisecond) // the pace of a quiet client
	}
	for _, p := range n.Replicas() {
		short, end := context.WithTimeout(ctx, time.Millisecond) // so that nothing can wait
		if err := n.sharing.Wait(short, p.id, 1, p.prefix); string(p.prefix) == "/quiet/" && err != nil {
			t.Errorf("the quiet scope counts as one that gives way: %v", err)
		}
		end()
	}
}

// TestFirstComeDelaysNoWrite: with that setting nothing waits, whatever is written.
func TestFirstComeDelaysNoWrite(t *testing.T) {
	c := startClusterWith(t, 1, quorum.Crash, func(_ int, n *Node) {
		n.cfg.FirstCome = true
		n.sharing = admission.NewSharing(func() float64 {
			t.Error("it is asked whether scopes are to give way")
			return 5
		})
	})
	n := c.nodes[0]
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for range 50 {
		if err := n.root.mayWrite(ctx, scope.Write, 1); err != nil {
			t.Fatal(err)
		}
	}
}
