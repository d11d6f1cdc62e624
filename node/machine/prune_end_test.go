package machine

import (
	"fmt"
	"testing"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestPruningEnds: a machine that has dropped as many blocks as one step does, and has no more to drop, is not to be
// stepped again for that.
func TestPruningEnds(t *testing.T) {
	n := newLone(t, scope.OpenPolicy(quorum.Crash), true)
	decide := func(nonce int, class scope.Class, content any) {
		t.Helper()
		m := n.write("/k", "v")
		m.Class, m.Content, m.Nonce = class, canon.Encode(content), fmt.Appendf(nil, "%08d", nonce)
		before := n.chain.state.Height()
		n.step(Submit{Bundle: n.sign(m)})
		for range 1000 {
			if n.chain.state.Height() > before {
				return
			}
			n.step()
		}
		t.Fatal("it is not decided")
	}
	for i := range dropsAtOnce + 20 {
		decide(i, scope.Write, putTxn("/k", "v"))
	}
	decide(-1, scope.Compact, scope.Compaction{Revision: n.chain.state.Head().Revision})
	n.retain.keep = n.chain.state.Height() - dropsAtOnce - 1 // the first height is 1
	atOnce := 0
	for range 1000 {
		if fx := n.step(); fx.Wake != 0 && fx.Wake <= n.now {
			atOnce++
		}
	}
	if at := n.retain.below; at != dropsAtOnce+1 || atOnce > 10 {
		t.Errorf("blocks below %d were dropped, and %d of 1000 steps want to be stepped at once", at, atOnce)
	}
}
