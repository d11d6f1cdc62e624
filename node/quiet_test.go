package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestQuietScopesComeHomeByThemselves: a busy path gets a scope of its own. When its clients are gone, the path comes
// home without a write or a decision. When they are back, it is split off again.
func TestQuietScopesComeHomeByThemselves(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	p := scope.OpenPolicy(quorum.BFT)
	p.EpochBlocks = 10
	p.Topology = scope.Topology{
		Split: scope.ConductAct, Rate: 5, Epochs: 1, Rest: 1, Most: 1, Fold: scope.ConductAct, Quiet: 2 * time.Second,
	}
	c := startClusterUnder(t, 4, p, func(int, *Node) {})
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	writes := make(map[string]int)
	for turn := range int64(2) {
		var all sync.WaitGroup
		var mu sync.Mutex
		for w := range 4 {
			all.Go(func() {
				for i := 0; c.nodes[0].root.LastHead().Delegated == 0 && ctx.Err() == nil; i++ {
					key := fmt.Sprintf("/b/%d", w)
					if i%5 == 0 {
						key = fmt.Sprintf("/c/%d", w)
					}
					r, err := c.nodes[w].Txn(ctx, putTxn(key, "v"), Once{})
					if err != nil || r.Code != scope.Applied {
						t.Errorf("%s: %s %s, %v", key, r.Code, r.Reason, err)
						return
					}
					mu.Lock()
					writes[key]++
					mu.Unlock()
				}
			})
		}
		all.Wait()
		left := time.Now()
		if t.Failed() || c.nodes[0].root.LastHead().Delegated == 0 {
			t.Fatal("no path is split off")
		}
		c.home(turn + 1)
		t.Logf("home %v after the last write", time.Since(left).Round(time.Millisecond))
		for i, n := range c.nodes {
			testwait.For(t, func() error {
				if n.root.LastHead().Delegated > 0 {
					return errors.New("it is still delegated")
				}
				return nil
			})
			for key, n := range writes {
				if got := c.value(ctx, i, key); got != "v" {
					t.Errorf("node %d: %s is %q after %d writes", i, key, got, n)
				}
			}
		}
	}
	for key, n := range writes {
		l, _, err := c.nodes[2].Lineage(ctx, []byte(key), 100_000)
		if err != nil {
			t.Fatal(err)
		}
		wrote := 0
		for i := range l.Entries {
			if e := l.Entries[i].Class; e == lineage.Insert || e == lineage.Update {
				wrote++
			}
		}
		if wrote != n {
			t.Errorf("the history of %s has %d writes, of %d", key, wrote, n)
		}
	}
}
