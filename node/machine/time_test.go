package machine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// write makes anchor i put a key, and reports whether all anchors in who have it within some seconds.
func (n *drill) write(who []int, i int, key string) bool {
	n.step(i, Submit{Bundle: n.bundle(i, key)})
	for range 400 {
		n.all(who, 1)
		n.now = n.now.Add(20 * time.Millisecond)
		if n.holds(who, key) {
			return true
		}
	}
	return false
}

func (n *drill) holds(who []int, key string) bool {
	for _, i := range who {
		s := n.m[i].chain.state
		got, err := s.Range([]byte(key), nil, scope.Range{})
		if err != nil {
			n.t.Fatal(err)
		}
		if len(got.Kvs) == 0 {
			return false
		}
	}
	return true
}

// TestP13NoBlockOfATimeToCome: a block ahead of the others' clocks by more than the drift bound gets no vote but its
// leader's, and one within the bound becomes final.
func TestP13NoBlockOfATimeToCome(t *testing.T) {
	drift := scope.DefaultLimits().Drift
	for _, mode := range []quorum.Mode{quorum.BFT, quorum.Crash} {
		for by, fine := range map[time.Duration]bool{drift - 100*time.Millisecond: true, drift + 100*time.Millisecond: false, 23 * time.Hour: false} {
			n := newDrill(t, "p13", 4, scope.OpenPolicy(mode))
			var L int
			for i := range n.m {
				if n.m[0].engine.Leader(1) == n.m[i].self {
					L = i
				}
			}
			n.off = map[int]time.Duration{L: by}
			who := []int{0, 1, 2, 3}
			n.meet(who)
			n.all(who, 4)
			if !n.write(who, (L+1)%4, "/k") {
				t.Fatalf("%s, %v: nothing is decided", mode, by)
			}
			m := n.m[(L+1)%4]
			b, err := m.history().Block(1)
			if err != nil {
				t.Fatal(err)
			}
			if led := b.Header.View == 1; led != fine {
				t.Errorf("%s: a leader whose clock is ahead by %v gave block 1: %v, in view %d", mode, by, led, b.Header.View)
			}
			if ahead := m.chain.head.Time.Sub(n.now); ahead > drift {
				t.Errorf("%s: the scope's time is %v ahead", mode, ahead)
			}
		}
	}
}

// TestTimeThatRanAheadHoldsNothingUp: the clocks of all anchors were wrong for a while, and a block took their time.
// Once they are right again, what is asked for becomes final at once, and the scope's time goes on by the smallest
// steps.
func TestTimeThatRanAheadHoldsNothingUp(t *testing.T) {
	const ahead = 23 * time.Hour
	for _, mode := range []quorum.Mode{quorum.BFT, quorum.Crash} {
		for _, k := range []int{1, 3, 4} {
			t.Run(fmt.Sprint(mode, k), func(t *testing.T) {
				n := newDrill(t, "ran", k, scope.OpenPolicy(mode))
				var who []int
				n.off = make(map[int]time.Duration)
				for i := range k {
					who = append(who, i)
					n.off[i] = ahead
				}
				n.meet(who)
				n.all(who, 4)
				if !n.write(who, 0, "/wrong") {
					t.Fatal("nothing is decided by the wrong clocks")
				}
				n.off = nil
				for i := range k {
					n.start(i)
				}
				n.meet(who)
				n.all(who, 4)
				if by := n.m[0].chain.head.Time.Sub(n.now); by < ahead-time.Minute {
					t.Fatalf("the scope's time is %v ahead: the test did not reach what it is meant to", by)
				}
				began, first := n.now, n.m[0].chain.head
				for w := range 20 {
					if !n.write(who, w%k, fmt.Sprint("/right", w)) {
						t.Fatalf("write %d is not final after %v: %s", w, n.now.Sub(began), n.say(0))
					}
				}
				head := n.m[0].chain.head
				if steps := aweigh.Instant(head.Height - first.Height); head.Time != first.Time+steps {
					t.Errorf("%d blocks moved the scope's time by %v", steps, head.Time.Sub(first.Time))
				}
				if by := n.now.Sub(began); by > 20*time.Second {
					t.Errorf("20 writes took %v", by)
				}
				n.now = head.Time.Add(time.Second) // the clocks caught up
				if !n.write(who, 0, "/then") {
					t.Fatal("nothing is decided once the clocks have caught up")
				}
				if head := n.m[0].chain.head; head.Time < n.now.Add(-10*time.Second) || head.Time > n.now {
					t.Errorf("the scope's time is %v behind the clocks", n.now.Sub(head.Time))
				}
			})
		}
	}
}

// TestDividedVotesOnATimeAheadHoldNothingUp: where one round decides, two of four whose clocks are hours ahead vote for
// a block, and the other two give its view up: it can neither become final by itself nor be passed over. The others
// build on it.
func TestDividedVotesOnATimeAheadHoldNothingUp(t *testing.T) {
	n, L, a, c, d := newOneRound(t)
	const ahead = 6 * time.Hour
	who := []int{L, a, c, d}
	n.off = map[int]time.Duration{L: ahead, a: ahead}
	n.step(L, Submit{Bundle: n.bundle(L, "/k")})
	for range 40 { // the proposal reaches a alone in time
		n.now = n.now.Add(10 * time.Millisecond)
		n.step(L)
		n.carry(L, a, everything)
		n.step(a)
		n.carry(a, L, everything)
	}
	if !n.m[L].engine.Stands(1) || !n.m[a].engine.Stands(1) {
		t.Fatal("the two did not vote for the block of view 1: the test did not reach what it is meant to")
	}
	for _, i := range []int{c, d} {
		n.step(i, Submit{Bundle: n.bundle(i, "/other")})
		for range 3 {
			n.now = n.now.Add(3 * time.Second)
			n.step(i)
		}
	}
	n.off = nil
	for _, i := range []int{L, a} {
		n.start(i)
	}
	n.meet(who)
	began := n.now
	n.write(who, c, "/dated before") // by a time that the scope leaves behind
	if !n.write(who, c, "/healed") {
		for _, i := range who {
			t.Log(n.say(i))
		}
		t.Fatalf("nothing is decided in the %v since the clocks are right", n.now.Sub(began))
	}
	if by := n.m[c].chain.head.Time.Sub(n.now); by < ahead-time.Hour {
		t.Errorf("the scope's time is %v ahead: the votes were not divided", by)
	}
}

// TestWhoVotedForATimeAheadBuildsOnIt: one of three is away, and the votes for a block of a clock that was hours ahead
// are one for it and one against. Its leader, whose clock is right by now, builds on it; the other waits for that.
func TestWhoVotedForATimeAheadBuildsOnIt(t *testing.T) {
	n := newDrill(t, "ahead3", 3, scope.OpenPolicy(quorum.Crash))
	first, _, _ := leaders(n)
	other := (first + 1) % 3
	who := []int{first, other}
	n.meet(who)
	n.all(who, 4)
	n.off = map[int]time.Duration{first: 6 * time.Hour}
	n.write(who, first, "/k")
	if n.m[other].engine.Stands(1) || !n.m[first].engine.Stands(1) || n.m[other].chain.state.Height() > 0 {
		t.Fatal("the votes of view 1 are not divided: the test did not reach what it is meant to")
	}
	n.off = nil
	n.start(first)
	n.meet(who)
	began := n.now
	done := false
	for w := 0; w < 24 && !done; w++ { // earlier views have lengthened timeouts: it takes 9 to 90 s, by leader
		done = n.write(who, other, fmt.Sprint("/healed", w))
	}
	if !done {
		for _, i := range who {
			t.Log(n.say(i))
		}
		t.Fatalf("nothing is decided in the %v since the clock is right", n.now.Sub(began))
	}
}

// TestExpiredMutationsTellTheTime: what was dated by a clock that the scope's time has left behind is refused with the
// scope's time, by which it can be dated anew.
func TestExpiredMutationsTellTheTime(t *testing.T) {
	n := newDrill(t, "tell", 1, scope.OpenPolicy(quorum.BFT))
	n.off = map[int]time.Duration{0: 23 * time.Hour}
	if !n.write([]int{0}, 0, "/a") {
		t.Fatal("nothing is decided")
	}
	n.off = nil
	n.start(0)
	head := n.m[0].chain.head.Time
	n.reply[0] = nil
	for _, until := range []aweigh.Instant{n.now.Add(time.Minute), head - 1} {
		m := scope.Mutation{Scope: n.m[0].id, Class: scope.Write, Content: n.bundle(0, "/b").Mutations()[0].Content, Nonce: []byte("12345678"), ValidUntil: until}
		b, err := scope.Sign(n.auth[0], n.m[0].chain.policy.Limits, m)
		if err != nil {
			t.Fatal(err)
		}
		n.reply[0] = nil
		n.step(0, Submit{Bundle: b})
		var expired *ExpiredError
		if len(n.reply[0]) != 1 || !errors.As(n.reply[0][0].Refused, &expired) || expired.Time != head || !errors.Is(expired, ErrNotTaken) {
			t.Errorf("valid until %v: %+v", until.Time(), n.reply[0])
		}
	}
	if !n.write([]int{0}, 0, "/b") {
		t.Error("what is dated by the scope's time is not decided")
	}
}
