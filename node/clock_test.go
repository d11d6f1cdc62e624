package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestNodeStartedWithAWrongClockHarmsItselfAlone: the other three go on, it follows them, and all count it as away. A
// client of one that is ahead is never told that something committed; one that is behind dates what its clients want
// by the scope's time, so it is done.
func TestNodeStartedWithAWrongClockHarmsItselfAlone(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	for name, by := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			c := startClusterWith(t, 4, quorum.BFT, func(i int, n *Node) {
				if i == 3 {
					n.root.runner.began = n.root.runner.began.Add(by)
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
			height := c.nodes[0].root.Status().Head.Height
			for changed := off.Changed(); off.root.Status().Head.Height < height; changed = off.Changed() {
				select {
				case <-changed:
				case <-ctx.Done():
					t.Fatalf("it does not follow: height %d of %d", off.root.Status().Head.Height, height)
				}
			}
			testwait.Until(t, "all nodes count it as away", func() bool {
				for _, n := range c.nodes[:3] {
					if _, err := n.Txn(ctx, putTxn("/m", "v"), Once{}); err != nil { // an ahead one sees blocks arrive late
						return false
					}
				}
				for _, n := range c.nodes {
					n.AskAnchors(ctx)
					if r := n.root.Reach(); r.Failures != 0 || r.Says[off.root.Status().Self].State != AnchorClock {
						return false
					}
				}
				return true
			})
			if checks := off.root.Ready(ctx); !slices.ContainsFunc(checks, func(c Check) bool { return c.Name == "clock" && c.Err != nil }) {
				t.Errorf("it counts as ready: %v", checks)
			}
			if by < 0 { // it dates what its clients want by the scope's time
				if r, err := off.Txn(ctx, putTxn("/own", "v"), Once{}); err != nil || r.Code != scope.Applied {
					t.Errorf("its client is told %s %s, %v", r.Code, r.Reason, err)
				}
				return
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
