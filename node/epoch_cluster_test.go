package node

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestProofsReachAcrossEpochs: real nodes write through many epochs, and what was
// written in the first is proven with the rosters of all that followed.
func TestProofsReachAcrossEpochs(t *testing.T) {
	testshort.Skip(t)
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

// TestFollowersHearOfAnEpochsEnd: most nodes that follow a scope which has nothing more to decide learn without asking
// that an epoch ended, and which anchors govern what was delegated with it. An announcement can be lost on its way, as
// where the machine is so busy that a peer does not know yet who follows; such a node asks after PollEvery.
func TestFollowersHearOfAnEpochsEnd(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	bounds := machine.DefaultBounds()
	bounds.PollEvery = time.Hour // no node asks in time
	a := newFar(t, func(_ int, cfg *Config) { cfg.bounds = &bounds })
	startAll(a)
	c := &cluster{t: t}
	for i := range 4 {
		c.nodes = append(c.nodes, a.running[i].Node)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*testwait.Patience)
	defer cancel()
	type follower struct {
		node  int
		below string // founded below the scope that it follows
	}
	var deaf []follower
	for prefix, anchors := range map[string][]int{"/one/": {1}, "/two/": {0, 1}, "/three/": {0, 1, 2}} {
		c.delegate(ctx, "", prefix, quorum.Crash, anchors...)
		c.decide(ctx, prefix, c.child(prefix+"below/", scope.OpenPolicy(quorum.Crash), anchors...))
		for i := range c.nodes {
			if !slices.Contains(anchors, i) {
				deaf = append(deaf, follower{i, prefix + "below/"})
			}
		}
	}
	all := len(deaf)
	testwait.For(t, func() error {
		deaf = slices.DeleteFunc(deaf, func(f follower) bool {
			_, err := c.nodes[f.node].In(f.below)
			return err == nil
		})
		if 2*len(deaf) > all {
			return fmt.Errorf("of %d followers did not hear %v", all, deaf)
		}
		return nil
	})
}
