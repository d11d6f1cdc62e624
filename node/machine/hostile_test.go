package machine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// deliver hands frames to machine i as from a peer, and reports how many it took.
func (n *network) deliver(t testing.TB, i int, from machine.Peer, frames ...[]byte) (taken int) {
	t.Helper()
	for _, f := range frames {
		if msg, err := n.machines[i].Checker().Check(from, f); err == nil {
			n.step(t, i, machine.Arrived{From: from, Message: msg})
			taken++
		}
	}
	return taken
}

// settle carries frames, and lets time pass, until the network is silent or the
// time is up. Frames that an honest node refuses of another are a failure.
func (n *network) settle(t testing.TB, d time.Duration) {
	t.Helper()
	for end := n.now.Add(d); n.now < end; {
		quiet := true
		for i, h := range n.hosts {
			sent, to := h.frames, h.to
			h.frames, h.to = nil, nil
			for k, f := range sent {
				for j := range n.hosts {
					if to[k] != n.peers[j] {
						continue
					}
					quiet = false
					if n.deliver(t, j, n.peers[i], f) == 0 {
						t.Fatalf("an honest node refuses the frame %q of another", f[0])
					}
				}
			}
		}
		if quiet {
			n.now = n.now.Add(20 * time.Millisecond)
			for i := range n.machines {
				n.step(t, i)
			}
		}
	}
}

// TestManySmallBundlesAtSomeAnchors: a non-member sends more bundles than one
// question can name to two of four anchors only. All get in all the same.
func TestManySmallBundlesAtSomeAnchors(t *testing.T) {
	t.Parallel()
	testshort.Skip(t)
	const many = 1100
	for _, name := range []string{"a", "b", "c"}[:testshort.Cases(1, 1, 3)] { // other leaders
		n := newNetwork(t, name)
		n.listen(t)
		var frames [][]byte
		for k := range many {
			m := n.mutation(fmt.Sprint("/x", k))
			m.Nonce = fmt.Appendf(nil, "%08d", k)
			m.ValidUntil = n.now.Add(9 * time.Minute)
			b, err := scope.Sign(n.authors[0], n.genesis.Policy.Limits, m)
			if err != nil {
				t.Fatal(err)
			}
			frames = append(frames, append([]byte{'b'}, b.Raw()...))
		}
		for i := range 2 { // all in one step, so that one block may hold them all
			var events []machine.Event
			for _, f := range frames {
				msg, err := n.machines[i].Checker().Check("stranger", f)
				if err != nil {
					t.Fatal(err)
				}
				events = append(events, machine.Arrived{From: "stranger", Message: msg})
			}
			n.step(t, i, events...)
		}
		for range 50 { // one frame takes this network a millisecond, whoever it is for
			if n.settle(t, 5*time.Second); n.machines[3].Status().Head.Revision > many {
				break
			}
		}
		n.settle(t, time.Second)
		for i, m := range n.machines {
			if s := m.Status(); s.Head.Revision != many+1 || s.Pool != 0 {
				t.Errorf("%s, node %d: revision %d, %d mutations wait", name, i, s.Head.Revision, s.Pool)
			}
		}
	}
}

// TestReplayedBundlesMakeNoBlocks: what was applied is not proposed again.
func TestReplayedBundlesMakeNoBlocks(t *testing.T) {
	n := newNetwork(t, "replay")
	b := n.bundle(t, 0)
	f := append([]byte{'b'}, b.Raw()...)
	n.deliver(t, 0, "stranger", f)
	n.settle(t, 5*time.Second)
	height := n.machines[0].Status().Head.Height
	for i := range 10 {
		n.deliver(t, i%4, "stranger", f)
		n.settle(t, 2*time.Second)
	}
	if got := n.machines[0].Status().Head.Height; got != height || height == 0 {
		t.Fatalf("height %d, and %d after the same bundle came ten times more", height, got)
	}
}

// TestAnswersToAnEarlierLifeDoNotCount: a linearizable read is not answered by
// what anchors said before this node restarted (P23).
func TestAnswersToAnEarlierLifeDoNotCount(t *testing.T) {
	n := newNetwork(t, "rounds")
	n.listen(t)
	n.step(t, 0, machine.Read{ID: 1})
	asks := n.hosts[0].frames
	n.hosts[0].frames, n.hosts[0].to = nil, nil
	var late [3][][]byte
	for i := 1; i < 4; i++ {
		n.deliver(t, i, n.peers[0], asks[0])
		for _, f := range n.hosts[i].frames {
			if f[0] == 'a' {
				late[i-1] = append(late[i-1], f)
			}
		}
		n.hosts[i].frames, n.hosts[i].to = nil, nil
	}
	disk := n.hosts[0].Mem.Clone()
	n.step(t, 1, machine.Submit{Bundle: n.bundle(t, 1)})
	n.settle(t, 5*time.Second)
	again, err := machine.NewMachine(machine.MachineConfig{Network: n.shared, Key: &n.keys[0], Life: 1 << 32}, disk)
	if err != nil {
		t.Fatal(err)
	}
	fx := again.Step(n.now, machine.Read{ID: 2})
	for i, frames := range late {
		if len(frames) == 0 {
			t.Fatalf("anchor %d did not answer", i+1)
		}
		for _, f := range frames {
			msg, err := again.Checker().Check(n.peers[i+1], f)
			if err != nil {
				t.Fatal(err)
			}
			more := again.Step(n.now, machine.Arrived{From: n.peers[i+1], Message: msg})
			fx.Reply = append(fx.Reply, more.Reply...)
		}
	}
	if len(fx.Reply) > 0 {
		t.Fatalf("a read was answered at height %d on the word of an earlier life", fx.Reply[0].Height)
	}
}

// TestObserverOffersItsMutationsAgain: a write through an observer does not rest
// on one delivery (P17).
func TestObserverOffersItsMutationsAgain(t *testing.T) {
	n := newNetwork(t, "observer")
	m, err := machine.NewMachine(machine.MachineConfig{Network: n.shared}, n.hosts[0].Mem.Clone())
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	count := func(fx machine.Effects) {
		for _, p := range fx.Send {
			if p.Frame[0] == 'b' {
				sent++
			}
		}
	}
	count(m.Step(n.now, machine.Submit{Bundle: n.bundle(t, 0)}))
	for range 50 {
		n.now = n.now.Add(100 * time.Millisecond)
		count(m.Step(n.now))
	}
	if sent < 3*len(n.peers) {
		t.Fatalf("%d frames with the mutation in five seconds", sent)
	}
}

// TestFarHeightsDoNotHoldUpCatchUp: a peer that claims a height and gives nothing
// is not asked for ever.
func TestFarHeightsDoNotHoldUpCatchUp(t *testing.T) {
	n := newNetwork(t, "far")
	for _, p := range n.peers[1:] {
		n.step(t, 0, machine.Met{Peer: p})
	}
	offer := func(domain any) []byte {
		return append([]byte{'o'}, canon.Encode([]any{domain, 1, 0, uint64(1) << 60, []any{}, []any{}, false, false})...)
	}
	d := n.machines[0].Checker().Keyring.Domain()
	if n.deliver(t, 0, "stranger", offer(d)) != 1 {
		t.Fatal("the offer was refused")
	}
	n.deliver(t, 0, n.peers[3], offer(d)) // an anchor that lies
	asked := make(map[machine.Peer]int)
	for range 600 {
		for k, f := range n.hosts[0].frames {
			if f[0] == 's' {
				asked[n.hosts[0].to[k]]++
				// Whoever is asked has nothing.
				n.deliver(t, 0, n.hosts[0].to[k], append([]byte{'y'}, canon.Encode([]any{[]any{}, []any{}, scope.Finality{}, uint64(1) << 60})...))
			}
		}
		n.hosts[0].frames, n.hosts[0].to = nil, nil
		n.now = n.now.Add(10 * time.Millisecond)
		n.step(t, 0)
	}
	if asked["stranger"] > 0 || asked[n.peers[1]] == 0 || asked[n.peers[2]] == 0 {
		t.Fatalf("asked %v", asked)
	}
}

// TestWritesAppliedByAnotherBundleDoNotWait: a client repeats a write that stands in
// a block already, and only its node hears of the second bundle. Nobody would take
// it, so it must not wait for ever.
func TestWritesAppliedByAnotherBundleDoNotWait(t *testing.T) {
	n := newNetwork(t, "twice")
	n.listen(t)
	once, beside := n.mutation("/once"), n.mutation("/beside")
	sign := func(m ...scope.Mutation) *scope.CheckedBundle {
		b, err := scope.Sign(n.authors[0], n.genesis.Policy.Limits, m...)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	both, again := sign(once, beside), sign(once)
	for i := range n.machines {
		n.deliver(t, i, "stranger", append([]byte{'b'}, both.Raw()...))
	}
	n.step(t, 0, machine.Submit{Bundle: again})
	h := n.hosts[0]
	frames, to := h.frames, h.to
	h.frames, h.to = nil, nil
	for k, f := range frames {
		if f[0] != 'b' { // nobody hears of it
			h.frames, h.to = append(h.frames, f), append(h.to, to[k])
		}
	}
	n.settle(t, 20*time.Second)
	for i, m := range n.machines {
		if s := m.Status(); s.Pool != 0 || s.Head.Revision != 3 {
			t.Errorf("node %d: revision %d, %d mutations wait", i, s.Head.Revision, s.Pool)
		}
	}
}
