package node

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/admission"
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

// TestHashesCostWhatTheyTake: an answer that is a hash costs its asker the bytes that were read for it.
func TestHashesCostWhatTheyTake(t *testing.T) {
	const size = 500_000
	n := startCluster(t, 1, quorum.BFT).nodes[0]
	if _, err := n.Txn(t.Context(), putTxn("/k", strings.Repeat("v", size)), Once{}); err != nil {
		t.Fatal(err)
	}
	look := canon.Encode(scope.Txn{Success: []scope.Op{{Kind: scope.OpRange, Key: []byte("/k")}}})
	for _, brief := range []bool{false, true} {
		given := n.root.budgets.Given(machine.Peer(fmt.Sprint("stranger", brief)))
		given.SetLimit(1) // nothing to speak of comes back meanwhile
		before := given.Tokens()
		raw, err := n.root.serveForeign(t.Context(), machine.Peer(fmt.Sprint("stranger", brief)), referral.Question{Kind: referral.AskLook, Brief: brief, Body: look})
		if err != nil || (len(raw) < size) != brief {
			t.Fatalf("in brief: %t: %d bytes, %v", brief, len(raw), err)
		}
		if cost := before - given.Tokens(); cost < size/2 {
			t.Errorf("in brief: %t: it cost %.0f bytes", brief, cost)
		}
	}
}

// TestAnchorsElsewherePayForTheirBundles: what anchors of other scopes may spend together is spent, so a bundle of one
// of them is refused after a wait.
func TestAnchorsElsewherePayForTheirBundles(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1, quorum.BFT)
	n := c.nodes[0]
	const neighbour = machine.Peer("neighbour")
	n.nonMembers.SetHomes(map[machine.Peer]*admission.Accounts{neighbour: n.root.budgets})
	bundle := func(key string) []byte {
		m := n.root.mutation(scope.Write, canon.Encode(putTxn(key, "x")), n.root.filled(Once{}))
		b, err := scope.Sign(n.cfg.Identity, n.root.Limits(), m)
		if err != nil {
			t.Fatal(err)
		}
		return b.Raw()
	}
	submit := func(key string) error {
		_, err := n.root.submitForeign(t.Context(), neighbour, bundle(key), new(referral.Answer))
		return err
	}
	if err := submit("/k/1"); err != nil {
		t.Fatal(err)
	}
	shared := n.root.budgets.Shared(neighbour)
	for range 60 {
		shared.ReserveN(time.Now(), shared.Burst())
	}
	before := n.root.LastHead().Revision
	if err := submit("/k/2"); !errors.Is(err, machine.ErrBusy) {
		t.Errorf("a bundle of an anchor elsewhere that cannot pay: %v", err)
	}
	if now := n.root.LastHead().Revision; now != before {
		t.Errorf("it moved the scope from revision %d to %d", before, now)
	}
}
