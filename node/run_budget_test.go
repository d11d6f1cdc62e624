package node

import (
	"bytes"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// TestBallotsFarAheadAreNotVerified: but those of views that the engine looks at
// are, and those that claim to be this anchor's own.
func TestBallotsFarAheadAreNotVerified(t *testing.T) {
	self, other := aweigh.AnchorID{1}, aweigh.AnchorID{2}
	n := &Part{runner: &runner{}}
	n.runner.stand.Store(&stand{self: self, view: 1000})
	ballot := func(a aweigh.AnchorID, v aweigh.View) []byte {
		b := votes.Ballot{Format: votes.Format, Anchor: a, Subject: quorum.Subject{Kind: quorum.Nullify, View: v}, Signature: bytes.Repeat([]byte{1}, 64)}
		return rawFrame(tagBallot, b.Encode())
	}
	for _, c := range []struct {
		what    string
		frame   []byte
		distant bool
	}{
		{"the view of this node", ballot(other, 1000), false},
		{"as far ahead as the engine looks", ballot(other, 1000+quorum.Ahead), false},
		{"a view of before", ballot(other, 1), false},
		{"far ahead", ballot(other, 1<<32), true},
		{"far ahead, its own", ballot(self, 1<<32), false},
		{"another frame", frame(tagAsk, Ask{Round: 1 << 32}), false},
		{"no ballot", []byte{tagBallot, 1, 2, 3}, false},
		{"nothing", nil, false},
	} {
		if got := n.distant(c.frame); got != c.distant {
			t.Errorf("%s: passed over: %v", c.what, got)
		}
	}
}

// TestNeighboursWaitForNobody: strangers have spent all that they share. Who is an anchor
// in another scope is heard all the same, and above its budget it pays in that scope, and
// does not wait for what others spent: what it sends as an anchor waits behind this.
func TestNeighboursWaitForNobody(t *testing.T) {
	s := newStrangers()
	here, there := newAccounts(rollOf(nil), s), newAccounts(rollOf(map[Peer]aweigh.AnchorID{"a": {}}), s)
	s.homes.Store(&map[Peer]*accounts{"a": there})
	offer, ask := append([]byte{tagOffer}, make([]byte, 1000)...), append([]byte{tagAsk}, make([]byte, 1000)...)
	for range 1000 {
		reserve(s.limiter, time.Now(), allStrangers)
	}
	if here.hear("b", offer) || here.passed("b", offer) < time.Minute || here.wait("c", ask) < time.Minute {
		t.Error("strangers are heard beyond what they share")
	}
	if !here.hear("a", offer) || here.wait("a", ask) > 0 {
		t.Error("a neighbour is not heard")
	}
	for range 100_000 { // and what is dropped is no debt
		here.wait("a", ask)
	}
	if here.wait("a", ask) == 0 {
		t.Error("a neighbour is heard beyond its budget")
	}
	time.Sleep(100 * time.Millisecond)
	if here.wait("a", ask) > 0 {
		t.Error("a neighbour pays for what was dropped")
	}
	s.neighbours.ReserveN(time.Now(), allNeighbours)
	s.neighbours.ReserveN(time.Now(), allNeighbours)
	if here.hear("a", offer) || here.wait("a", ask) == 0 {
		t.Error("neighbours are heard beyond what they share")
	}
	if d := here.passed("a", offer); d > 0 {
		t.Errorf("a neighbour waits %s for what others spent", d)
	}
	for range 100_000 {
		here.passed("a", offer)
	}
	if d := here.passed("a", offer); d < time.Second {
		t.Errorf("a neighbour that sends 100 MB in vain waits %s", d)
	}
	if d := there.wait("a", append([]byte{tagBundle}, offer...)); d > 0 {
		t.Errorf("its clients' writes wait %s", d)
	}
}

// TestReadsAreNoFlood: an anchor that answers each of thousands of linearizable reads a second is heard at once, and one
// that answers what nobody asked is not.
func TestReadsAreNoFlood(t *testing.T) {
	const reads = 10_000
	accounts := newAccounts(rollOf(map[Peer]aweigh.AnchorID{"a": {1}, "b": {2}}), newStrangers())
	n := &Part{budgets: accounts}
	answer, ask := append([]byte{tagAnswer}, make([]byte, 700)...), append([]byte{tagAsk}, make([]byte, 10)...)
	heard := func(p Peer) time.Duration { return accounts.charge(p, answer, n.workOf(p, answer)) }
	for range reads {
		n.expect("a", ask)
		if d := max(heard("a"), accounts.wait("a", ask)); d > 0 { // both ways
			t.Fatalf("an anchor that was asked waits %v", d)
		}
	}
	var most time.Duration
	for range reads {
		most = max(most, heard("b"))
	}
	if most < time.Second {
		t.Errorf("an anchor that nobody asks waits %v at most", most)
	}
}
