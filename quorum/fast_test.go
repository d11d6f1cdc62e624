package quorum

import (
	"testing"

	"github.com/aweigh/aweigh"
)

// fastRound is a view of mode fast in which anchors of some weights signed nullify ballots.
type fastRound struct {
	weights Weights
	bounds  FastBounds
	r       *round
}

func newFastRound(t *testing.T, leader int, weights ...uint64) *fastRound {
	t.Helper()
	shares := make([]Share, len(weights))
	for i, x := range weights {
		shares[i] = Share{Anchor: fastAnchor(i), Weight: x}
	}
	w, err := NewWeights(shares...)
	if err != nil {
		t.Fatal(err)
	}
	x := &fastRound{weights: w, bounds: DefaultRules(Fast).FastBounds(w)}
	x.r = &round{view: 1, leader: fastAnchor(leader), seat: leader}
	return x
}

func fastAnchor(i int) aweigh.AnchorID { return aweigh.AnchorID{byte(i + 1)} }

// nullify adds the ballot of an anchor that names a block.
func (x *fastRound) nullify(seat int, block aweigh.Hash) {
	s := Subject{Kind: Nullify, View: 1, Block: block}
	x.r.add(&Vote{s, Signature{Anchor: fastAnchor(seat)}}, seat, &x.weights, DefaultRules(Fast).Nullify)
}

// lead adds the leader's vote for a block.
func (x *fastRound) lead(block aweigh.Hash) {
	s := Subject{Kind: Notarize, View: 1, Block: block}
	x.r.evidence(&Vote{s, Signature{Anchor: x.r.leader}})
}

// TestMoreBallotsNeverProveLess: an anchor that holds more ballots than the leader accepts what the leader builds on. A
// liar shows the leader a few ballots, and all of them to others.
func TestMoreBallotsNeverProveLess(t *testing.T) {
	x := newFastRound(t, 0, 190, 370, 730, 370, 190, 730, 730, 550, 550)
	b := aweigh.Hash{1}
	x.lead(b)
	for _, seat := range []int{0, 6, 7} {
		x.nullify(seat, b)
	}
	for _, seat := range []int{1, 5, 8} {
		x.nullify(seat, NoBlock)
	}
	if !x.r.stands(b, x.bounds, &x.weights) {
		t.Fatal("the leader may not build on the block")
	}
	x.nullify(2, NoBlock)
	if !x.r.stands(b, x.bounds, &x.weights) {
		t.Error("one ballot more, and the block may not be built on")
	}
}

// TestEachNamedBlockHasItsEvidence: a leader that votes for a block of its own for each anchor does not keep the view
// from ending.
func TestEachNamedBlockHasItsEvidence(t *testing.T) {
	x := newFastRound(t, 0, 1, 1, 1, 1, 1, 1, 1)
	for i := range 20 {
		x.lead(aweigh.Hash{byte(100 + i)})
	}
	for i := 1; i < 6; i++ {
		x.nullify(i, aweigh.Hash{byte(i)})
	}
	for i := 1; i < 6; i++ {
		x.lead(aweigh.Hash{byte(i)})
	}
	for i := range 20 {
		x.lead(aweigh.Hash{byte(200 + i)})
	}
	if !x.r.passed(x.bounds, &x.weights) {
		t.Error("the ballots of all anchors that do not lie do not end the view")
	}
	if n := len(x.r.evidenced); n > 5+spare {
		t.Errorf("votes of the leader for %d blocks are kept", n)
	}
}

// TestNoVoteFollowsItsView: ballots let an anchor leave a view, so that it nullifies it, and what comes in the same
// step makes a later view final. The anchor signs nothing in a view below, of which no record is kept (P8).
func TestNoVoteFollowsItsView(t *testing.T) {
	shares := make([]Share, 6)
	for i := range shares {
		shares[i] = Share{Anchor: fastAnchor(i), Weight: 1}
	}
	w, err := NewWeights(shares...)
	if err != nil {
		t.Fatal(err)
	}
	root, named, final := aweigh.Hash{1}, aweigh.Hash{2}, aweigh.Hash{3}
	config := Config{Weights: w, Rules: DefaultRules(Fast), Root: root}
	leader, _ := w.Seat(Leader(w, config.Seed, 1))
	self := (leader + 1) % len(shares)
	config.Self = fastAnchor(self)
	leaves := []Input{Proposal{Vote: Vote{Subject{Kind: Notarize, View: 1, Block: named}, Signature{Anchor: fastAnchor(leader)}}, Parent: root}}
	for i := range shares {
		if i != self {
			leaves = append(leaves, Vote{Subject{Kind: Nullify, View: 1, Block: named}, Signature{Anchor: fastAnchor(i)}})
		}
	}
	c := Certificate{Subject: Subject{Kind: Finalize, View: 3, Block: final}}
	for i := range shares {
		c.Signatures = append(c.Signatures, Signature{Anchor: fastAnchor(i)})
	}
	if out := NewEngine(config).Step(1, leaves...); len(out.Sign) != 1 || out.Sign[0].Kind != Nullify {
		t.Fatalf("it signs %v, not that it leaves view 1", out.Sign)
	}
	out := NewEngine(config).Step(1, append(leaves, c)...)
	if len(out.Final) == 0 || out.Final[0].Subject != c.Subject {
		t.Fatalf("final is %v", out.Final)
	}
	for _, s := range out.Sign {
		if s.View < 3 {
			t.Errorf("it signs %v, and view 3 is final", s)
		}
	}
}
