package machine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/votes"
)

// guarded is a network in which three of four anchors must approve what lies below /s/.
func guarded(t *testing.T, name string) *network {
	t.Helper()
	p := scope.OpenPolicy(quorum.BFT)
	p.Approvals = []scope.Approval{{Matter: scope.Changes, Prefix: []byte("/s/"), Num: 3, Den: 4, Window: time.Hour}}
	n := newNetworkUnder(t, name, p)
	n.listen(t)
	return n
}

// vote hands in the approval of an anchor at an anchor.
func (n *network) vote(t *testing.T, at, by int, id votes.MotionID) {
	t.Helper()
	n.step(t, at, machine.HandIn{ID: 1, Ballots: []votes.CheckedMotionBallot{n.approval(t, by, id)}, Own: at == by})
}

// approval is that of an anchor.
func (n *network) approval(t *testing.T, by int, id votes.MotionID) votes.CheckedMotionBallot {
	t.Helper()
	b, err := votes.SignMotionBallot(n.keys[by].Signer(), votes.MotionVote{Network: n.genesis.Hash(), Scope: n.genesis.Hash(), Motion: id, Choice: votes.Approve}, "")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := votes.NewKeySet(n.keys[by].Public())
	if err != nil {
		t.Fatal(err)
	}
	c, err := votes.CheckMotionBallot(b, n.genesis.Hash(), n.genesis.Hash(), keys, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// carried is a motion that three of four anchors have approved.
func (n *network) carried(t *testing.T) votes.MotionID {
	t.Helper()
	m := n.asks(0, "/s/a")
	id := scope.ID(m.Encode())
	n.submit(t, 0, m)
	n.meet(t, 0, without(0), 10)
	for by := range 3 {
		n.vote(t, by, by, id)
	}
	n.meet(t, 0, without(0), 10)
	if got := n.fate(t, 0, id); got != "carried" {
		t.Fatal(got)
	}
	return id
}

// asks is a mutation that opens a motion.
func (n *network) asks(i int, key string) scope.Mutation {
	m := n.mutation(key)
	m.Nonce, m.Author = fmt.Appendf(nil, "%-8s", key), n.authors[i].Public().ID()
	return m
}

func (n *network) submit(t *testing.T, i int, all ...scope.Mutation) {
	t.Helper()
	n.step(t, i, machine.Submit{Bundle: n.signed(t, i, all...)})
}

// signed is a bundle of an anchor's author.
func (n *network) signed(t *testing.T, i int, all ...scope.Mutation) *scope.CheckedBundle {
	t.Helper()
	b, err := scope.Sign(n.authors[i], n.genesis.Policy.Limits, all...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// fate is how a motion stands at an anchor.
func (n *network) fate(t *testing.T, i int, id votes.MotionID) string {
	t.Helper()
	s, err := scope.Open(n.hosts[i].Mem, n.genesis.Hash())
	if err != nil {
		t.Fatal(err)
	}
	m, end, err := s.Motion(id)
	switch {
	case err != nil:
		t.Fatal(err)
	case m == nil:
		return "unknown"
	case end == nil:
		return "open"
	}
	return end.String()
}

// TestRepeatedMutationsDoNotSpoilBallots: a bundle that repeats what opened a motion,
// beside what is new, does not make a leader name its ballots twice.
func TestRepeatedMutationsDoNotSpoilBallots(t *testing.T) {
	n := guarded(t, "repeats")
	m := n.asks(0, "/s/a")
	id := scope.ID(m.Encode())
	n.submit(t, 0, m)
	n.meet(t, 0, without(0), 10)
	if got := n.fate(t, 0, id); got != "open" {
		t.Fatal(got)
	}
	early := n.asks(0, "/s/later")
	for by := range 4 { // so that the box has early ballots
		n.vote(t, by, by, scope.ID(early.Encode()))
	}
	for by := range 3 {
		n.vote(t, by, by, id)
	}
	n.submit(t, 0, m, n.asks(0, "/new"))
	for range 20 {
		n.now = n.now.Add(100 * time.Millisecond)
		n.meet(t, 0, without(0), 10)
	}
	for i := range 4 {
		if got := n.fate(t, i, id); got != "carried" {
			t.Errorf("at %d it is %s", i, got)
		}
		for _, x := range n.hosts[i].notes {
			if d, ok := x.(machine.Dropped); ok && strings.Contains(d.Why, "ballot") {
				t.Errorf("anchor %d: %s", i, d.Why)
			}
		}
	}
}

// TestWaitingMutationsOutliveANode (P35): what waits long for a quorum is on disk, is
// proposed after a restart, and leaves the disk when it is final; at whichever node,
// the one that leads and has proposed it in vain included, and also where a peer sent
// it before this node's client did.
func TestWaitingMutationsOutliveANode(t *testing.T) {
	for k := range 8 {
		i, heard := k/2, k%2 == 1
		n := newNetwork(t, "waits")
		n.listen(t)
		b := n.signed(t, i, n.asks(i, "/k"))
		if heard {
			n.deliver(t, i, n.peers[(i+1)%4], machine.Frame(machine.RawBundle(b.Raw())))
		}
		n.step(t, i, machine.Submit{Bundle: b})
		if n.kept(i) != 0 {
			t.Fatalf("anchor %d: it is kept at once", i)
		}
		for range 8 {
			n.now = n.now.Add(time.Second)
			n.step(t, i)
		}
		if n.kept(i) != 1 {
			t.Fatalf("anchor %d, heard before: %v: %d bundles are kept", i, heard, n.kept(i))
		}
		n.restart(t, i, n.hosts[i].Mem.Clone())
		for range 20 {
			n.now = n.now.Add(300 * time.Millisecond)
			n.meet(t, i, without(i), 10)
		}
		s, err := scope.Open(n.hosts[i].Mem, n.genesis.Hash())
		if err != nil {
			t.Fatal(err)
		}
		if rev := s.Head().Revision; rev != 2 || n.kept(i) != 0 {
			t.Fatalf("anchor %d, heard before: %v: revision %d, %d bundles are kept", i, heard, rev, n.kept(i))
		}
	}
}

// observer adds a node without a key, on a disk, and returns its number.
func (n *network) observer(t *testing.T, disk *store.Mem) int {
	t.Helper()
	m, err := machine.NewMachine(machine.MachineConfig{Network: n.shared, Life: uint64(n.now)}, disk)
	if err != nil {
		t.Fatal(err)
	}
	n.peers = append(n.peers, machine.Peer(fmt.Sprint("observer ", len(n.peers))))
	n.hosts, n.machines = append(n.hosts, &tap{Mem: disk}), append(n.machines, m)
	return len(n.peers) - 1
}

// unheard loses what a node said.
func (n *network) unheard(i int) { n.hosts[i].frames, n.hosts[i].to = nil, nil }

// meetings is how many messages of meetings a node sends in an hour.
func (n *network) meetings(t *testing.T, i int) (count int) {
	t.Helper()
	n.unheard(i)
	for end := n.now.Add(time.Hour); n.now < end; n.now = n.now.Add(10 * time.Second) {
		n.step(t, i)
	}
	for _, f := range n.hosts[i].frames {
		if _, ok := parsed(t, f).(machine.ReconcileMsg); ok {
			count++
		}
	}
	n.unheard(i)
	return count
}

// TestLateBallotsReachTheAnchors (P34): a ballot comes to an observer when its motion is
// closed, and what that tells the anchors is lost. It tells one again, also after a
// restart, until a block has the ballot; then it says no more.
func TestLateBallotsReachTheAnchors(t *testing.T) {
	n := guarded(t, "late")
	id := n.carried(t)
	late := n.approval(t, 3, id)
	o := n.observer(t, n.hosts[0].Mem.Clone())
	n.step(t, o, machine.HandIn{ID: 1, Ballots: []votes.CheckedMotionBallot{late}})
	n.unheard(o)
	if n.meetings(t, o) == 0 {
		t.Fatal("it tells nobody")
	}
	o = n.observer(t, n.hosts[o].Mem.Clone())
	recorded := func() bool {
		s, err := scope.Open(n.hosts[o].Mem, n.genesis.Hash())
		if err != nil {
			t.Fatal(err)
		}
		b := late.Ballot()
		have, err := s.HasBallot(b.MotionVote, b.Voter)
		if err != nil {
			t.Fatal(err)
		}
		return have
	}
	for end := n.now.Add(time.Minute); !recorded(); n.now = n.now.Add(time.Second) {
		if n.now > end {
			t.Fatal("no block has it")
		}
		n.talk(t, []int{o, 0, 1, 2, 3}, 4)
	}
	if n.meetings(t, o) > 0 || n.records(o, 'l') > 0 {
		t.Error("a block has it, and it is kept, or told, still")
	}
}

// TestForgottenMotionsTakeTheirLateBallotsAlong: an observer without anchors in reach
// keeps a late ballot until it hears that its motion is forgotten.
func TestForgottenMotionsTakeTheirLateBallotsAlong(t *testing.T) {
	n := guarded(t, "forgotten")
	id := n.carried(t)
	o := n.observer(t, n.hosts[0].Mem.Clone())
	n.step(t, o, machine.HandIn{ID: 1, Ballots: []votes.CheckedMotionBallot{n.approval(t, 3, id)}})
	n.unheard(o)
	if n.records(o, 'l') != 1 {
		t.Fatalf("%d late ballots are kept", n.records(o, 'l'))
	}
	n.now = n.now.Add(8 * 24 * time.Hour)
	n.submit(t, 0, n.asks(0, "/k"))
	n.meet(t, 0, without(0), 20)
	for i := range 4 {
		n.unheard(i)
	}
	if got := n.fate(t, 0, id); got != "unknown" {
		t.Fatalf("the motion is %s", got)
	}
	for range 30 {
		n.now = n.now.Add(time.Second)
		n.talk(t, []int{o, 0, 1, 2, 3}, 4)
	}
	if got := n.fate(t, o, id); got != "unknown" {
		t.Fatalf("at the observer the motion is %s", got)
	}
	if n.records(o, 'l') > 0 || n.meetings(t, o) > 0 {
		t.Errorf("%d late ballots are kept, or told, still", n.records(o, 'l'))
	}
}

// kept is how many waiting bundles are on an anchor's disk.
func (n *network) kept(i int) int { return n.records(i, 'p') }

// records is how many records of a letter are on a node's disk.
func (n *network) records(i int, letter byte) (count int) {
	id := n.genesis.Hash()
	prefix := append(append([]byte{'n'}, id[:]...), letter)
	_ = n.hosts[i].Mem.Scan(prefix, kv.PrefixEnd(prefix), false, func(_, _ []byte) bool {
		count++
		return true
	})
	return count
}
