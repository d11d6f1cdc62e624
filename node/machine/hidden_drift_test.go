package machine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/wysiwys"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// coup is a network in which an anchor, the liar, wants to date blocks far ahead, by a policy that the others approve.
type coup struct {
	*drill
	liar, honest int
	who          []int
	serial       uint64
}

// asks submits a mutation of anchor i's node, signed with a key, that is valid for a while by its honest clock.
func (n *coup) asks(i int, key votes.PrivateKey, class scope.Class, content any, valid time.Duration) aweigh.Hash {
	n.t.Helper()
	n.serial++
	b, err := scope.Sign(key, n.m[i].chain.policy.Limits, scope.Mutation{
		Scope: n.m[0].id, Class: class, Content: canon.Encode(content), Nonce: fmt.Appendf(nil, "%016d", n.serial),
		ValidUntil: n.now.Add(valid),
	})
	if err != nil {
		n.t.Fatal(err)
	}
	n.step(i, Submit{Bundle: b})
	return scope.ID(b.Mutations()[0].Encode())
}

// until lets the network go on for a while at most, until ok holds, and holds the scope's time to the bound.
func (n *coup) until(what string, most time.Duration, ok func() bool) {
	n.t.Helper()
	for end := n.now.Add(most); !ok(); n.now = n.now.Add(20 * time.Millisecond) {
		n.all(n.who, 1)
		for _, i := range n.who {
			if ahead := n.m[i].chain.head.Time.Sub(n.now); ahead > time.Second {
				n.t.Fatalf("%s: the scope's time is %v ahead", what, ahead)
			}
		}
		if n.now > end {
			n.t.Fatalf("%s: not within %v", what, most)
		}
	}
}

// drift is the bound in force at an honest anchor.
func (n *coup) drift() time.Duration { return n.m[n.honest].chain.policy.Limits.Drift }

// carries has the liar propose a policy, and two others approve it.
func (n *coup) carries(by int, d scope.Decision) {
	n.t.Helper()
	for k := range 3 {
		i := (by + k) % 4
		n.asks(i, n.keys[i], scope.Govern, d, time.Minute)
	}
	epoch := n.m[n.honest].Epoch().Number
	n.until("a policy is in force", time.Minute, func() bool { return n.m[n.honest].Epoch().Number > epoch })
}

// approval is the ballot of an anchor.
func (n *coup) approval(i int, id votes.MotionID) votes.CheckedMotionBallot {
	n.t.Helper()
	v := votes.MotionVote{Network: n.m[0].id, Scope: n.m[0].id, Motion: id, Choice: votes.Approve}
	b, err := votes.SignMotionBallot(n.keys[i].Signer(), v, "")
	keys, err2 := votes.NewKeySet(n.keys[i].Public())
	if err := errors.Join(err, err2); err != nil {
		n.t.Fatal(err)
	}
	c, err := votes.CheckMotionBallot(b, n.m[0].id, n.m[0].id, keys, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	return c
}

// fate is what became of a motion; open is true while it has no end.
func (n *coup) fate(id votes.MotionID) (open bool, fate scope.Fate) {
	n.t.Helper()
	mo, end, err := n.m[n.honest].chain.state.Motion(id)
	if err != nil {
		n.t.Fatal(err)
	}
	if end != nil {
		return false, end.Fate
	}
	return mo != nil, 0
}

// TestHiddenDriftGainsALiarNothing: an anchor proposes a policy that says something of the TTL, and much of the drift
// bound besides. No tool signs a day of drift, and no node takes it; what a deceived quorum can carry at most is a
// second. With that the liar dates blocks as far ahead as it can, and a day further: honest writes of some seconds do
// not expire, a motion stays open for its window, and the others take the policy back.
func TestHiddenDriftGainsALiarNothing(t *testing.T) {
	testshort.Skip(t)
	const window = 6 * time.Second
	inForce := scope.OpenPolicy(quorum.BFT)
	inForce.Approvals = []scope.Approval{{Matter: scope.Changes, Prefix: []byte("/a/"), Num: 1, Den: 2, Window: window}}
	n := &coup{drill: newDrill(t, "coup", 4, inForce), liar: 3, who: []int{0, 1, 2, 3}}
	n.meet(n.who)
	n.all(n.who, 4)

	p := inForce
	p.Limits.TTL, p.Limits.Drift = 6*time.Second, 24*time.Hour
	day := scope.Decision{Kind: scope.SetPolicy, Policy: &p}
	if _, _, err := wysiwys.Decision(canon.Encode(day), &inForce); !errors.Is(err, wysiwys.ErrHidden) || !strings.Contains(err.Error(), "drift") {
		t.Errorf("a tool shows, to be signed, a day of drift: %v", err)
	}
	for _, i := range n.who[:3] {
		m := scope.Mutation{
			Scope: n.m[0].id, Author: n.keys[n.liar].Public().ID(), Class: scope.Govern, Nonce: []byte("12345678"),
			Content: canon.Encode(day), ValidUntil: n.now.Add(time.Minute),
		}
		id := scope.ID(m.Encode())
		b := scope.Bundle{Author: n.keys[n.liar].Public(), Mutations: [][]byte{m.Encode()}}
		sum := aweigh.Sum([]byte("aweigh/bundle/2"), m.Author[:], make([]byte, 8), id[:]) // the bundle's identity, without a reserve
		b.Signature = n.keys[n.liar].Sign(votes.ContextBundle, sum[:])
		_, err := n.m[i].Checker().Check(n.peers[n.liar], RawFrame(TagBundle, canon.Encode(b)))
		if err == nil || !strings.Contains(err.Error(), "drift") {
			t.Errorf("anchor %d takes a proposal of a day of drift: %v", i, err)
		}
	}

	worst := inForce
	worst.Limits.TTL, worst.Limits.Drift = 6*time.Second, time.Second
	d := scope.Decision{Kind: scope.SetPolicy, Policy: &worst}
	_, shown, err := wysiwys.Decision(canon.Encode(d), &inForce)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"limits.ttl: 5s -> 6s", "limits.drift: 500ms -> 1s"} {
		if text := shown.Text(); !strings.Contains(text, want) {
			t.Errorf("%q is not shown to an approver:\n%s", want, text)
		}
	}
	n.carries(n.liar, d) // they did not look
	if n.drift() != time.Second {
		t.Fatalf("a drift of %v is in force", n.drift())
	}

	for _, ahead := range []time.Duration{time.Second, 23 * time.Hour} {
		n.off = map[int]time.Duration{n.liar: ahead}
		motion := votes.MotionID(n.asks(n.honest, n.auth[n.honest], scope.Write, putTxn("/a/k", fmt.Sprint(ahead)), 5*time.Second))
		n.until("a motion opens", 10*time.Second, func() bool { open, _ := n.fate(motion); return open })
		opened, first, led := n.now, n.m[n.honest].chain.head.Height, 0
		for w := 0; n.now.Sub(opened) < window-2*time.Second; w++ {
			key := fmt.Sprint("/", ahead, w)
			n.asks(n.honest, n.auth[n.honest], scope.Write, putTxn(key, "v"), 5*time.Second)
			n.until("a write of "+key, 5*time.Second, func() bool { return n.holds(n.who[:3], key) })
		}
		for h := first + 1; h <= n.m[n.honest].chain.head.Height; h++ {
			b, err := n.m[n.honest].history().Block(h)
			if err != nil {
				t.Fatal(err)
			}
			if b.Header.Proposer == n.m[n.liar].self {
				led++
			}
		}
		if near := ahead == time.Second; (led > 0) != near {
			t.Errorf("the liar, %v ahead, gave %d of %d blocks", ahead, led, n.m[n.honest].chain.head.Height-first)
		}
		if open, fate := n.fate(motion); !open {
			t.Fatalf("%v after it opened the motion is %v, of a window of %v", n.now.Sub(opened), fate, window)
		}
		for _, i := range n.who[:3] {
			n.step(i, HandIn{Ballots: []votes.CheckedMotionBallot{n.approval(i, motion)}, Own: true})
		}
		n.until("the motion is carried", 5*time.Second, func() bool { _, fate := n.fate(motion); return fate == scope.Carried })
	}

	n.carries(n.honest, scope.Decision{Kind: scope.SetPolicy, Policy: &inForce})
	if n.drift() != inForce.Limits.Drift {
		t.Errorf("a drift of %v is in force, which the others took back", n.drift())
	}
}
