package node

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/votes"
)

// drill is a few machines by hand: a frame arrives when the test says so, or never.
type drill struct {
	t     *testing.T
	net   *Network
	keys  []votes.PrivateKey
	auth  []votes.PrivateKey
	peers []Peer
	m     []*Machine
	disk  []*store.Mem
	out   [][]Packet
	reply [][]Reply
	now   aweigh.Instant
	life  uint64
	off   map[int]time.Duration
}

func newDrill(t *testing.T, name string, k int, policy scope.Policy) *drill {
	t.Helper()
	n := &drill{t: t, now: aweigh.InstantOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	var founders []Founder
	for i := range k {
		s := aweigh.Sum([]byte(name), []byte{byte(i)})
		key, _ := votes.KeyFromSeed(votes.Ed25519, s[:])
		s = aweigh.Sum(s[:])
		a, _ := votes.KeyFromSeed(votes.Ed25519, s[:])
		p, err := PeerOf(a)
		if err != nil {
			t.Fatal(err)
		}
		n.keys, n.auth, n.peers = append(n.keys, key), append(n.auth, a), append(n.peers, p)
		founders = append(founders, Founder{Name: fmt.Sprint("n", i), Key: key.Public(), Peer: p})
	}
	g, err := NewGenesis(name, n.now, policy, founders...)
	if err != nil {
		t.Fatal(err)
	}
	n.net, err = NewNetwork(g, nil)
	ops, err2 := Bootstrap(g)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	n.m, n.disk = make([]*Machine, k), make([]*store.Mem, k)
	n.out, n.reply = make([][]Packet, k), make([][]Reply, k)
	for i := range k {
		n.disk[i] = store.NewMem()
		if err := n.disk[i].Commit(ops, true); err != nil {
			t.Fatal(err)
		}
		n.start(i)
	}
	return n
}

func (n *drill) start(i int) {
	n.life += 1 << 32
	m, err := NewMachine(MachineConfig{Network: n.net, Key: &n.keys[i], Life: n.life}, n.disk[i])
	if err != nil {
		n.t.Fatal(err)
	}
	n.m[i], n.out[i] = m, nil
}

func (n *drill) step(i int, ev ...Event) {
	n.now = n.now.Add(time.Millisecond)
	fx := n.m[i].Step(n.now.Add(n.off[i]), ev...)
	if err := n.disk[i].Commit(fx.Write, fx.Sync); err != nil {
		n.t.Fatal(err)
	}
	n.out[i] = append(n.out[i], fx.Send...)
	n.reply[i] = append(n.reply[i], fx.Reply...)
}

// carry delivers what i has sent to j of the tags; the rest for j stays unless drop.
func (n *drill) carry(i, j int, tags string) {
	sent := n.out[i]
	n.out[i] = nil
	for _, p := range sent {
		if p.To != n.peers[j] {
			n.out[i] = append(n.out[i], p)
			continue
		}
		ok := false
		for _, t := range tags {
			ok = ok || byte(t) == p.Frame[0]
		}
		if !ok {
			n.out[i] = append(n.out[i], p)
			continue
		}
		msg, err := n.m[j].Checker().Check(n.peers[i], p.Frame)
		if err != nil {
			n.t.Logf("refused %c: %v", p.Frame[0], err)
			continue
		}
		n.step(j, Arrived{From: n.peers[i], Message: msg})
	}
}

const everything = "bpvowkrasyncm"

func (n *drill) all(who []int, rounds int) {
	for range rounds {
		for _, i := range who {
			for _, j := range who {
				if i != j {
					n.carry(i, j, everything)
				}
			}
		}
		for _, i := range who {
			n.step(i)
		}
	}
}

func (n *drill) meet(who []int) {
	for _, i := range who {
		for _, j := range who {
			if i != j {
				n.step(i, Met{Peer: n.peers[j]})
			}
		}
	}
}

func (n *drill) drop(i int) { n.out[i] = nil }

func (n *drill) bundle(i int, key string) *scope.CheckedBundle {
	mu := scope.Mutation{Scope: n.m[0].id, Class: scope.Write, Content: canon.Encode(putTxn(key, "v")), Nonce: []byte("12345678"), ValidUntil: n.now.Add(9 * time.Minute)}
	b, err := scope.Sign(n.auth[i], n.m[0].chain.policy.Limits, mu)
	if err != nil {
		n.t.Fatal(err)
	}
	return b
}

func (n *drill) say(i int) string {
	e := n.m[i].engine
	return fmt.Sprintf("%d: view %d final %d open %d height %d listening %v since %d goal %v", i, e.View(), e.Final(), e.Open(), n.m[i].chain.state.Height(), !n.m[i].listen.over, n.m[i].listen.since, n.m[i].chain.goal.Subject)
}

// leaders are those of the views 1 and 2, and the others.
func leaders(n *drill) (first, second int, rest []int) {
	first, second = -1, -1
	for i := range n.m {
		if n.m[0].engine.Leader(1) == n.m[i].self {
			first = i
		}
		if n.m[0].engine.Leader(2) == n.m[i].self {
			second = i
		}
	}
	for i := range n.m {
		if i != first && i != second {
			rest = append(rest, i)
		}
	}
	return first, second, rest
}

// TestWhatABlockStandsOnIsKept: where one round decides, the block below the one that
// became final may have been voted for by its leader alone. The leader is gone for
// good, the others lose power, and the write that it acknowledged is there.
func TestWhatABlockStandsOnIsKept(t *testing.T) {
	var n *drill
	var L, a int
	var rest []int
	for k := 0; ; k++ {
		n = newDrill(t, fmt.Sprint("pc", k), 4, scope.DefaultPolicy(quorum.Crash))
		if L, a, rest = leaders(n); L != a {
			break
		}
	}
	c, d := rest[0], rest[1]
	who := []int{0, 1, 2, 3}
	n.meet(who)
	n.all(who, 4)
	for i := range n.m {
		n.drop(i)
	}
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
	for _, i := range who {
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

// TestViewsAreGivenUpAfterARestart: one of four is gone, with the content of a block
// that another voted for; a third one restarts. All who are left must give the view up.
func TestViewsAreGivenUpAfterARestart(t *testing.T) {
	for _, restart := range []bool{false, true} {
		var n *drill
		var L, a int
		var rest []int
		for k := 0; ; k++ {
			n = newDrill(t, fmt.Sprint("pc", k), 4, scope.DefaultPolicy(quorum.Crash))
			if L, a, rest = leaders(n); L != a {
				break
			}
		}
		c, d := rest[0], rest[1]
		who := []int{0, 1, 2, 3}
		n.meet(who)
		n.all(who, 4)
		for i := range n.m {
			n.drop(i)
		}
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
	for _, k := range []int{3, 4, 5} {
		for _, down := range []int{0, 1} {
			n := newDrill(t, fmt.Sprint("clock", k), k, scope.DefaultPolicy(quorum.Crash))
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
	k := 4
	n := newDrill(t, "clock4", k, scope.DefaultPolicy(quorum.Crash))
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
	for w := range 400 {
		for _, i := range who {
			if i != L && w%15 == 0 {
				n.step(i, Submit{Bundle: n.bundle(i, fmt.Sprint("/k", w, i))})
			}
		}
		n.all(who, 3)
		n.now = n.now.Add(12 * time.Second)
	}
	for _, i := range who {
		t.Log(n.say(i), "candidates", len(n.m[i].chain.candidates))
	}
	t.Log("after", n.now.Sub(aweigh.InstantOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))))
	if len(n.m[who[0]].chain.candidates) <= maxOpenBlocks {
		t.Fatal("too few blocks are open: the test did not reach what it is meant to")
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

// TestAClockSetBackDelaysNobody: what is final may be of a time to come, after a clock
// was wrong; whoever leads goes on from there.
func TestAClockSetBackDelaysNobody(t *testing.T) {
	for _, mode := range []quorum.Mode{quorum.BFT, quorum.Crash} {
		n := newDrill(t, "alone", 1, scope.DefaultPolicy(mode))
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
