package machine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/votes"
)

// restart starts an anchor anew on a disk.
func (n *network) restart(t *testing.T, i int, disk *store.Mem) {
	t.Helper()
	m, err := machine.NewMachine(machine.MachineConfig{Network: n.shared, Key: &n.keys[i], Life: uint64(n.now)}, disk)
	if err != nil {
		t.Fatal(err)
	}
	n.hosts[i], n.machines[i] = &tap{Mem: disk}, m
}

// fresh is a disk that holds the genesis alone.
func (n *network) fresh(t *testing.T) *store.Mem {
	t.Helper()
	ops, err := machine.Bootstrap(n.genesis)
	if err != nil {
		t.Fatal(err)
	}
	disk := store.NewMem()
	if err := disk.Commit(ops, true); err != nil {
		t.Fatal(err)
	}
	return disk
}

// meet lets an anchor and others meet, and delivers what all say, as often as
// given. It returns the ballots and proposals of that anchor.
func (n *network) meet(t *testing.T, i int, others []int, rounds int) (signed []any) {
	t.Helper()
	for _, j := range others {
		n.step(t, i, machine.Met{Peer: n.peers[j]})
		n.step(t, j, machine.Met{Peer: n.peers[i]})
	}
	return n.talk(t, append([]int{i}, others...), rounds)
}

// talk delivers what some nodes say to each other, as often as given. It returns the
// ballots and proposals of the first.
func (n *network) talk(t *testing.T, all []int, rounds int) (signed []any) {
	t.Helper()
	for range rounds {
		for _, from := range all {
			h := n.hosts[from]
			sent, to := h.frames, h.to
			h.frames, h.to = nil, nil
			for k, f := range sent {
				switch x := parsed(t, f).(type) {
				case votes.Ballot, machine.Proposal:
					if from == all[0] {
						signed = append(signed, x)
					}
				}
				for _, j := range all {
					if j == from || to[k] != "" && to[k] != n.peers[j] {
						continue
					}
					if msg, err := n.machines[j].Checker().Check(n.peers[from], f); err == nil {
						n.step(t, j, machine.Arrived{From: n.peers[from], Message: msg})
					}
				}
			}
		}
		for _, j := range all {
			n.step(t, j)
		}
	}
	return signed
}

func without(i int) (others []int) {
	for j := range 4 {
		if j != i {
			others = append(others, j)
		}
	}
	return others
}

// TestAnchorThatForgotIsSilentBeforeItSigns (P9): whichever anchor starts on an
// empty or an older disk, whether or not its ballot stands in a certificate,
// meets its forgotten ballots before it signs the first new one, though it has
// work to do at once.
func TestAnchorThatForgotIsSilentBeforeItSigns(t *testing.T) {
	for i := range 4 {
		for _, disk := range []string{"empty", "older"} {
			n := newNetwork(t, "forgot")
			n.listen(t)
			d := n.hosts[i].Mem.Clone()
			if disk == "empty" {
				d = n.fresh(t)
			}
			n.traffic(t)
			n.restart(t, i, d)
			n.now = n.now.Add(time.Second)
			n.step(t, i, machine.Submit{Bundle: n.other(t, i)})
			signed := n.meet(t, i, without(i), 6)
			if len(signed) > 0 {
				t.Errorf("anchor %d on an %s disk signed %v", i, disk, signed)
			}
			if !n.machines[i].Status().Lost {
				t.Errorf("anchor %d on an %s disk did not see that it forgot", i, disk)
			}
		}
	}
}

// TestNothingIsSignedBeforeAQuorumWasHeard: one other anchor of four is not
// enough, two are when the third stays away; then what waited is signed.
func TestNothingIsSignedBeforeAQuorumWasHeard(t *testing.T) {
	n := newNetwork(t, "alone")
	n.step(t, 0, machine.Submit{Bundle: n.bundle(t, 0)})
	if signed := n.meet(t, 0, []int{1}, 40); len(signed) > 0 {
		t.Fatalf("signed %v after it heard one anchor of three", signed)
	}
	if !n.machines[0].Status().Listening {
		t.Fatal("it does not say that it listens")
	}
	n.now = n.now.Add(2 * time.Second)
	n.step(t, 0)
	if s := n.machines[0].Status(); s.Unheard < 2*time.Second {
		t.Fatalf("it says that it asked in vain for %v", s.Unheard)
	}
	n.meet(t, 0, []int{1, 2}, 40)
	if s := n.machines[0].Status(); s.Listening || s.Unheard != 0 {
		t.Fatalf("it still listens after it heard a quorum, for %v", s.Unheard)
	}
	for range 20 {
		n.now = n.now.Add(time.Second)
		n.meet(t, 0, []int{1, 2}, 10)
	}
	if h := n.machines[0].Status().Head.Height; h == 0 {
		t.Fatal("three of four anchors commit nothing")
	}
}

// TestLateFounderSigns: an empty store is no loss where nothing was signed.
func TestLateFounderSigns(t *testing.T) {
	n := newNetwork(t, "later5")
	n.step(t, 0, machine.Submit{Bundle: n.bundle(t, 0)})
	for range 20 {
		n.now = n.now.Add(time.Second)
		n.meet(t, 0, []int{1, 2}, 10)
	}
	height := n.machines[0].Status().Head.Height
	if height == 0 {
		t.Fatal("three of four anchors commit nothing")
	}
	n.step(t, 3, machine.Submit{Bundle: n.other(t, 3)})
	var signed []any
	for range 20 {
		n.now = n.now.Add(time.Second)
		signed = append(signed, n.meet(t, 3, []int{0, 1, 2}, 10)...)
	}
	s := n.machines[3].Status()
	if s.Lost || s.Listening || len(signed) == 0 || s.Head.Height <= height {
		t.Fatalf("lost %t, listens %t, signed %d ballots, height %d of %d", s.Lost, s.Listening, len(signed), s.Head.Height, height)
	}
}

// TestAllMayRestartTogether: no anchor waits for an answer from anchors that wait themselves.
func TestAllMayRestartTogether(t *testing.T) {
	n := newNetwork(t, "together")
	n.listen(t)
	n.traffic(t)
	height := n.machines[0].Status().Head.Height
	for i := range 4 {
		n.restart(t, i, n.hosts[i].Mem)
	}
	n.step(t, 0, machine.Submit{Bundle: n.other(t, 0)})
	for range 20 {
		n.now = n.now.Add(time.Second)
		n.meet(t, 0, without(0), 10)
	}
	for i, m := range n.machines {
		if s := m.Status(); s.Lost || s.Listening || s.Head.Height <= height {
			t.Errorf("anchor %d: lost %t, listens %t, height %d of %d", i, s.Lost, s.Listening, s.Head.Height, height)
		}
	}
}

// TestLiarsAboutHeightsDoNotKeepAnyoneSilent: an anchor that claims a height that no anchor has does not count, and
// the others do not wait for it.
func TestLiarsAboutHeightsDoNotKeepAnyoneSilent(t *testing.T) {
	n := newNetwork(t, "far")
	n.step(t, 3, machine.Met{Peer: n.peers[0]})
	for _, f := range n.hosts[3].frames {
		if o, ok := parsed(t, f).(machine.Offer); ok {
			o.Height = 1 << 40
			msg, err := n.machines[0].Checker().Check(n.peers[3], machine.Frame(o))
			if err != nil {
				t.Fatal(err)
			}
			n.step(t, 0, machine.Arrived{From: n.peers[3], Message: msg})
		}
	}
	n.meet(t, 0, []int{1}, 10)
	if n.now = n.now.Add(2 * time.Second); !n.machines[0].Status().Listening {
		t.Fatal("a liar was counted")
	}
	if n.meet(t, 0, []int{1, 2}, 10); n.machines[0].Status().Listening {
		t.Fatal("still listens for a liar")
	}
}

// TestTheOneThatRemembersIsWaitedFor: what an anchor signed before it lost its
// disk reached one other alone. The two others are a quorum with it, and yet it
// waits a moment for the third.
func TestTheOneThatRemembersIsWaitedFor(t *testing.T) {
	n := newNetwork(t, "one remembers")
	n.listen(t)
	lead := n.machines[0].Status().Leader
	i := slices.IndexFunc(n.keys, func(k votes.PrivateKey) bool { return k.Public().ID() == lead })
	others := without(i)
	n.step(t, i, machine.Submit{Bundle: n.bundle(t, i)})
	sent := n.hosts[i].frames
	n.restart(t, i, n.fresh(t))
	for _, f := range sent {
		if msg, err := n.machines[others[0]].Checker().Check(n.peers[i], f); err == nil {
			n.step(t, others[0], machine.Arrived{From: n.peers[i], Message: msg})
		}
	}
	n.step(t, i, machine.Submit{Bundle: n.other(t, i)})
	if signed := n.meet(t, i, others[1:], 10); len(signed) > 0 || !n.machines[i].Status().Listening {
		t.Fatalf("signed %v before it heard who remembers", signed)
	}
	if signed := n.meet(t, i, others, 4); len(signed) > 0 || !n.machines[i].Status().Lost {
		t.Fatalf("signed %v, lost its state: %t", signed, n.machines[i].Status().Lost)
	}
}

// TestBlocksRemindOfWhatNobodyRemembers: the others forgot the ballots of an
// anchor that was away for long. Those that made a block final stand beside it,
// of a quorum at least. Whom none names votes on, in views that it never saw.
func TestBlocksRemindOfWhatNobodyRemembers(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	lost := 0
	for i := range 4 {
		n := newNetwork(t, "long ago")
		n.listen(t)
		n.traffic(t)
		rest := without(i)
		for v := n.machines[rest[0]].Status().View; v < 3*quorum.Ahead; v = n.machines[rest[0]].Status().View {
			n.now = n.now.Add(time.Second)
			n.step(t, rest[0], machine.Submit{Bundle: n.named(t, rest[0], fmt.Sprint("/k", v))})
			n.meet(t, rest[0], rest[1:], 8)
		}
		n.restart(t, i, n.fresh(t))
		n.step(t, i, machine.Submit{Bundle: n.other(t, i)})
		signed := n.meet(t, i, rest, 12)
		for range 10 {
			n.now = n.now.Add(time.Second)
			signed = append(signed, n.meet(t, i, rest, 6)...)
		}
		s := n.machines[i].Status()
		for _, j := range rest {
			if f := n.machines[j].Status().Faults; len(f) > 0 {
				t.Errorf("anchor %d is at fault: %v", i, f)
			}
		}
		if s.Lost {
			lost++
			if len(signed) > 0 {
				t.Errorf("anchor %d signed %v before it saw that it forgot", i, signed)
			}
		} else if s.Listening {
			t.Errorf("anchor %d listens for ever, at height %d of %d", i, s.Head.Height, n.machines[rest[0]].Status().Head.Height)
		}
	}
	if lost == 0 {
		t.Error("nobody saw that it forgot, and each finalization names three")
	}
}
