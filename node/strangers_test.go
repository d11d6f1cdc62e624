package node_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// strange is a bundle of a stranger, unlike others by its number.
func (n *network) strange(t *testing.T, k int) []byte {
	t.Helper()
	m := n.mutation(fmt.Sprintf("/x%08d", k))
	m.Nonce = fmt.Appendf(nil, "%08d", k)
	b, err := scope.Sign(n.authors[0], n.genesis.Policy.Limits, m)
	if err != nil {
		t.Fatal(err)
	}
	return node.Frame(node.RawBundle(b.Raw()))
}

// TestFullPoolsDoNotStopProposals: strangers fill the pool of each anchor with
// bundles that no other has, and all get in all the same.
func TestFullPoolsDoNotStopProposals(t *testing.T) {
	const each = 20
	n := newNetwork(t, "full")
	room := each * len(n.strange(t, 0))
	for i := range n.machines {
		m, err := node.NewMachine(node.MachineConfig{Network: n.shared, Key: &n.keys[i], Pool: room}, n.hosts[i].Mem)
		if err != nil {
			t.Fatal(err)
		}
		n.machines[i] = m
	}
	for i := range n.machines {
		for k := range 2 * each { // and as many again, which find no room
			n.deliver(t, i, "stranger", n.strange(t, 1000*i+k))
		}
		if got := n.machines[i].Status().PoolSize; got > room {
			t.Fatalf("%d bytes wait at node %d, the limit is %d", got, i, room)
		}
	}
	n.settle(t, 20*time.Second)
	for i, m := range n.machines {
		if s := m.Status(); s.Head.Revision < 4*each+1 || s.Pool != 0 {
			t.Errorf("node %d: revision %d, %d mutations wait", i, s.Head.Revision, s.Pool)
		}
	}
}

// TestManyExpiredBundlesStopNobody: a stranger sends thousands of bundles that
// expire before anything is decided.
func TestManyExpiredBundlesStopNobody(t *testing.T) {
	n := newNetwork(t, "expired")
	for k := range 3000 {
		n.deliver(t, 0, "stranger", n.strange(t, k))
	}
	n.now = n.now.Add(time.Hour)
	n.step(t, 0, node.Submit{Bundle: n.bundle(t, 0)})
	if s := n.machines[0].Status(); s.Pool != 1 {
		t.Errorf("%d mutations wait an hour later", s.Pool)
	}
}

// TestOwnClientsComeFirst: what strangers sent before does not keep the write of
// a leader's own client out of its block, and the block names no more bundles
// than others can ask for at once.
func TestOwnClientsComeFirst(t *testing.T) {
	const many = 1500
	n := newNetwork(t, "first")
	n.listen(t)
	proposals := 0
	for i := range n.machines {
		var events []node.Event
		for k := range many {
			msg, err := n.machines[i].Checker().Check("stranger", n.strange(t, k))
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, node.Arrived{From: "stranger", Message: msg})
		}
		own := n.bundle(t, i)
		n.step(t, i, append(events, node.Submit{Bundle: own})...)
		for _, f := range n.hosts[i].frames {
			p, ok := parsed(t, f).(node.Proposal)
			if !ok {
				continue
			}
			proposals++
			if len(p.Bundles) >= 1024 || len(p.Bundles) < 1000 {
				t.Errorf("a block names %d bundles", len(p.Bundles))
			}
			if p.Bundles[0] != own.ID() {
				t.Error("the block does not begin with what the leader's own client wrote")
			}
		}
	}
	if proposals == 0 {
		t.Fatal("nobody proposed")
	}
}
