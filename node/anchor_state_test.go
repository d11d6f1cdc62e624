package node

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// TestOnlyAnchorsThatSignCount: neither those that are connected and do not sign, nor those
// without weight, are part of the fault budget. Those that listen count while they are needed.
func TestOnlyAnchorsThatSignCount(t *testing.T) {
	n, _ := stillNode(t, "n0", "n1", "n2", "n3", "n4")
	s := n.root.runner.stand.Load().Status()
	reach := func(states ...AnchorState) Reach {
		says := make(map[aweigh.AnchorID]AnchorReport)
		for i, a := range s.Roster.Anchors {
			says[a.Key.ID()] = AnchorReport{State: states[i]}
		}
		r := reachOf(&s, says, false)
		if r.Failures < 0 {
			r = reachOf(&s, says, true)
		}
		return r
	}
	const yes, listens = AnchorSigns, AnchorListens
	for _, c := range []struct {
		states   []AnchorState
		anchors  int
		failures int
	}{
		{[]AnchorState{yes, yes, yes, yes, yes}, 5, 1},
		{[]AnchorState{yes, yes, yes, yes, AnchorSilenced}, 4, 0},
		{[]AnchorState{yes, yes, yes, yes, AnchorUnknown}, 4, 0},
		{[]AnchorState{yes, yes, yes, yes, AnchorMute}, 4, 0},
		{[]AnchorState{yes, yes, yes, yes, listens}, 4, 0},
		{[]AnchorState{yes, yes, yes, AnchorSilenced, AnchorKeyless}, 3, -1},
		{[]AnchorState{yes, yes, yes, listens, AnchorAway}, 4, 0},
		{[]AnchorState{listens, listens, listens, listens, listens}, 5, 1}, // all were restarted
		{[]AnchorState{listens, listens, AnchorAway, AnchorAway, AnchorAway}, 2, -1},
	} {
		if r := reach(c.states...); len(r.Anchors) != c.anchors || r.Failures != c.failures || len(r.Anchors)+len(r.Missing) != 5 {
			t.Errorf("%v: %d anchors count, and %d may fail; want %d, %d", c.states, len(r.Anchors), r.Failures, c.anchors, c.failures)
		}
	}
	whole, part := s.Roster, []quorum.Share(nil)
	for i, a := range whole.Anchors {
		if i > 0 {
			part = append(part, quorum.Share{Anchor: a.Key.ID(), Weight: 100})
		}
	}
	var err error
	if s.Roster.Weights, err = quorum.NewWeights(part...); err != nil {
		t.Fatal(err)
	}
	if r := reach(yes, yes, yes, yes, yes); r.Failures != 1 || r.Weight != 400 {
		t.Errorf("with one of five without weight, %d may fail of weight %d; want 1 of 400", r.Failures, r.Weight)
	}
	if r := reach(AnchorAway, yes, yes, yes, yes); r.Failures != 1 {
		t.Errorf("an anchor without weight is away, and %d may fail; want 1", r.Failures)
	}
}

// TestAnchorsSpeakOfThemselvesAlone: what is kept of an answer is about the one that gave it;
// what no anchor can say of itself is not taken; silence is told from news of long ago.
func TestAnchorsSpeakOfThemselvesAlone(t *testing.T) {
	s, now, in := newStates(), time.Now(), aweigh.ScopeID{1}
	a, b := peer.ID("a"), peer.ID("b")
	scopes := []aweigh.ScopeID{in}
	state := func(id peer.ID, at time.Time) AnchorState { return s.reportFrom(id, in, at).State }
	if got := state(a, now); got != AnchorUnknown {
		t.Errorf("before it was asked: %v", got)
	}
	ask := func(id peer.ID, at time.Time, all ...AnchorReport) {
		t.Helper()
		if len(s.begin(id, scopes, 0, at)) != 1 {
			t.Fatalf("%s is not asked", id)
		}
		s.end(id, scopes, all, at)
	}
	ask(a, now, AnchorReport{State: AnchorSilenced, Until: 7})
	ask(b, now, AnchorReport{State: AnchorSigns})
	if x, y := s.reportFrom(a, in, now), s.reportFrom(b, in, now); x != (AnchorReport{State: AnchorSilenced, Until: 7}) || y.State != AnchorSigns {
		t.Errorf("after both spoke: %v and %v", x, y)
	}
	for _, lie := range []AnchorState{AnchorMute, AnchorAway, 200} {
		if ask(a, now, AnchorReport{State: lie}); state(a, now) != AnchorUnknown {
			t.Errorf("%v is taken as the anchor's own word", lie)
		}
	}
	if len(s.begin(b, scopes, time.Second, now)) != 0 {
		t.Error("an anchor that answered just now is asked again")
	}
	late := now.Add(stateMute*stateEvery + 1)
	ask(b, now.Add(time.Second)) // and no answer
	if got := state(b, now.Add(time.Second)); got != AnchorSigns {
		t.Errorf("one answer was missed, and it is %v", got)
	}
	if got := state(b, late); got != AnchorMute {
		t.Errorf("long after the last answer: %v", got)
	}
	ask(b, late, AnchorReport{State: AnchorSigns})
	if s.linked(b, true); state(b, late) != AnchorUnknown {
		t.Error("after it connected anew, what it said before counts")
	}
}

// some are the IDs of scopes that there are not.
func some(count int) []aweigh.ScopeID {
	all := make([]aweigh.ScopeID, count)
	for i := range all {
		all[i] = aweigh.ScopeID{byte(i), byte(i >> 8), 1}
	}
	return all
}

// TestQuestionsAboutStatesAreBounded: in scopes that one question names, and in answers.
func TestQuestionsAboutStatesAreBounded(t *testing.T) {
	n, _ := stillNode(t, "n0")
	launched(t, n)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	raw, err := n.request(ctx, "x", append([]byte(askState), canon.Encode(stateAsk{Scopes: []aweigh.ScopeID{n.root.id, {9}}})...))
	if err != nil {
		t.Fatal(err)
	}
	var a stateAnswer
	if err := canon.Decode(raw, &a); err != nil || len(a.All) != 2 || a.All[0].State != AnchorSigns || a.All[1].State != AnchorUnseated {
		t.Errorf("%v, %v", a, err)
	}
	for name, req := range map[string][]byte{
		"too many": canon.Encode(stateAsk{Scopes: some(maxStates + 1)}),
		"twice":    canon.Encode(stateAsk{Scopes: []aweigh.ScopeID{n.root.id, {9}, n.root.id}}),
		"garbage":  []byte("x"),
		"nothing":  nil,
	} {
		if _, err := n.request(ctx, "x", append([]byte(askState), req...)); err == nil {
			t.Errorf("%s: answered", name)
		}
	}
	l := n.root.budgets.Shared("x")
	for range 4 {
		l.ReserveN(time.Now(), l.Burst())
	}
	if _, err := n.request(ctx, "x", append([]byte(askState), canon.Encode(stateAsk{})...)); !errors.Is(err, machine.ErrBusy) {
		t.Errorf("a peer that has spent what non-members have together hears %v", err)
	}
	s, many := newStates(), some(3*maxStates/2)
	seen := make(map[aweigh.ScopeID]bool)
	for range 2 {
		turn := s.begin("x", many, 0, time.Now())
		if len(turn) != maxStates {
			t.Fatalf("%d scopes are asked about at once", len(turn))
		}
		for _, id := range turn {
			seen[id] = true
		}
		s.end("x", turn, nil, time.Now())
	}
	if len(seen) != len(many) {
		t.Errorf("%d of %d scopes had a turn", len(seen), len(many))
	}
}

// TestSilencedAnchorSaysSoWhileIdle (P9): the others learn it without any traffic of the scope.
func TestSilencedAnchorSaysSoWhileIdle(t *testing.T) {
	testshort.Skip(t)
	c := startCluster(t, 5, quorum.BFT)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if _, err := c.nodes[0].Txn(ctx, putTxn("/k", "v"), Once{}); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "all sign", func() bool {
		for _, n := range c.nodes {
			if n.AskAnchors(ctx); n.root.Reach().Failures != 1 {
				return false
			}
		}
		return true
	})
	silent := c.nodes[4]
	epoch := silent.root.epochs.checker().Keyring.Domain().Epoch
	b := votes.Ballot{
		Format: 1, Domain: silent.root.epochs.checker().Keyring.Domain(), Anchor: silent.root.Status().Self,
		Subject: quorum.Subject{Kind: quorum.Nullify, View: silent.root.Status().View + 3},
	}
	b.Signature = silent.cfg.Anchor.Sign(votes.ContextBallot, b.SigningBytes())
	silent.frame(c.nodes[0].host.ID(), machine.RawFrame(machine.TagBallot, b.Encode()))
	testwait.Until(t, "all know", func() bool {
		for _, n := range c.nodes {
			n.AskAnchors(ctx)
			r := n.root.Reach()
			if r.Failures != 0 || r.Says[b.Anchor] != (AnchorReport{State: AnchorSilenced, Until: epoch + 1}) {
				return false
			}
		}
		return true
	})
}
