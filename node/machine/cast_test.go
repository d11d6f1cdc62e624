package machine_test

import (
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/box"
	"github.com/aweigh/aweigh/votes/reconcile"
)

// TestKnownBallotsAreNotVerifiedAgain: a peer hands on, in meetings, a ballot on a motion
// that is closed. It is verified once, and not where a block has it.
func TestKnownBallotsAreNotVerifiedAgain(t *testing.T) {
	n := guarded(t, "known")
	id := n.carried(t)
	verified := 0
	network, err := machine.NewNetwork(n.genesis, func(k votes.PublicKey, c votes.Context, message, signature []byte) error {
		if c == votes.ContextCOSE {
			verified++
		}
		return votes.Verify(k, c, message, signature)
	})
	if err != nil {
		t.Fatal(err)
	}
	h := &tap{Mem: n.hosts[0].Mem.Clone()}
	m, err := machine.NewMachine(machine.MachineConfig{Network: network}, h.Mem)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		by, verified int
	}{{0, 0}, {3, 1}, {3, 0}} {
		verified = 0
		n.handsOn(t, m, h, n.approval(t, c.by, id))
		if verified != c.verified {
			t.Errorf("a ballot of anchor %d was verified %d times, not %d", c.by, verified, c.verified)
		}
	}
}

// handsOn lets a peer that holds one ballot meet a machine.
func (n *network) handsOn(t *testing.T, m *machine.Machine, h *tap, c votes.CheckedMotionBallot) {
	t.Helper()
	empty, _, err := box.New(n.genesis.Hash(), n.genesis.Hash(), box.Limits{}, store.NewMem(), nil)
	if err != nil {
		t.Fatal(err)
	}
	b := c.Ballot()
	var held reconcile.Tree
	held.Add(b.ID())
	side := empty.Side(h.Mem)
	side.Set = held.Snapshot()
	side.Load = func(aweigh.Hash) ([]byte, bool, error) { return b.Encode(), true, nil }
	s, say := reconcile.Initiate(side, reconcile.Salt{1})
	given := false
	for part := machine.Begins; len(say) > 0; part = machine.GoesOn {
		before := len(h.frames)
		if err := machine.Perform(h, m.Step(n.now, machine.Arrived{From: "peer", Message: machine.ReconcileMsg{Part: part, Message: say}})); err != nil {
			t.Fatal(err)
		}
		given = s.Stats().ItemsSent > 0
		say = nil
		for _, f := range h.frames[before:] {
			if answer, ok := parsed(t, f).(machine.ReconcileMsg); ok {
				if say, _, _, err = s.Step(answer.Message); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if !given {
		t.Fatal("it was not given")
	}
}
