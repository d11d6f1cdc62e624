package node

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestProofsReachAcrossEpochs: real nodes write through many epochs, and what was
// written in the first is proven with the rosters of all that followed.
func TestProofsReachAcrossEpochs(t *testing.T) {
	t.Parallel()
	policy := scope.OpenPolicy(quorum.BFT)
	policy.EpochBlocks = 5
	c := startClusterUnder(t, 4, policy, func(int, *Node) {})
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var slowest time.Duration
	for k := range 60 {
		start := time.Now()
		if _, err := c.nodes[k%4].Txn(ctx, putTxn(fmt.Sprintf("/k%d", k), "v"), Once{}); err != nil {
			t.Fatal(err)
		}
		slowest = max(slowest, time.Since(start))
	}
	if e := c.nodes[0].root.Status().Epoch; e < 5 {
		t.Fatalf("only %d epochs ended", e)
	}
	t.Logf("%d epochs; the slowest write took %v", c.nodes[0].root.Status().Epoch, slowest)
	for _, key := range []string{"/k0", "/k30", "/k59"} {
		p, _, err := c.nodes[1].Prove(ctx, []byte(key))
		if err != nil {
			t.Fatal(err)
		}
		again, err := scope.DecodeKeyProof(p.Encode())
		if err != nil {
			t.Fatal(err)
		}
		r, err := again.Verify(c.nodes[1].root.id)
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		if r.Head.Epoch < r.Origin.Epoch || len(again.Ancestry.Handovers) != int(r.Head.Epoch) {
			t.Errorf("%s: origin in epoch %d, head in %d, %d handovers", key, r.Origin.Epoch, r.Head.Epoch, len(again.Ancestry.Handovers))
		}
		if len(again.Ancestry.Handovers) > 1 {
			again.Ancestry.Handovers[1].Terms.Weights[0]++
			if _, err := again.Verify(c.nodes[1].root.id); err == nil {
				t.Errorf("%s: proven with other weights", key)
			}
		}
	}
}

// TestFollowersHearOfAnEpochsEnd: who follows a scope that has nothing more to decide
// learns that an epoch ended, and who governs what was delegated with it, without asking.
func TestFollowersHearOfAnEpochsEnd(t *testing.T) {
	t.Parallel()
	bounds := machine.DefaultBounds()
	bounds.PollEvery = time.Hour // longer than found waits
	a := newFar(t, func(_ int, cfg *Config) { cfg.bounds = &bounds })
	startAll(a)
	c := &cluster{t: t}
	for i := range 4 {
		c.nodes = append(c.nodes, a.running[i].Node)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*testwait.Patience)
	defer cancel()
	for prefix, anchors := range map[string][]int{"/one/": {1}, "/two/": {0, 1}, "/three/": {0, 1, 2}} {
		c.delegate(ctx, "", prefix, quorum.Crash, anchors...)
		c.delegate(ctx, prefix, prefix+"below/", quorum.Crash, anchors...)
	}
}
