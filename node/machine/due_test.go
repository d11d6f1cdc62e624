package machine

import (
	"fmt"
	"testing"
	"time"

	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// TestBallotsGetTheirTurn: more ballots come than are held ready for blocks at a time.
// Blocks record all of them, and the box is not read over and over for it.
func TestBallotsGetTheirTurn(t *testing.T) {
	const voters, room = 40, 8
	a := scope.Approval{Matter: scope.Changes, Prefix: []byte("/s/"), Num: 1, Den: 1, Window: time.Hour}
	for i := range voters {
		a.Approvers = append(a.Approvers, scope.Approver{Name: fmt.Sprint("approver ", i), Key: loneKey(t, byte(2+i)).Public(), Share: 10_000})
	}
	p := scope.OpenPolicy(quorum.BFT)
	p.Approvals = []scope.Approval{a}
	n := newLone(t, p, true)
	b := n.sign(n.write("/s/a", "v"))
	id := b.Mutations()[0].ID
	n.step(Submit{Bundle: b})
	for range 100 {
		n.step()
	}
	keys, err := n.chain.state.Voters(id)
	if err != nil {
		t.Fatal(err)
	}
	var in HandIn
	for i := range voters {
		vote := votes.MotionVote{Network: n.id, Scope: n.id, Motion: id, Choice: votes.Approve}
		ballot, err := votes.SignMotionBallot(loneKey(t, byte(2+i)).Signer(), vote, "")
		if err != nil {
			t.Fatal(err)
		}
		c, err := votes.CheckMotionBallot(ballot, n.id, n.id, keys, nil)
		if err != nil {
			t.Fatal(err)
		}
		in.Ballots = append(in.Ballots, c)
	}
	n.polls.due.room = 0
	n.step(in)
	n.polls.due.room, n.read = room, 0
	n.step(Submit{Bundle: n.sign(n.write("/else", "v"))})
	for range 1000 {
		n.step()
	}
	recorded, err := n.chain.state.Ballots(id)
	if err != nil || len(recorded) != voters {
		t.Fatalf("%d ballots are recorded of %d: %v", len(recorded), voters, err)
	}
	if n.read > 2*voters {
		t.Errorf("%d ballots of the box were read to record %d", n.read, voters)
	}
}
