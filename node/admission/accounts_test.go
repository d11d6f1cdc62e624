package admission

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// TestFewNonMembersAreRemembered: what a node keeps of each peer is bounded, however many come and go.
func TestFewNonMembersAreRemembered(t *testing.T) {
	a := NewAccounts(anchors{}, NewNonMembers())
	for i := range 3 * maxAccounts {
		p := machine.Peer(fmt.Sprint(i))
		x := a.of(p)
		x.work.AllowN(time.Now(), x.work.Burst()) // it owes something
	}
	if n := len(a.peers); n == 0 || n > maxAccounts {
		t.Errorf("%d accounts, at most %d", n, maxAccounts)
	}
}

// TestAnchorsElsewhereDoNotWaitForNonMembers: non-members have spent all that they share. The frames of an
// anchor of another scope still pass. Above its budget it pays in that scope, and does not wait for
// what others spent: the frames that it sends as an anchor wait behind these.
func TestAnchorsElsewhereDoNotWaitForNonMembers(t *testing.T) {
	s := NewNonMembers()
	here, there := NewAccounts(anchors{}, s), NewAccounts(anchors{"a": true}, s)
	s.SetHomes(map[machine.Peer]*Accounts{"a": there})
	offer, ask := append([]byte{machine.TagOffer}, make([]byte, 1000)...), append([]byte{machine.TagAsk}, make([]byte, 1000)...)
	for range 1000 {
		reserve(s.limiter, time.Now(), allNonMembers)
	}
	if here.AllowOffer("b", offer) || here.WaitIgnored("b", offer) < time.Minute || here.Wait("c", ask) < time.Minute {
		t.Error("non-members are heard beyond what they share")
	}
	if !here.AllowOffer("a", offer) || here.Wait("a", ask) > 0 {
		t.Error("a neighbour is not heard")
	}
	for range 100_000 { // and what is dropped is no debt
		here.Wait("a", ask)
	}
	if here.Wait("a", ask) == 0 {
		t.Error("a neighbour is heard beyond its budget")
	}
	time.Sleep(100 * time.Millisecond) // tokens come back with time
	if here.Wait("a", ask) > 0 {
		t.Error("a neighbour pays for what was dropped")
	}
	s.neighbours.ReserveN(time.Now(), allNeighbours)
	s.neighbours.ReserveN(time.Now(), allNeighbours)
	if here.AllowOffer("a", offer) || here.Wait("a", ask) == 0 {
		t.Error("neighbours are heard beyond what they share")
	}
	if d := here.WaitIgnored("a", offer); d > 0 {
		t.Errorf("a neighbour waits %s for what others spent", d)
	}
	for range 100_000 {
		here.WaitIgnored("a", offer)
	}
	if d := here.WaitIgnored("a", offer); d < time.Second {
		t.Errorf("a neighbour that sends 100 MB in vain waits %s", d)
	}
	if d := there.Wait("a", append([]byte{machine.TagBundle}, offer...)); d > 0 {
		t.Errorf("its clients' writes wait %s", d)
	}
}

// TestReadsAreNoFlood: an anchor that answers each of thousands of linearizable reads a second is heard at once, and
// an unasked answer is not.
func TestReadsAreNoFlood(t *testing.T) {
	const reads = 10_000
	accounts := NewAccounts(anchors{"a": true, "b": true}, NewNonMembers())
	answer, ask := append([]byte{machine.TagAnswer}, make([]byte, 700)...), append([]byte{machine.TagAsk}, make([]byte, 10)...)
	heard := func(p machine.Peer) time.Duration { return accounts.Wait(p, answer) }
	for range reads {
		accounts.Sent("a", ask)
		if d := max(heard("a"), accounts.Wait("a", ask)); d > 0 { // both ways
			t.Fatalf("an anchor that was asked waits %v", d)
		}
	}
	var most time.Duration
	for range reads {
		most = max(most, heard("b"))
	}
	if most < time.Second {
		t.Errorf("an anchor without requests waits %v at most", most)
	}
}

// TestNonMembersShareOneBudget: many identities get no more than the budget of all
// non-members, and anchors do not wait for them.
func TestNonMembersShareOneBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		four := anchors{"a": true, "b": true, "c": true, "d": true}
		a := NewAccounts(four, NewNonMembers())
		bundle := append([]byte{machine.TagBundle}, make([]byte, 300)...)
		let := 0
		for k := range 10_000 {
			if a.Wait(machine.Peer(fmt.Sprint("stranger", k%500)), bundle) == 0 {
				let++
			}
		}
		if most := allNonMembers/(len(four)*signatureCost) + 50; let > most {
			t.Errorf("%d bundles of non-members at once, at most %d should be", let, most)
		}
		if d := a.Wait("a", bundle); d > 0 {
			t.Errorf("an anchor waits %v for non-members", d)
		}
		for range 20_000 {
			a.Wait("b", bundle)
		}
		if a.Wait("b", bundle) == 0 || a.Wait("c", bundle) > 0 {
			t.Error("a flooding anchor does not wait, or another waits for it")
		}
	})
}

// TestAnswersAreOwed: a peer that asks for blocks or ballots waits until the
// answers before are within its rate.
func TestAnswersAreOwed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for tag, question := range map[byte][]byte{
			machine.TagBlocks: machine.Tagged(machine.TagCatchUp, machine.CatchUp{From: 1}),
			machine.TagMeet:   machine.Tagged(machine.TagMeet, machine.ReconcileMsg{Part: machine.GoesOn}),
		} {
			a := NewAccounts(anchors{}, NewNonMembers())
			if d := a.Wait("p", question); d > 0 {
				t.Fatalf("%s: the first question waits %v", machine.FrameKind([]byte{tag}), d)
			}
			for range 10 {
				a.Sent("p", append([]byte{tag}, make([]byte, 6<<20)...))
			}
			if d := a.Wait("p", question); d < time.Second {
				t.Errorf("%s: after 60 MiB the next question waits %v", machine.FrameKind([]byte{tag}), d)
			}
			if d := a.Wait("q", question); d > 0 {
				t.Errorf("%s: another peer waits %v", machine.FrameKind([]byte{tag}), d)
			}
		}
	})
}

// TestEveryFrameHasACost: a frame costs at least its decoding, and one that holds
// more signatures costs more.
func TestEveryFrameHasACost(t *testing.T) {
	a := NewAccounts(anchors{"a": true}, NewNonMembers())
	for tag := range 256 {
		if machine.FrameKind([]byte{byte(tag)}) == "" {
			continue
		}
		for _, anchor := range []bool{true, false} {
			short, long := a.cost([]byte{byte(tag)}, anchor), a.cost(append([]byte{byte(tag)}, make([]byte, 1<<20)...), anchor)
			if short < frameCost || long < short {
				t.Errorf("%s, anchor %v: %d µs for a byte, %d for a MiB", machine.FrameKind([]byte{byte(tag)}), anchor, short, long)
			}
		}
	}
	if offer := a.cost(append([]byte{machine.TagOffer}, make([]byte, 1<<20)...), true); offer < 100*signatureCost {
		t.Errorf("an anchor's offer of a MiB costs %d µs", offer)
	}
}

// TestVotesHaveABudgetOfTheirOwn: an anchor that floods with ballots, or with
// offers that are passed over, waits long before it has taken what the writes of
// its clients may take.
func TestVotesHaveABudgetOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewAccounts(anchors{"a": true, "b": true}, NewNonMembers())
		ballot, offer := append([]byte{machine.TagBallot}, make([]byte, 300)...), append([]byte{machine.TagOffer}, make([]byte, 140_000)...)
		let := 0
		for let < 10_000 && a.Wait("a", ballot) == 0 {
			let++
		}
		if most := anchorVotes/signatureCost + 50; let > most || let < most/2 {
			t.Errorf("%d ballots at once, %d may be", let, most)
		}
		if d := a.Wait("a", append([]byte{machine.TagBundle}, make([]byte, 300)...)); d > 0 {
			t.Errorf("what its clients write waits %v for its ballots", d)
		}
		for let = 0; let < 10_000 && a.WaitIgnored("b", offer) == 0; let++ {
		}
		if let > 2*anchorVotes*bytesUnread/len(offer) {
			t.Errorf("%d offers of %d bytes are passed over at once", let, len(offer))
		}
	})
}

// TestAnswersAreExpectedOnce: blocks are taken from a peer that was asked for them, once for each question, and from no
// other.
func TestAnswersAreExpectedOnce(t *testing.T) {
	a := NewAccounts(anchors{"a": true, "b": true}, NewNonMembers())
	question, blocks := []byte{machine.TagCatchUp}, []byte{machine.TagBlocks}
	for range 2 {
		a.Sent("a", question)
	}
	a.Sent("b", []byte{machine.TagWant}) // which is not answered with final blocks
	for i, want := range []bool{false, false, true, true} {
		if got := a.Unasked("a", blocks); got != want {
			t.Errorf("answer %d to two questions: unasked %v", i+1, got)
		}
	}
	if !a.Unasked("b", blocks) || a.Unasked("b", []byte{machine.TagBlock}) {
		t.Error("a peer that was not asked for final blocks gives them, or may not give another one")
	}
}

// TestNonMembersSlowNoReadersDown: what non-members spend is not missing to peers that the policy names or lists.
func TestNonMembersSlowNoReadersDown(t *testing.T) {
	s := NewNonMembers()
	s.SetReaders(func(p machine.Peer) bool { return p == "reader" })
	a, f := NewAccounts(anchors{}, s), []byte{machine.TagCatchUp}
	slow := time.Duration(0)
	for range 1000 {
		for _, p := range []machine.Peer{"x", "y", "z"} {
			slow = max(slow, a.Wait(p, f))
			a.WaitIgnored(p, f)
		}
	}
	if d := a.Wait("reader", f); slow == 0 || d > 0 {
		t.Errorf("non-members wait %v, and a reader %v", slow, d)
	}
	if a.Shared("reader") == a.Shared("x") {
		t.Error("a reader pays where non-members pay")
	}
}

// TestProofsInBundlesArePaidFor: a bundle may have a proof with hundreds of signatures. A peer pays for them before
// they are verified, whether they hold or not. Those of an author that may bring none are not verified.
func TestProofsInBundlesArePaidFor(t *testing.T) {
	key, err := votes.KeyFromSeed(votes.Ed25519, make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	const signatures = 200
	var end scope.Handover
	end.Final.Certificate.Signatures = make([]quorum.Signature, signatures)
	m := scope.Mutation{
		Scope: aweigh.ScopeID{1}, Class: scope.Bring, Author: key.Public().ID(), Nonce: make([]byte, 8), ValidUntil: 1,
		Content: canon.Encode(scope.Bringing{Prefix: []byte("/b/"), Genesis: []byte{1}, Handovers: []scope.Handover{end}}),
	}
	f := machine.Tagged(machine.TagBundle, scope.Bundle{Mutations: [][]byte{m.Encode()}, Author: key.Public(), Signature: make([]byte, 64)})
	synctest.Test(t, func(t *testing.T) {
		s := NewNonMembers()
		a := NewAccounts(anchors{"a": true}, s)
		verified := 0
		refused := error(nil)
		c := &machine.Checker{
			Limits: scope.MostLimits(),
			Verify: func(votes.PublicKey, votes.Context, []byte, []byte) error { verified++; return nil },
			Proves: func(machine.Peer, votes.PublicKey, int) error { return refused },
		}
		for p, l := range map[machine.Peer]*rate.Limiter{"a": a.of("a").work, "x": s.shared("x")} {
			refused = scope.ErrDenied
			before := l.Tokens()
			if _, err := a.Check(c, p, f, false); !errors.Is(err, scope.ErrDenied) || verified != 1 || l.Tokens() != before {
				t.Errorf("of a stranger, by %q: %v; %d signatures verified, and %v µs paid", p, err, verified, before-l.Tokens())
			}
			refused, verified = nil, 0
			if _, err := a.Check(c, p, f, false); err == nil || errors.Is(err, scope.ErrDenied) {
				t.Errorf("a proof that does not hold: %v", err)
			}
			if paid := before - l.Tokens(); paid < signatures*signatureCost {
				t.Errorf("%q paid %v µs for %d signatures", p, paid, signatures)
			}
			verified = 0
		}
		before := a.of("a").work.Tokens() // which passes a bundle on, and others may have made it
		for full := false; !full; {
			_, err := a.Check(c, "a", f, true)
			full = errors.Is(err, errProofs)
		}
		if a.of("a").work.Tokens() != before || s.shared("x").Tokens() < 0 {
			t.Errorf("gossip leaves a debt: %v, %v", before-a.of("a").work.Tokens(), s.shared("x").Tokens())
		}
		s.SetHomes(map[machine.Peer]*Accounts{"near": NewAccounts(anchors{"near": true}, s)})
		for full := false; !full; {
			_, err := a.Check(c, "near", f, false)
			full = errors.Is(err, errProofs)
		}
		if a.of("near").work.Tokens() < 0 || s.neighbours.Tokens() < 0 {
			t.Error("a neighbour is in debt")
		}
	})
}
