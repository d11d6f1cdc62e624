package machine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestWhatABlockStandsOnIsKept: where one round decides, the block below the one that
// became final may have been voted for by its leader alone. The leader is gone for
// good, the others lose power, and the write that it acknowledged is there.
func TestWhatABlockStandsOnIsKept(t *testing.T) {
	n, L, a, c, d := newOneRound(t)
	b := n.bundle(L, "/acked")
	n.step(L, Submit{Bundle: b})
	n.now = n.now.Add(60 * time.Millisecond)
	n.step(L)
	// The bundle reaches all, the proposal is late.
	for _, j := range []int{a, c, d} {
		n.carry(L, j, "b")
	}
	n.now = n.now.Add(3 * time.Second)
	for _, j := range []int{a, c, d} {
		n.step(j)
		n.now = n.now.Add(3 * time.Second)
		n.step(j)
	}
	// all three have given view 1 up
	n.carry(c, a, "v")
	n.carry(L, a, "p") // divided at a: L finalize, a and c nullify
	n.now = n.now.Add(60 * time.Millisecond)
	n.step(a)
	n.now = n.now.Add(60 * time.Millisecond)
	n.step(a)
	t.Log(n.say(a))
	for _, j := range []int{c, d} {
		n.carry(L, j, "p")
		n.carry(a, j, "vbp")
		n.step(j)
		t.Log(n.say(j))
	}
	// their votes reach L alone, which finalizes and answers its client
	n.carry(a, L, "vp")
	n.carry(c, L, "v")
	n.carry(d, L, "v")
	n.step(L)
	for i := range n.m {
		t.Log(n.say(i), n.reply[i])
	}
	acked := false
	for _, r := range n.reply[L] {
		acked = acked || r.Outcome != nil
	}
	if !acked {
		t.Fatal("not acknowledged: the test did not reach what it is meant to")
	}
	// L's machine is gone for good; the others lose power, with all that was synced on disk.
	left := []int{a, c, d}
	for _, i := range left {
		n.start(i)
	}
	n.meet(left)
	for range 200 {
		n.all(left, 2)
		n.now = n.now.Add(500 * time.Millisecond)
	}
	for _, i := range left {
		t.Log(n.say(i))
	}
	for _, i := range left {
		if n.m[i].chain.state.Height() < 1 {
			t.Errorf("anchor %d: the acknowledged write is gone", i)
		}
	}
}

// TestViewsAreGivenUpAfterARestart: one of four anchors is gone, with the content of a block that another voted for; a
// third one restarts. All remaining anchors must give the view up.
func TestViewsAreGivenUpAfterARestart(t *testing.T) {
	for _, restart := range []bool{false, true} {
		n, L, a, c, d := newOneRound(t)
		n.step(L, Submit{Bundle: n.bundle(L, "/k")})
		n.now = n.now.Add(60 * time.Millisecond)
		n.step(L)
		if restart { // c has power off
			n.start(c)
		}
		// The proposal reaches a, the bundle is lost, and L never comes back.
		n.carry(L, a, "p")
		for _, j := range []int{a, c, d} {
			n.drop(j)
		}
		n.drop(L)
		other := n.bundle(d, "/other")
		for _, j := range []int{a, d} {
			n.step(j, Submit{Bundle: other})
			for range 3 {
				n.now = n.now.Add(3 * time.Second)
				n.step(j)
			}
		}
		n.carry(d, a, "v")
		n.step(a)
		t.Log(n.say(a))
		for _, i := range []int{a, c, d} {
			n.step(i, Parted{Peer: n.peers[L]})
		}
		n.all([]int{a, d}, 3) // c is away still
		n.meet([]int{a, c, d})
		for range 300 {
			n.all([]int{a, c, d}, 2)
			n.now = n.now.Add(300 * time.Millisecond)
		}
		for _, i := range []int{a, c, d} {
			t.Log(n.say(i))
		}
		if h := n.m[a].chain.state.Height(); h == 0 {
			t.Errorf("restart %v: three of four anchors decide nothing", restart)
		}
	}
}

// TestOneClockAheadSetsNoTime: where one round decides, a leader's vote for its own block
// stands, and its clock may be an hour ahead. The others do not build on its block.
func TestOneClockAheadSetsNoTime(t *testing.T) {
	for _, k := range []int{4, 3, 5}[:testshort.Cases(1, 3, 3)] {
		for _, down := range []int{0, 1} {
			n := newDrill(t, fmt.Sprint("clock", k), k, scope.OpenPolicy(quorum.Crash))
			var L int
			for i := range n.m {
				if n.m[0].engine.Leader(1) == n.m[i].self {
					L = i
				}
			}
			n.off = map[int]time.Duration{L: time.Hour}
			var who []int
			for i := range n.m {
				if down == 1 && i == (L+1)%k {
					continue
				}
				who = append(who, i)
			}
			n.meet(who)
			n.all(who, 4)
			last := aweigh.Height(0)
			for w := range 40 {
				i := who[w%len(who)]
				if i == L {
					continue
				}
				n.step(i, Submit{Bundle: n.bundle(i, fmt.Sprint("/k", w))})
				for range 60 {
					n.all(who, 1)
					n.now = n.now.Add(20 * time.Millisecond)
				}
			}
			var worst time.Duration
			for _, i := range who {
				m := n.m[i]
				last = max(last, m.chain.state.Height())
				if i != L {
					worst = max(worst, m.chain.head.Time.Sub(m.now))
				}
			}
			for _, i := range who {
				t.Log(n.say(i), "chain time ahead of the honest:", n.m[i].chain.head.Time.Sub(n.now), "revision", n.m[i].chain.state.Head().Revision)
			}
			t.Logf("%d anchors, %d down: height %d, chain time ahead by %v after %v", k, down, last, worst, n.now.Sub(aweigh.InstantOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))))
			if worst > time.Minute {
				t.Errorf("%d anchors, %d down: one wrong clock set the scope's time %v ahead", k, down, worst)
			}
		}
	}
}

// TestManyOpenBlocksBecomeFinal: with one anchor away and a clock hours ahead, votes are
// divided view after view. Once all is well again, blocks become final again.
func TestManyOpenBlocksBecomeFinal(t *testing.T) {
	t.Parallel()
	testshort.SkipUnlessLong(t)
	k := 4
	n := newDrill(t, "clock4b", k, scope.OpenPolicy(quorum.Crash))
	var L int
	for i := range n.m {
		if n.m[0].engine.Leader(1) == n.m[i].self {
			L = i
		}
	}
	n.off = map[int]time.Duration{L: 6 * time.Hour}
	down := (L + 1) % k
	var who []int
	for i := range n.m {
		if i != down {
			who = append(who, i)
		}
	}
	n.meet(who)
	n.all(who, 4)
	// A quarter more than the bound, and then some views in which nothing is added.
	for w, beyond := 0, 0; w < 600 && beyond < 40; w++ {
		if len(n.m[who[0]].chain.candidates) > MaxOpenBlocks+MaxOpenBlocks/4 {
			beyond++
		}
		for _, i := range who {
			if i != L && w%15 == 0 {
				n.step(i, Submit{Bundle: n.bundle(i, fmt.Sprint("/k", w, i))})
			}
		}
		n.all(who, 1)
		if w%4 != 0 { // most offers get lost: their votes take long to verify
			for _, i := range who {
				n.out[i] = slices.DeleteFunc(n.out[i], func(p Packet) bool { return p.Frame[0] == TagOffer })
			}
		}
		n.all(who, 1)
		n.now = n.now.Add(12 * time.Second)
	}
	for _, i := range who {
		t.Log(n.say(i), "candidates", len(n.m[i].chain.candidates))
	}
	t.Log("after", n.now.Sub(aweigh.InstantOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))))
	if len(n.m[who[0]].chain.candidates) <= MaxOpenBlocks {
		t.Fatal("too few blocks are open: the test did not reach what it is meant to")
	}
	if o := n.m[who[0]].engine.Holdings(); len(o.Votes) > len(who)*quorum.Ahead {
		t.Errorf("offers %d votes: those of all open views", len(o.Votes))
	}
	// The clock is set right, and the time comes that it told; one is away still.
	n.off = nil
	n.now = n.now.Add(7 * time.Hour)
	all := who
	n.meet(all)
	n.all(all, 10)
	n.step(who[0], Submit{Bundle: n.bundle(who[0], "/healed")})
	for range 200 {
		n.all(all, 3)
		n.now = n.now.Add(300 * time.Millisecond)
	}
	for _, i := range all {
		t.Log(n.say(i), "candidates", len(n.m[i].chain.candidates))
	}
	if n.m[who[0]].chain.state.Height() == 0 {
		t.Error("the clock is right again, and nothing is decided in a minute")
	}
}

// TestAClockSetBackDelaysNoBlock: after a clock was wrong, the time of a final block may be in the future; the next
// leader continues from that time.
func TestAClockSetBackDelaysNoBlock(t *testing.T) {
	for _, mode := range []quorum.Mode{quorum.BFT, quorum.Crash} {
		n := newDrill(t, "alone", 1, scope.OpenPolicy(mode))
		write := func(key string) {
			n.step(0, Submit{Bundle: n.bundle(0, key)})
			for range 20 {
				n.now = n.now.Add(100 * time.Millisecond)
				n.step(0)
			}
		}
		n.off = map[int]time.Duration{0: 5 * time.Minute}
		write("/a")
		n.off = nil
		n.start(0)
		write("/b")
		if h := n.m[0].chain.state.Height(); h != 2 {
			t.Errorf("%s: height %d", mode, h)
		}
	}
}
