package scope

import (
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/votes"
)

// chamber is an assembly whose policy names an approver, with a weight and required or not.
func newChamber(t fataler, share uint32, required bool, change ...func(*Policy)) (*assembly, votes.PrivateKey) {
	alice := testKey(t, 60)
	all := append([]func(*Policy){func(p *Policy) {
		p.Approvals[0] = Approval{
			Matter: Changes, Prefix: []byte("/secrets/"), Num: 1, Den: 2, Window: time.Hour,
			Approvers: []Approver{{Name: "alice", Key: alice.Public(), Share: share, Required: required}},
		}
	}}, change...)
	return newAssembly(t, 4, all...), alice
}

// bothWays has a key approve and reject a motion.
func (w *assembly) bothWays(key votes.PrivateKey, id votes.MotionID) {
	w.t.Helper()
	w.cast([]votes.MotionBallot{w.ballot(key, id, votes.Approve)})
	w.cast([]votes.MotionBallot{w.ballot(key, id, votes.Reject)})
}

func (w *assembly) voided() (names []string) {
	w.t.Helper()
	all, err := w.state.Voided()
	if err != nil {
		w.t.Fatalf("reading the void approvers: %v", err)
	}
	for _, v := range all {
		names = append(names, v.Name)
	}
	return names
}

// decide has all anchors carry a decision, and ends the epoch.
func (w *assembly) decide(d Decision) {
	w.t.Helper()
	was := w.author
	w.author = w.keys[0]
	out := w.step(w.mutation(Govern, d)).Outcomes[0]
	if out.Code != Applied && out.Code != Pending {
		w.t.Fatalf("proposing to %s gives %s: %s", d.About(), out.Code, out.Reason)
	}
	w.author = was
	w.cast(w.approve(out.Mutation, 4)[1:])
	w.turn()
}

// TestP51ApproversThatSignBothWaysAreVoid, on motions that open later, until they are readmitted. Their weight stays a
// part of the whole.
func TestP51ApproversThatSignBothWaysAreVoid(t *testing.T) {
	w, alice := newChamber(t, 1_000_000, false) // weighs as much as all four anchors
	first := w.propose(w.put("/secrets/a", "1"))
	before := w.propose(w.put("/secrets/b", "1"))
	w.bothWays(alice, first)
	all, err := w.state.Voided()
	if err != nil || len(all) != 1 || all[0].Name != "alice" || all[0].Motion != first || all[0].Height != w.state.Height() || all[0].Proof.IsZero() {
		t.Fatalf("void are %+v, %v", all, err)
	}
	w.cast([]votes.MotionBallot{w.ballot(alice, before, votes.Approve)})
	if got := w.fate(before); got != "carried" {
		t.Errorf("on a motion that was open her approval makes it %s", got)
	}

	id := w.propose(w.put("/secrets/c", "1"))
	m, _, err := w.state.Motion(id)
	if err != nil || len(m.Voters) != 4 || len(m.Void) != 1 || m.Void[0] != alice.Public().ID() {
		t.Fatalf("the voters are %+v, void %v, %v", m.Voters, m.Void, err)
	}
	w.now = w.now.Add(time.Second)
	b := w.block(nil)
	b = NewBlock(b.Header, nil, Evidence{Ballots: inOrder([]votes.MotionBallot{w.ballot(alice, id, votes.Approve)})})
	if err := w.state.CheckBallots(b, nobody); err == nil {
		t.Error("a block may carry her ballot")
	}
	w.cast(w.approve(id, 3))
	if got := w.fate(id); got != "open" {
		t.Errorf("3/4 of the anchors, which are 3/8 of the whole, make it %s", got)
	}
	w.cast(w.approve(id, 4)[3:])
	if got := w.fate(id); got != "carried" {
		t.Errorf("all anchors, which are half of the whole, make it %s", got)
	}

	back := Decision{Kind: Readmit, Subject: alice.Public().ID()}
	w.decide(back)
	if got := w.voided(); len(got) > 0 {
		t.Fatalf("after her readmission %v are void", got)
	}
	last := w.propose(w.put("/secrets/d", "1"))
	w.cast([]votes.MotionBallot{w.ballot(alice, last, votes.Approve)})
	if got := w.fate(last); got != "carried" {
		t.Errorf("her approval alone makes it %s", got)
	}
	w.author = w.keys[0]
	if out := w.step(w.mutation(Govern, back)).Outcomes[0]; out.Code != Failed || !strings.Contains(out.Reason, "is not void") {
		t.Errorf("once more: %s %s", out.Code, out.Reason)
	}
}

// TestP51LateBallotsMakeVoid: also after a motion is closed, and never those of anchors or of decisions' mutations.
func TestP51LateBallotsMakeVoid(t *testing.T) {
	w, alice := newChamber(t, 1_000_000, false)
	id := w.propose(w.put("/secrets/a", "1"))
	w.cast([]votes.MotionBallot{w.ballot(alice, id, votes.Approve)})
	if w.fate(id) != "carried" || len(w.voided()) != 0 {
		t.Fatalf("it is %s, void are %v", w.fate(id), w.voided())
	}
	w.cast([]votes.MotionBallot{w.ballot(alice, id, votes.Reject)})
	if got := w.voided(); len(got) != 1 {
		t.Fatalf("after a late ballot the other way void are %v", got)
	}
	other := w.propose(w.put("/secrets/b", "1"))
	w.bothWays(w.keys[1], other)
	if got := w.voided(); len(got) != 1 {
		t.Errorf("an anchor that lied is among %v", got)
	}
}

// TestP51NothingGetsEasier: what requires the approval of one that is void opens no motion, and neither do changes for
// which the rest have too little weight; its readmission takes no approval of one that is void.
func TestP51NothingGetsEasier(t *testing.T) {
	bob := testKey(t, 61)
	w, alice := newChamber(t, 1_000_000, true, func(p *Policy) {
		p.Approvals = append(p.Approvals, Approval{
			Matter: Membership, Num: 1, Den: 2, Window: time.Hour,
			Approvers: []Approver{{Name: "alice", Key: testKey(t, 60).Public(), Required: true}, {Name: "bob", Key: bob.Public(), Required: true}},
		})
	})
	w.bothWays(alice, w.propose(w.put("/secrets/a", "1")))
	if out := w.step(w.put("/secrets/a", "2")).Outcomes[0]; out.Code != Failed || Failure(out.Reason) != ErrVoid {
		t.Fatalf("a change that she has to approve: %s %s", out.Code, out.Reason)
	}
	w.author = w.keys[0]
	evict := Decision{Kind: Evict, Subject: aweigh.AnchorID(w.keys[3].Public().ID())}
	if out := w.step(w.mutation(Govern, evict)).Outcomes[0]; out.Code != Failed || Failure(out.Reason) != ErrVoid {
		t.Fatalf("a decision that she has to approve: %s %s", out.Code, out.Reason)
	}
	out := w.step(w.mutation(Govern, Decision{Kind: Readmit, Subject: alice.Public().ID()})).Outcomes[0]
	if out.Code != Applied {
		t.Fatalf("her readmission: %s %s", out.Code, out.Reason)
	}
	w.cast(w.approve(out.Mutation, 4)[1:])
	if got := w.fate(out.Mutation); got != "open" {
		t.Fatalf("without bob it is %s", got)
	}
	w.cast([]votes.MotionBallot{w.ballot(bob, out.Mutation, votes.Approve)})
	if got := w.fate(out.Mutation); got != "carried" {
		t.Fatalf("with bob it is %s", got)
	}
	w.turn()
	w.propose(w.put("/secrets/a", "3"))

	light, ann := newChamber(t, 2_000_000, false)
	light.bothWays(ann, light.propose(light.put("/secrets/a", "1")))
	if out := light.step(light.put("/secrets/b", "1")).Outcomes[0]; out.Code != Failed || Failure(out.Reason) != ErrVoid {
		t.Errorf("half of the whole, of which the anchors have a third: %s %s", out.Code, out.Reason)
	}
}

// TestAnApplicationThatCannotOpenDisplacesNone: the policy asks for an approver that is void, so no motion opens.
func TestAnApplicationThatCannotOpenDisplacesNone(t *testing.T) {
	w, alice := newChamber(t, 1_000_000, false, func(p *Policy) {
		p.EpochBlocks, p.EpochTime = 1000, 24*time.Hour
		p.Approvals = append(p.Approvals, Approval{
			Matter: Membership, Num: 1, Den: 2, Window: time.Hour,
			Approvers: []Approver{{Name: "alice", Key: p.Approvals[0].Approvers[0].Key, Required: true}},
		})
	})
	apply := func(i int) Outcome {
		w.author = testKey(t, byte(100+i))
		return w.step(w.mutation(Govern, Admission(w.g.Hash(), w.author, "x", string(rune('A'+i)), w.keys[0].Public().ID()))).Outcomes[0]
	}
	first := w.propose(w.put("/secrets/a", "1"))
	for i := range outsideAtOnce {
		if out := apply(i); out.Code != Applied {
			t.Fatalf("application %d: %s %s", i, out.Code, out.Reason)
		}
	}
	w.now = w.now.Add(unlistedMotionStay)
	w.bothWays(alice, first) // which carries it, and makes her void
	if out := apply(outsideAtOnce); out.Code != Failed || Failure(out.Reason) != ErrVoid || w.state.Head().Docket.Open != outsideAtOnce {
		t.Errorf("%s %s, and %d applications are open", out.Code, out.Reason, w.state.Head().Docket.Open)
	}
	x, err := w.state.trial(w.now, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, failure, err := x.displacedApplication([]votes.MotionID{first}); failure != ErrTooMuch || err != nil {
		t.Errorf("without units to read an application: %v, %v", failure, err)
	}
}
