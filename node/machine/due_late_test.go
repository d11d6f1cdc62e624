package machine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// TestBallotsOnApprovedMotionsAreLate: of a ballot on a motion that is approved and waits for its turn, the node says
// what the chain records: it is late.
func TestBallotsOnApprovedMotionsAreLate(t *testing.T) {
	p := scope.OpenPolicy(quorum.BFT)
	p.Limits.BlockCost = 100_000
	p.Approvals = []scope.Approval{{Matter: scope.Changes, Prefix: []byte("/s/"), Num: 3, Den: 4, Window: time.Hour}}
	n := newNetworkUnder(t, "due", p)
	n.listen(t)
	limits := n.genesis.Policy.Limits
	submit := func(units int64, ops []scope.Op, nonce string) votes.MotionID {
		m := n.mutation("/x")
		m.Content, m.Nonce, m.Author = canon.Encode(scope.Txn{Success: ops}), fmt.Appendf(nil, "%-8s", nonce), n.authors[0].Public().ID()
		b, err := scope.SignReserving(units, n.authors[0], limits, m)
		if err != nil {
			t.Fatal(err)
		}
		n.step(t, 0, machine.Submit{Bundle: b})
		n.meet(t, 0, without(0), 10)
		return scope.ID(m.Encode())
	}
	for i := range 3 {
		var ops []scope.Op
		for k := range 100 {
			ops = append(ops, scope.Op{Kind: scope.OpPut, Key: fmt.Appendf(nil, "/k/%d/%d", i, k), Value: []byte("v")})
		}
		submit(0, ops, fmt.Sprint("fill", i))
	}
	var ids []votes.MotionID
	for i := range 12 {
		ops := []scope.Op{{Kind: scope.OpPut, Key: fmt.Appendf(nil, "/s/%d", i), Value: []byte("v")}}
		for range 60 {
			ops = append(ops, scope.Op{Kind: scope.OpRange, Key: []byte("/k/"), End: []byte("/k0")})
		}
		ids = append(ids, submit(90_000, ops, fmt.Sprint("m", i)))
	}
	for _, id := range ids {
		if got := n.fate(t, 0, id); got != "open" {
			t.Fatal(got)
		}
	}
	for by := range 3 {
		var all []votes.CheckedMotionBallot
		for _, id := range ids {
			all = append(all, n.approval(t, by, id))
		}
		n.step(t, by, machine.HandIn{ID: 1, Ballots: all, Own: true})
	}
	for range 200 {
		n.meet(t, 0, without(0), 1)
		s, err := scope.Open(n.hosts[3].Mem, n.genesis.Hash())
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			at, err := s.ApprovedAt(id)
			if err != nil {
				t.Fatal(err)
			}
			if at == 0 {
				continue
			}
			late := n.approval(t, 3, id)
			fx := n.machines[3].Step(n.now, machine.HandIn{ID: 7, Ballots: []votes.CheckedMotionBallot{late}, Own: true})
			var c machine.Casting
			for _, r := range fx.Reply {
				if r.Read == 7 {
					c = r.Cast[0]
				}
			}
			if err := machine.Perform(n.hosts[3], fx); err != nil {
				t.Fatal(err)
			}
			for range 60 {
				n.now = n.now.Add(20 * time.Millisecond)
				n.meet(t, 3, []int{0, 1, 2}, 2)
			}
			s, err = scope.Open(n.hosts[0].Mem, n.genesis.Hash())
			if err != nil {
				t.Fatal(err)
			}
			rec, err := s.Ballots(id)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rec {
				v, err := r.Vote(id)
				if err == nil && v.Ballot().Voter == late.Ballot().Voter {
					if !r.Late || !c.Late || c.Err != nil {
						t.Errorf("recorded late: %v; told late: %v, %v", r.Late, c.Late, c.Err)
					}
					return
				}
			}
			t.Fatalf("not recorded; late=%v err=%v", c.Late, c.Err)
		}
		n.now = n.now.Add(time.Millisecond)
	}
	t.Fatal("none waited")
}
