package machine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// behind is a network at rest, but for two anchors that come back: node 2 with the blocks up to a height, at which
// epoch 2 began, and node 3 with none. What the others said is forgotten with the epochs on the way.
func behind(t *testing.T) (n *network, began aweigh.Height, head scope.Head) {
	t.Helper()
	n = newNetworkUnder(t, "behind", shortEpochs(8))
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
	began = n.machines[2].Status().Head.Height
	old := n.hosts[2].Mem.Clone()
	for range 3 {
		k++
		write(k)
	}
	at := n.machines[0].Status().Head
	if at.Epoch != 2 || at.Height <= began {
		t.Fatalf("the others are at height %d of epoch %d, after %d", at.Height, at.Epoch, began)
	}
	n.restart(t, 2, old)
	n.restart(t, 3, n.fresh(t))
	for _, i := range without(3) {
		n.step(t, 3, machine.Met{Peer: n.peers[i]})
	}
	n.step(t, 2, machine.Met{Peer: n.peers[3]})
	for _, i := range []int{0, 1} {
		n.unheard(i)
	}
	return n, began, at
}

// TestFetchedFromOneThatIsBehind: two anchors come back to a scope at rest, and one fetches from the other, which is
// behind itself. It learns all the same what the others hold, though no block follows.
func TestFetchedFromOneThatIsBehind(t *testing.T) {
	n, began, head := behind(t)
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

// TestFetchedFromOneThatDies: the peer that gives the blocks dies once they led into another epoch. The node asks the
// others what they hold.
func TestFetchedFromOneThatDies(t *testing.T) {
	n, began, head := behind(t)
	for range 60 {
		if n.machines[3].Status().Epoch >= 1 {
			break
		}
		n.now = n.now.Add(100 * time.Millisecond)
		n.step(t, 3)
		n.talk(t, []int{3, 2}, 1)
	}
	if at := n.machines[3].Status().Head.Height; at == 0 || at >= began {
		t.Fatalf("it is at height %d already, of %d", at, began)
	}
	n.unheard(2)
	for _, i := range []int{3, 0, 1} {
		n.step(t, i, machine.Parted{Peer: n.peers[2]})
	}
	for range 20 {
		n.now = n.now.Add(time.Second)
		for _, i := range []int{0, 1, 3} {
			n.step(t, i)
		}
		n.talk(t, []int{3, 0, 1}, 6)
	}
	if got := n.machines[3].Status().Head; got.Block != head.Block {
		t.Errorf("it is at height %d, the others at %d", got.Height, head.Height)
	}
}
