package machine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// shortEpochs is a policy under which a few blocks make an epoch.
func shortEpochs(blocks uint64) scope.Policy {
	p := scope.OpenPolicy(quorum.BFT)
	p.EpochBlocks = blocks
	return p
}

// put has an anchor admit a mutation.
func (n *network) put(t *testing.T, i int, key string) {
	t.Helper()
	m := n.mutation(key)
	m.Nonce = fmt.Appendf(nil, "%-8s", key)
	m.ValidUntil = n.now.Add(time.Minute)
	b, err := scope.Sign(n.authors[i], n.genesis.Policy.Limits, m)
	if err != nil {
		t.Fatal(err)
	}
	n.step(t, i, machine.Submit{Bundle: b})
}

// TestP9AnchorRecoversWithTheNextEpoch: an anchor that lost its record is silent
// for the epoch, and signs again in the next without anybody's help.
func TestP9AnchorRecoversWithTheNextEpoch(t *testing.T) {
	n := newNetworkUnder(t, "recovers", shortEpochs(4))
	n.listen(t)
	n.put(t, 0, "/before")
	n.meet(t, 0, without(0), 10)
	n.restart(t, 3, n.fresh(t))
	n.meet(t, 3, without(3), 10)
	if !n.machines[3].Status().Lost {
		t.Fatal("it does not know that it forgot")
	}
	silent, signed := false, 0
	for k := 0; k < 40 && signed == 0; k++ {
		n.put(t, k%3, fmt.Sprint("/k", k))
		n.now = n.now.Add(time.Second)
		for _, x := range n.meet(t, 3, without(3), 10) {
			b, ok := x.(votes.Ballot)
			if p, proposed := x.(machine.Proposal); proposed {
				b, ok = votes.Ballot{Domain: p.Header.Domain()}, true
			}
			if ok && b.Domain.Epoch == 0 {
				t.Fatalf("it signed %v in the epoch whose record it lost", b.Subject)
			}
			signed++
		}
		silent = silent || n.machines[3].Status().Lost
	}
	if s := n.machines[3].Status(); signed == 0 || s.Lost || s.Listening || s.Epoch == 0 || !silent {
		t.Fatalf("epoch %d: signed %d, lost %v, listens %v", s.Epoch, signed, s.Lost, s.Listening)
	}
}

// TestObserverFollowsThroughEpochs: one that starts from the genesis comes
// through all rosters, however old its first.
func TestObserverFollowsThroughEpochs(t *testing.T) {
	n := newNetworkUnder(t, "follows", shortEpochs(3))
	n.listen(t)
	for k := range 20 {
		n.put(t, k%4, fmt.Sprint("/k", k))
		n.now = n.now.Add(time.Second)
		n.meet(t, 0, without(0), 8)
	}
	epoch := n.machines[0].Status().Epoch
	if epoch < 4 {
		t.Fatalf("only %d epochs ended", epoch)
	}
	n.restart(t, 3, n.fresh(t))
	for range 40 {
		n.now = n.now.Add(time.Second)
		n.meet(t, 3, without(3), 8)
	}
	a, b := n.machines[0].Status(), n.machines[3].Status()
	if a.Head.Digest != b.Head.Digest || b.Epoch != a.Epoch || a.Roster.Hash() != b.Roster.Hash() {
		t.Fatalf("height %d in epoch %d, where the others are at %d in %d", b.Head.Height, b.Epoch, a.Head.Height, a.Epoch)
	}
}
