package node

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aweigh/aweigh/quorum"
)

// TestNodeStartedWithAWrongClockHarmsItselfAlone: the other three go on, it
// follows them, and no client of it is told that something committed.
func TestNodeStartedWithAWrongClockHarmsItselfAlone(t *testing.T) {
	for name, by := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			c := startClusterWith(t, 4, quorum.BFT, func(i int, n *Node) {
				if i == 3 {
					n.runner.began = n.runner.began.Add(by)
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
			defer cancel()
			off := c.nodes[3]
			for i := range 6 {
				if _, err := c.nodes[i%3].Txn(ctx, putTxn(fmt.Sprintf("/k%d", i), "v"), Once{}); err != nil {
					t.Fatal(err)
				}
			}
			height := c.nodes[0].Status().Head.Height
			for changed := off.Changed(); off.Status().Head.Height < height; changed = off.Changed() {
				select {
				case <-changed:
				case <-ctx.Done():
					t.Fatalf("it does not follow: height %d of %d", off.Status().Head.Height, height)
				}
			}
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			var undecided *UndecidedError
			if _, err := off.Txn(short, putTxn("/own", "v"), Once{}); !errors.As(err, &undecided) {
				t.Errorf("its client is told %v", err)
			}
		})
	}
}
