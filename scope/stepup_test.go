package scope

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/mr-tron/base58"

	"github.com/aweigh/aweigh/votes"
)

// stepUpTest is a world whose policy asks for a second person below /secrets/: bob (key 60), carol (key 61) or the
// author alice (key 99). Anyone may write.
type stepUpTest struct {
	*assembly
	bob, carol, alice votes.PrivateKey
}

func newStepUpTest(t fataler, change ...func(*Policy)) stepUpTest {
	t.Helper()
	s := stepUpTest{bob: testKey(t, 60), carol: testKey(t, 61), alice: testKey(t, 99)}
	s.assembly = newAssembly(t, 4, append([]func(*Policy){func(p *Policy) {
		p.Approvals = []Approval{stepUp("/secrets/", s.bob, s.carol, s.alice)}
	}}, change...)...)
	s.author = s.alice
	return s
}

// stepUp asks for one of some keys within five minutes.
func stepUp(prefix string, keys ...votes.PrivateKey) Approval {
	a := Approval{Matter: Changes, Prefix: []byte(prefix), Den: 1, Window: 5 * time.Minute, StepUp: true}
	for i, k := range keys {
		a.Approvers = append(a.Approvers, Approver{Name: fmt.Sprintf("second%d", i), Key: k.Public()})
	}
	return a
}

func (s stepUpTest) says(c votes.Choice, id votes.MotionID, keys ...votes.PrivateKey) {
	s.t.Helper()
	var all []votes.MotionBallot
	for _, k := range keys {
		all = append(all, s.ballot(k, id, c))
	}
	s.cast(all)
}

// TestP47SecondPersonsDecide: one of the keys that the policy names carries the motion; anchors have no vote, and a
// motion is rejected once each of the keys has rejected it.
func TestP47SecondPersonsDecide(t *testing.T) {
	s := newStepUpTest(t)
	id := s.propose(s.put("/secrets/a", "1"))
	m, _, err := s.state.Motion(id)
	if err != nil || len(m.Voters) != 2 || m.Deadline.Sub(m.Opened) != 5*time.Minute {
		t.Fatalf("%+v, %v", m, err)
	}
	s.now = s.now.Add(time.Second)
	b := NewBlock(s.block(nil).Header, nil, Evidence{Ballots: inOrder(s.approve(id, 4))})
	if err := s.state.CheckBallots(b, nobody); err == nil {
		t.Error("a block with ballots of anchors is valid")
	}
	s.execute(b) // which a quorum may have accepted all the same
	if got := s.fate(id); got != "open" || s.value("/secrets/a") != "" {
		t.Fatalf("with the ballots of all anchors the motion is %s", got)
	}
	s.says(votes.Reject, id, s.carol)
	if got := s.fate(id); got != "open" {
		t.Fatalf("one of two rejected, and it is %s", got)
	}
	s.says(votes.Approve, id, s.bob)
	if got := s.fate(id); got != "carried" || s.value("/secrets/a") != "1" {
		t.Errorf("bob approved, and it is %s", got)
	}

	id = s.propose(s.ops(del("/secrets/a", "")))
	s.says(votes.Reject, id, s.bob, s.carol)
	if got := s.fate(id); got != "rejected" || s.value("/secrets/a") != "1" {
		t.Errorf("both rejected, and it is %s", got)
	}

	id = s.propose(s.put("/secrets/a", "2"))
	s.now = s.now.Add(5 * time.Minute)
	s.says(votes.Approve, id, s.bob)
	if got := s.fate(id); got != "expired" || s.value("/secrets/a") != "1" {
		t.Errorf("approved after the window, it is %s", got)
	}
	s.one(s.put("/free", "1"))
}

// TestP47AuthorsAreNoSecondPerson: no key that asked for a change approves it: the author's, those of the chain of
// grants by which it acts, and the other key of an anchor among these.
func TestP47AuthorsAreNoSecondPerson(t *testing.T) {
	s := newStepUpTest(t)
	w := grantTest{s.world}
	chain := [][]byte{w.grant(99, 60), w.grant(60, 50)}
	for _, c := range []struct {
		name   string
		author byte
		grants [][]byte
		no     []votes.PrivateKey
		yes    votes.PrivateKey
	}{
		{"its author", 60, nil, []votes.PrivateKey{s.bob}, s.alice},
		{"who granted it", 50, [][]byte{w.grant(99, 50)}, []votes.PrivateKey{s.alice}, s.bob},
		{"the holder of the grant", 60, [][]byte{w.grant(99, 60)}, []votes.PrivateKey{s.alice, s.bob}, s.carol},
		{"a holder on the way", 50, chain, []votes.PrivateKey{s.alice, s.bob}, s.carol},
	} {
		key := "/secrets/" + fmt.Sprint(c.author, len(c.grants))
		out := w.does(c.author, w.put(key, "1"), c.grants...)
		if out.Code != Pending {
			t.Fatalf("%s: %s: %s", c.name, out.Code, out.Reason)
		}
		m, _, err := s.state.Motion(out.Mutation)
		if err != nil || len(m.Voters) != 3-len(c.no) {
			t.Errorf("%s: %d voters, %v", c.name, len(m.Voters), err)
		}
		var own []votes.MotionBallot
		for _, k := range c.no {
			own = append(own, s.ballot(k, out.Mutation, votes.Approve))
		}
		s.now = s.now.Add(time.Second)
		b := NewBlock(s.block(nil).Header, nil, Evidence{Ballots: inOrder(own)})
		s.execute(b)
		if got := s.fate(out.Mutation); got != "open" || s.value(key) != "" {
			t.Errorf("%s: approved by %d of those who ask for it, the motion is %s", c.name, len(c.no), got)
		}
		s.says(votes.Approve, out.Mutation, c.yes)
		if got := s.fate(out.Mutation); got != "carried" {
			t.Errorf("%s: approved by another, the motion is %s", c.name, got)
		}
	}

	alone := newStepUpTest(t, func(p *Policy) { p.Approvals[0].Approvers = p.Approvals[0].Approvers[2:] })
	if out := alone.step(alone.put("/secrets/a", "1")).Outcomes[0]; out.Code != Failed || Failure(out.Reason) != ErrNoSecond {
		t.Errorf("the only second person is the author: %s: %s", out.Code, out.Reason)
	}
}

// TestP47AnchorsAreOneParty: an anchor does not approve what its node asks for, and the node not what the anchor does.
func TestP47AnchorsAreOneParty(t *testing.T) {
	g, keys := testGenesis(t, 4)
	node := testKey(t, 70)
	g.Anchors[0].Peer = base58.Encode(append([]byte("\x00\x24\x08\x01\x12\x20"), node.Public().Bytes...))
	g.Policy.Approvals = []Approval{stepUp("/secrets/", node, keys[0], keys[1])}
	w := &assembly{newWorldOf(t, g), keys}
	for _, author := range []votes.PrivateKey{node, keys[0]} {
		w.author = author
		id := w.propose(w.put("/secrets/a", "1"))
		m, _, err := w.state.Motion(id)
		if err != nil || len(m.Voters) != 1 || m.Voters[0].Key.ID() != keys[1].Public().ID() {
			t.Errorf("%s: %+v, %v", author.Public(), m.Voters, err)
		}
	}
}

// TestP47RevokedAuthorsChangeNothing: what the second person approves is void if the policy lists the author no more,
// or asks for another second person by then.
func TestP47RevokedAuthorsChangeNothing(t *testing.T) {
	for name, c := range map[string]struct {
		change func(stepUpTest, *Policy)
		want   string
	}{
		"nothing":        {func(stepUpTest, *Policy) {}, "carried"},
		"the author":     {func(_ stepUpTest, p *Policy) { p.Authors = DefaultAuthors() }, "void: " + reason(ErrNoAuthor)},
		"the second key": {func(s stepUpTest, p *Policy) { p.Approvals = []Approval{stepUp("/secrets/", s.carol)} }, "void: the policy asks for another approval by now"},
	} {
		s := newStepUpTest(t, func(p *Policy) { p.Authors = []Author{alice(t, nil), {Name: "anchors", Who: Anchors}} })
		id := s.propose(s.put("/secrets/a", "1"))
		p := s.g.Policy
		p.EpochBlocks++
		c.change(s, &p)
		s.author = s.keys[0]
		out := s.step(s.mutation(Govern, Decision{Kind: SetPolicy, Policy: &p})).Outcomes[0]
		s.cast(s.approve(out.Mutation, 4)[1:])
		s.turn()
		s.cast([]votes.MotionBallot{s.ballot(s.bob, id, votes.Approve)})
		if got := s.fate(id); !strings.HasPrefix(got, c.want) || (s.value("/secrets/a") == "1") != (c.want == "carried") {
			t.Errorf("%s changed: %s, want %s", name, got, c.want)
		}
	}
}

// TestP47NothingChangesWithoutASecondPerson: whatever authors and voters do, a key under a step-up changes only by a
// motion on which a named key other than the author's has approved.
func TestP47NothingChangesWithoutASecondPerson(t *testing.T) {
	carried := 0
	for seed := range uint64(12) {
		draw := rand.New(rand.NewPCG(seed, 47))
		s := newStepUpTest(t)
		people := append([]votes.PrivateKey{s.alice, s.bob, s.carol, testKey(t, 50)}, s.keys...)
		seconds := people[:3]
		approved := make(map[votes.MotionID]bool) // by a second person, alone
		var open []votes.MotionID
		by := make(map[votes.MotionID]votes.PrivateKey)
		said := make(map[string]bool)
		for range 30 {
			key := "/secrets/" + string(rune('a'+draw.IntN(3)))
			before := s.state.Head().Revision
			switch s.author = people[draw.IntN(len(people))]; draw.IntN(3) {
			case 0:
				m := []Mutation{s.put(key, fmt.Sprint(draw.IntN(9))), s.ops(del("/secrets/", "/secrets0")), s.ops(put("/free", "1"), del(key, ""))}[draw.IntN(3)]
				if out := s.step(m).Outcomes[0]; out.Code == Pending {
					open, by[out.Mutation] = append(open, out.Mutation), s.author
				} else if Failure(out.Reason) != ErrVoid { // once all seconds have signed both ways
					t.Fatalf("seed %d: %s: %s", seed, out.Code, out.Reason)
				}
				if s.state.Head().Revision != before {
					t.Fatalf("seed %d: a write without a ballot made revision %d", seed, s.state.Head().Revision)
				}
				continue
			case 1:
				s.now = s.now.Add(time.Duration(draw.IntN(100)) * time.Second)
			}
			if len(open) == 0 {
				continue
			}
			id, voter := open[draw.IntN(len(open))], people[draw.IntN(len(people))]
			choice := votes.Choice(1 + draw.IntN(2))
			if mark := fmt.Sprint(id, voter.Public(), choice); said[mark] {
				continue
			} else {
				said[mark] = true
			}
			ballot := s.ballot(voter, id, choice)
			s.now = s.now.Add(time.Second)
			s.execute(NewBlock(s.block(nil).Header, nil, Evidence{Ballots: inOrder([]votes.MotionBallot{ballot})}))
			second := false
			for _, k := range seconds {
				second = second || bytes.Equal(k.Public().Bytes, voter.Public().Bytes)
			}
			second = second && voter.Public().ID() != by[id].Public().ID() && choice == votes.Approve
			approved[id] = approved[id] || second
			if s.state.Head().Revision != before {
				carried++
				if !second || s.fate(id) != "carried" {
					t.Fatalf("seed %d: the ballot %s of %s changed something; the motion of %s is %s", seed, choice, voter.Public(), by[id].Public(), s.fate(id))
				}
			}
			if got := s.fate(id); got == "carried" && !approved[id] {
				t.Fatalf("seed %d: %s without a second person", seed, got)
			}
		}
		s.checkDigest()
	}
	if carried < 12 {
		t.Errorf("%d motions were carried: the test is about nothing", carried)
	}
}

// TestP47StepUpsAreChecked: a policy states a step-up in one form.
func TestP47StepUpsAreChecked(t *testing.T) {
	for name, change := range map[string]func(*Approval){
		"no second person": func(a *Approval) { a.Approvers = nil },
		"a share":          func(a *Approval) { a.Num = 1 },
		"another zero":     func(a *Approval) { a.Den = 2 },
		"anchors":          func(a *Approval) { a.Anchors = 1 },
		"a weight":         func(a *Approval) { a.Approvers[0].Share = 1 },
		"required":         func(a *Approval) { a.Approvers[0].Required = true },
		"a long window":    func(a *Approval) { a.Window = time.Hour + 1 },
		"of decisions":     func(a *Approval) { a.Matter, a.Prefix = Policies, nil },
		"nothing wrong":    func(*Approval) {},
	} {
		p := OpenPolicy(1)
		p.Approvals = []Approval{stepUp("/secrets/", testKey(t, 60))}
		change(&p.Approvals[0])
		if err := p.Check(); (err == nil) != (name == "nothing wrong") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestP47SecondPersonsAreProven: a proof of a change under a step-up has the ballot of the second person, and a
// verifier computes again who that may be.
func TestP47SecondPersonsAreProven(t *testing.T) {
	bob := testKey(t, 60)
	c := newChronicle(t, func(p *Policy) { p.Approvals = []Approval{stepUp("/secrets/", testKey(t, 99), bob)} })
	c.author = testKey(t, 99)
	m := c.put("/secrets/a", "1")
	id := ID(m.Encode())
	c.add(nil, m)
	c.add(nil)
	p := c.proveMotion(t, id)
	if r, err := p.Verify(c.g.Hash()); err != nil || len(r.Motion.Voters) != 1 || r.Motion.Voters[0].Key.ID() != bob.Public().ID() {
		t.Fatalf("%+v, %v", r.Motion.Voters, err)
	}
	p.Motion.Voters = (&Approval{StepUp: true, Approvers: p.Motion.Approval.Approvers}).voters(Roster{}, nil, nil)
	if _, err := p.Verify(c.g.Hash()); err == nil {
		t.Error("a proof in which the author may vote verifies")
	}
	c.add([]votes.MotionBallot{c.ballot(bob, id, votes.Approve)})
	c.add(nil)
	r, err := c.proveCarried(t, id, "/secrets/a").Verify(c.g.Hash())
	if err != nil || r.Approved == nil || len(r.Approved.Ballots) != 1 || r.Approved.Ballots[0].Voter != bob.Public().ID() {
		t.Fatalf("%+v, %v", r.Approved, err)
	}
}
