package machine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestASnapshotLeavesNoClientWaiting: a machine that continues from a snapshot answers what the blocks before it
// carried, sends the rest again, and asks for the reads; it refuses nothing that may have been applied.
func TestASnapshotLeavesNoClientWaiting(t *testing.T) {
	p := scope.OpenPolicy(quorum.BFT)
	old, anchor := newLone(t, p, false), newLone(t, p, true)
	carried, open, late := old.sign(old.write("/a", "1")), old.sign(old.write("/b", "2")), old.write("/c", "3")
	late.ValidUntil = old.now.Add(time.Second)
	over := old.sign(late)
	old.step(Submit{Bundle: carried}, Submit{Bundle: open}, Submit{Bundle: over}, Read{ID: 7}, Read{ID: 8})
	asked := old.reserving(old.author, 0, 7, putTxn("/d", "4"))
	old.step(Read{ID: 9}, Submit{Bundle: asked, From: "peer"})
	anchor.step(Submit{Bundle: carried})
	for range 20 {
		anchor.step()
	}

	m, err := NewMachine(MachineConfig{Network: old.cfg.Network}, anchor.disk)
	if err != nil {
		t.Fatal(err)
	}
	fx := m.Step(late.ValidUntil+1, old.Resume()...)
	if len(fx.Reply) != 1 || fx.Reply[0].Mutation != carried.Mutations()[0].ID || fx.Reply[0].Outcome == nil ||
		fx.Reply[0].Outcome.Code != scope.Applied {
		t.Errorf("replies: %+v", fx.Reply)
	}
	if !m.pool.awaits(open.Mutations()[0].ID) || m.pool.get(open.ID()) == nil {
		t.Error("what was not carried waits no more")
	}
	if e := m.pool.entries[asked.ID()]; e == nil || e.from != "peer" || !m.pool.awaits(asked.Mutations()[0].ID) {
		t.Error("what a peer handed in waits no more")
	}
	if len(fx.Send) > 0 && fx.Send[0].Frame[0] == TagBundle {
		t.Error("what waits is sent at once, however much it is")
	}
	if got := slices.Sorted(slices.Values(slices.Concat(m.reads.all()...))); !slices.Equal(got, []uint64{7, 8, 9}) {
		t.Errorf("reads that wait: %v", got)
	}
}

// TestWhatBreaksNewLimitsIsNotTakenAgain: a bundle that was checked under the limits of an earlier epoch is not sent to
// peers, which would take this node for a liar.
func TestWhatBreaksNewLimitsIsNotTakenAgain(t *testing.T) {
	n := newLone(t, scope.OpenPolicy(quorum.BFT), false)
	lim := n.chain.policy.Limits
	lim.ValueBytes++
	b, err := scope.Sign(n.author, lim, n.write("/a", strings.Repeat("v", n.chain.policy.Limits.ValueBytes+1)))
	if err != nil {
		t.Fatal(err)
	}
	n.step(Submit{Bundle: b, Again: true})
	if n.pool.get(b.ID()) != nil || n.pool.awaits(b.Mutations()[0].ID) {
		t.Error("it waits")
	}
}
