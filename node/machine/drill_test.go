package machine

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
	did   [][]Effects
	frees bool // after every step
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
	n.out, n.reply, n.did = make([][]Packet, k), make([][]Reply, k), make([][]Effects, k)
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
	n.did[i] = append(n.did[i], fx)
	if n.frees {
		n.m[i].FreeMemory()
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
	now := max(n.now.Add(n.off[i]), n.m[i].chain.state.Head().Time)
	mu := scope.Mutation{Scope: n.m[0].id, Class: scope.Write, Content: canon.Encode(putTxn(key, "v")), Nonce: []byte("12345678"), ValidUntil: now.Add(9 * time.Minute)}
	b, err := scope.Sign(n.auth[i], n.m[0].chain.policy.Limits, mu)
	if err != nil {
		n.t.Fatal(err)
	}
	return b
}

func (n *drill) say(i int) string {
	e := n.m[i].engine
	return fmt.Sprintf("%d: view %d final %d open %d height %d listening %v since %d goal %v", i, e.View(), e.Final(), e.Unfinalized(), n.m[i].chain.state.Height(), !n.m[i].listen.over, n.m[i].listen.since, n.m[i].chain.goal.Subject)
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

// newOneRound returns a drill of four anchors in mode crash, whose first two views are led by two different anchors.
// All are connected, and no frame is on its way.
func newOneRound(t *testing.T) (n *drill, first, second, third, fourth int) {
	t.Helper()
	for k := 0; ; k++ {
		n = newDrill(t, fmt.Sprint("pc", k), 4, scope.OpenPolicy(quorum.Crash))
		first, second, rest := leaders(n)
		if first == second {
			continue
		}
		who := []int{0, 1, 2, 3}
		n.meet(who)
		n.all(who, 4)
		for i := range n.m {
			n.drop(i)
		}
		return n, first, second, rest[0], rest[1]
	}
}
