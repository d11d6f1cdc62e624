package node

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestForeignQuestionsArePaidForFirst: a peer that has no more to spend is refused before a scope's keys are looked at,
// and what a question did not take is given back.
func TestForeignQuestionsArePaidForFirst(t *testing.T) {
	c := startCluster(t, 1, quorum.BFT)
	n := c.nodes[0]
	for i := range 20 {
		if _, err := n.Txn(t.Context(), scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: fmt.Appendf(nil, "/k/%d", i), Value: make([]byte, 1000)}}}, Once{}); err != nil {
			t.Fatal(err)
		}
	}
	const peer = machine.Peer("stranger")
	work, given := n.root.budgets.Shared(peer), n.root.budgets.Given(peer)
	look := referral.Question{Kind: referral.AskLook, Body: canon.Encode(scope.Txn{Success: []scope.Op{{Kind: scope.OpRange, Key: []byte("/k/"), End: []byte("/k0")}}})}
	events := referral.Question{Kind: referral.AskEvents, Body: canon.Encode(referral.Watch{Key: []byte("/k/"), End: []byte("/k0"), From: 1})}
	for _, ask := range []referral.Question{look, events} {
		tokens, bytes := work.Tokens(), given.Tokens()
		if _, err := n.root.serveForeign(t.Context(), peer, ask); err != nil {
			t.Fatal(err)
		}
		if cost := tokens - work.Tokens(); cost > foreignCost+referral.MaxChanges/4+100 {
			t.Errorf("question %d cost %.0f µs", ask.Kind, cost)
		}
		if cost := bytes - given.Tokens(); cost > 64<<10 {
			t.Errorf("question %d cost %.0f bytes", ask.Kind, cost)
		}
	}
	given.ReserveN(time.Now(), given.Burst()) // and more, so that the next waits for too long
	for range 3 {
		given.ReserveN(time.Now(), given.Burst())
	}
	before := work.Tokens()
	for _, ask := range []referral.Question{look, events} {
		if _, err := n.root.serveForeign(t.Context(), peer, ask); !errors.Is(err, machine.ErrBusy) {
			t.Errorf("question %d of a peer that cannot pay: %v", ask.Kind, err)
		}
	}
	if spent := before - work.Tokens(); spent > 0 {
		t.Errorf("%.0f µs were spent on it", spent)
	}
}
