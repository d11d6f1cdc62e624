package node

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestNodeStartedWithAWrongClockHarmsItselfAlone: the other three go on, it
// follows them. A client of one that is ahead is never told that something committed; one that is behind
// dates what its clients want by the scope's time, so it is done.
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
