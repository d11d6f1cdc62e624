package machine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// strange is a bundle of a non-member, unlike others by its number.
func (n *network) strange(t *testing.T, k int) []byte {
	t.Helper()
	m := n.mutation(fmt.Sprintf("/x%08d", k))
	m.Nonce = fmt.Appendf(nil, "%08d", k)
	b, err := scope.Sign(n.authors[0], n.genesis.Policy.Limits, m)
	if err != nil {
		t.Fatal(err)
	}
	return machine.Frame(machine.RawBundle(b.Raw()))
}

// TestFullPoolsDoNotStopProposals: strangers fill the part of an author in the pool of each anchor with
// bundles that no other has, and all get in all the same.
func TestFullPoolsDoNotStopProposals(t *testing.T) {
	const each, parts = 20, 4 // an anchor's node has one part of the pool
	n := newNetwork(t, "full")
	room := each * len(n.strange(t, 0))
	for i := range n.machines {
		m, err := machine.NewMachine(machine.MachineConfig{Network: n.shared, Key: &n.keys[i], Pool: parts * room}, n.hosts[i].Mem)
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

// TestManyExpiredBundlesStopNobody: a non-member sends thousands of bundles that
// expire before anything is decided.
func TestManyExpiredBundlesStopNobody(t *testing.T) {
	testshort.Skip(t)
	n := newNetwork(t, "expired")
	for k := range 3000 {
		n.deliver(t, 0, "stranger", n.strange(t, k))
	}
	n.now = n.now.Add(time.Hour)
	n.step(t, 0, machine.Submit{Bundle: n.bundle(t, 0)})
	if s := n.machines[0].Status(); s.Pool != 1 {
		t.Errorf("%d mutations wait an hour later", s.Pool)
	}
}

// TestOwnClientsComeFirst: what non-members sent before does not keep the write of
// a leader's own client out of its block, and the block names no more bundles
// than others can ask for at once.
func TestOwnClientsComeFirst(t *testing.T) {
	testshort.Skip(t)
	const many = 1500
	n := newNetwork(t, "first")
	n.listen(t)
	proposals := 0
	for i := range n.machines {
		var events []machine.Event
		for k := range many {
			msg, err := n.machines[i].Checker().Check("stranger", n.strange(t, k))
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, machine.Arrived{From: "stranger", Message: msg})
		}
		own := n.bundle(t, i)
		n.step(t, i, append(events, machine.Submit{Bundle: own})...)
		for _, f := range n.hosts[i].frames {
			p, ok := parsed(t, f).(machine.Proposal)
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

// TestLeadersHandOutWhatNonMembersGave: a bundle that one anchor alone was given by
// a non-member comes before the proposal that names it, so no node has to ask for it.
func TestLeadersHandOutWhatNonMembersGave(t *testing.T) {
	n := newNetwork(t, "hand out")
	n.listen(t)
	for round := range 8 { // other leaders
		for i := range n.machines {
			n.deliver(t, i, "stranger", n.strange(t, 1000*round+i))
		}
		given, named := make(map[aweigh.Hash]bool), 0
		for end := n.now.Add(5 * time.Second); n.now < end; n.now = n.now.Add(2 * time.Millisecond) {
			for i, h := range n.hosts {
				sent, to := h.frames, h.to
				h.frames, h.to = nil, nil
				for k, f := range sent {
					switch m := parsed(t, f).(type) {
					case machine.Want:
						t.Fatalf("anchor %d asks for %d bundles", i, len(m.Bundles))
					case machine.RawBundle:
						given[aweigh.Hash(bundleID(t, n, m))] = true
					case machine.Proposal:
						for _, id := range m.Bundles {
							if named++; !given[id] {
								t.Fatal("a proposal came before what it names")
							}
						}
					}
					for j := range n.hosts {
						if to[k] == n.peers[j] {
							n.deliver(t, j, n.peers[i], f)
						}
					}
				}
				n.step(t, i)
			}
		}
		if named == 0 {
			t.Fatal("nothing was proposed")
		}
	}
}

func bundleID(t *testing.T, n *network, raw machine.RawBundle) aweigh.Hash {
	t.Helper()
	c := n.machines[0].Checker()
	b, err := scope.CheckBundle(raw, c.Limits, c.Verify)
	if err != nil {
		t.Fatal(err)
	}
	return b.ID()
}

// TestBlocksAreGivenAtARate: a peer that asks for the same blocks over and over
// gets no more of them than it could verify.
func TestBlocksAreGivenAtARate(t *testing.T) {
	n := newNetwork(t, "rate")
	for k := range 30 {
		n.step(t, 0, machine.Submit{Bundle: n.bundle(t, 0)})
		n.settle(t, time.Duration(k+1)*50*time.Millisecond)
	}
	height := int(n.machines[1].Status().Head.Height)
	if height < 20 {
		t.Fatalf("height %d", height)
	}
	n.hosts[1].frames, n.hosts[1].to = nil, nil
	given, asked, answers := 0, 0, 0
	for end := n.now.Add(time.Second); n.now < end; n.now = n.now.Add(time.Millisecond) {
		asked += n.deliver(t, 1, "stranger", machine.Frame(machine.CatchUp{From: 1}))
		for _, f := range n.hosts[1].frames {
			if m, ok := parsed(t, f).(machine.Blocks); ok {
				given += len(m.Blocks)
				answers++
			}
		}
		n.hosts[1].frames, n.hosts[1].to = nil, nil
	}
	if most := 1000 + 2*height; given > most || given < 500 {
		t.Errorf("%d blocks in a second, at most %d are to be given", given, most)
	}
	if answers < asked {
		t.Errorf("%d answers to %d questions: who gets nothing must be told", answers, asked)
	}
}
