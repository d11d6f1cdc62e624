package machine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aweigh/aweigh/node/machine"
)

// TestFetchedFromOneThatIsBehind: two anchors come back to a scope at rest, and one fetches from the other, which is
// behind itself. It learns all the same what the others hold, though no block follows.
func TestFetchedFromOneThatIsBehind(t *testing.T) {
	n := newNetworkUnder(t, "behind", shortEpochs(8))
	n.listen(t)
	write := func(k int) {
		n.put(t, k%3, fmt.Sprint("/k", k))
		n.now = n.now.Add(time.Second)
		n.meet(t, 0, without(0), 8)
	}
	k := 0
	for ; n.machines[2].Status().Epoch < 2; k++ {
		if k > 60 {
			t.Fatal("no epoch ends")
		}
		write(k)
	}
	began := n.machines[2].Status().Head.Height
	old := n.hosts[2].Mem.Clone()
	for range 3 {
		k++
		write(k)
	}
	head := n.machines[0].Status().Head
	if head.Epoch != 2 || head.Height <= began {
		t.Fatalf("the others are at height %d of epoch %d, after %d", head.Height, head.Epoch, began)
	}
	n.restart(t, 2, old)
	n.restart(t, 3, n.fresh(t))
	for _, i := range without(3) {
		n.step(t, 3, machine.Met{Peer: n.peers[i]})
	}
	n.step(t, 2, machine.Met{Peer: n.peers[3]})
	for _, i := range []int{0, 1} { // what they said at first was forgotten with the epoch
		n.unheard(i)
	}
	for range 40 {
		if n.machines[3].Status().Head.Height >= began {
			break
		}
		n.now = n.now.Add(time.Second)
		n.step(t, 3)
		n.talk(t, []int{3, 2}, 1)
	}
	for range 5 {
		n.now = n.now.Add(time.Second)
		for i := range n.machines {
			n.step(t, i)
		}
		n.talk(t, []int{3, 0, 1}, 6)
	}
	if got := n.machines[3].Status().Head; got.Block != head.Block {
		t.Errorf("it is at height %d, the others at %d", got.Height, head.Height)
	}
}
