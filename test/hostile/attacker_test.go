package hostile

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/time/rate"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// attackerEnv makes this test program an attacker, which is a process of its own
// so that what it spends is not taken for what its victims spend.
const attackerEnv = "AWEIGH_HOSTILE_PLAN"

// plan is what an attacker is told.
type plan struct {
	Flood    string
	Genesis  []byte
	Victims  []string // multiaddrs
	Rate     int      // messages per second, to all victims together; 0: none
	Identity string   // of an anchor, to be it; empty: non-members
	Anchor   string   // its anchor key
	Blocks   []byte   // a final header to claim things of
}

// newcomers is how many identities an attacker takes on per second: what one
// address gets through p2p's limits, which spare loopback addresses.
const newcomers = 16

// floods are the attacks, each of which makes one message after the other for a
// stream of frames or of pubsub.
var floods = map[string]struct {
	gossip bool
	anchor bool // only an anchor gets far with it
	make   func(*attacker) []byte
}{
	"garbage":              {make: func(*attacker) []byte { return Frame([]byte("zzz")) }},
	"forged mutations":     {make: func(a *attacker) []byte { return Frame(spoiled(a.bundle())) }},
	"valid mutations":      {make: func(a *attacker) []byte { return Frame(a.bundle()) }},
	"questions":            {make: (*attacker).question},
	"stale ballots":        {make: func(a *attacker) []byte { return Frame(a.stale()) }},
	"gossip of garbage":    {gossip: true, make: func(a *attacker) []byte { return a.packet([]byte("zzz"), a.unique()) }},
	"gossip announcements": {gossip: true, make: func(a *attacker) []byte { return a.packet(a.announcement()) }},
	"gossip of mutations":  {gossip: true, make: func(a *attacker) []byte { return a.packet(a.bundle()) }},
	"forged by an anchor":  {anchor: true, make: func(a *attacker) []byte { return Frame(spoiled(a.ballot())) }},
	"ballots of an anchor": {anchor: true, make: func(a *attacker) []byte { return Frame(a.ballot()) }},
	"offers of an anchor":  {anchor: true, make: func(a *attacker) []byte { return a.offers }},
	"asked by an anchor":   {anchor: true, make: (*attacker).question},
}

// attack is the attacker's main function. It says when it begins.
func attack(text string) int {
	a := &attacker{}
	if err := json.Unmarshal([]byte(text), &a.plan); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := a.prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("begin")
	a.run(context.Background())
	return 0
}

type attacker struct {
	plan
	genesis scope.Genesis
	domain  votes.Domain
	author  votes.PrivateKey
	key     *votes.PrivateKey // of the anchor
	id      *votes.PrivateKey
	header  scope.Header
	offers  []byte
	limit   *rate.Limiter
	arrive  *rate.Limiter

	mu     sync.Mutex
	serial uint64
}

func (a *attacker) prepare() (err error) {
	if err := canon.Decode(a.Genesis, &a.genesis); err != nil {
		return err
	}
	keyring, err := a.genesis.Keyring()
	if err != nil {
		return err
	}
	a.domain = keyring.Domain()
	if err := canon.Decode(a.Blocks, &a.header); err != nil {
		return err
	}
	if a.author, err = votes.GenerateKey(votes.Ed25519, rand.Reader); err != nil {
		return err
	}
	if a.Identity != "" {
		var keys [2]votes.PrivateKey
		for i, text := range []string{a.Identity, a.Anchor} {
			if keys[i], err = votes.ParsePrivateKey(text); err != nil {
				return err
			}
		}
		a.id, a.key = &keys[0], &keys[1]
		a.offers = a.offer()
	}
	a.limit = rate.NewLimiter(rate.Limit(a.Rate), max(a.Rate/10, 1))
	a.arrive = rate.NewLimiter(newcomers, 4)
	return nil
}

// run attacks each victim, under new names when one is refused.
func (a *attacker) run(ctx context.Context) {
	for _, victim := range a.Victims {
		go func() {
			for ctx.Err() == nil {
				_ = a.arrive.Wait(ctx)
				a.visit(ctx, victim)
			}
		}()
	}
	<-ctx.Done()
}

// visit sends until the victim hangs up.
func (a *attacker) visit(ctx context.Context, victim string) {
	p, err := NewPeer(a.genesis.Hash(), a.id)
	if err != nil {
		return
	}
	defer p.Close()
	dial, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	to, err := p.Connect(dial, victim)
	if err != nil {
		return
	}
	f := floods[a.Flood]
	s, err := a.open(dial, p, to, f.gossip)
	if err != nil {
		return
	}
	const batch = 10
	if a.Rate == 0 {
		_ = Write(s, nil, time.Second)
	}
	for p.Connected(to) {
		if a.Rate == 0 {
			time.Sleep(100 * time.Millisecond) // until it hangs up
			continue
		}
		if a.limit.WaitN(ctx, batch) != nil {
			return
		}
		var out []byte
		for range batch {
			out = append(out, f.make(a)...)
		}
		if Write(s, out, 10*time.Second) != nil {
			return
		}
	}
}

func (a *attacker) open(ctx context.Context, p *Peer, to peer.ID, gossip bool) (network.Stream, error) {
	if gossip {
		return p.Gossip(ctx, to)
	}
	return p.Open(ctx, to, "frames")
}

func (a *attacker) next() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.serial++
	return a.serial
}

func (a *attacker) unique() []byte { return fmt.Append(nil, "zzz", a.next()) }

func (a *attacker) bundle() []byte {
	m := scope.Mutation{
		Scope: a.genesis.Hash(), Class: scope.Write, Nonce: fmt.Appendf(nil, "%016d", a.next()),
		Content:    canon.Encode(put("/flood", "v")),
		ValidUntil: aweigh.InstantOf(time.Now().Add(30 * time.Second)),
	}
	b, err := scope.Sign(a.author, a.genesis.Policy.Limits, m)
	if err != nil {
		panic(err)
	}
	return machine.Frame(machine.RawBundle(b.Raw()))
}

func (a *attacker) question() []byte {
	n := a.next()
	return slices.Concat(
		Frame(machine.Frame(machine.CatchUp{From: 1})),
		Frame(machine.Frame(machine.Ask{Round: n})),
		Frame(machine.Frame(machine.Want{Blocks: []aweigh.Hash{a.header.Hash()}})),
	)
}

func (a *attacker) stale() []byte {
	d := a.domain
	d.Epoch++
	return machine.Frame(votes.Ballot{
		Format: votes.Format, Domain: d, Anchor: a.genesis.Anchors[0].Key.ID(), Signature: make([]byte, 64),
		Subject: quorum.Subject{Kind: quorum.Nullify, View: aweigh.View(a.next())},
	})
}

func (a *attacker) signed(s quorum.Subject) votes.Ballot {
	b := votes.Ballot{Format: votes.Format, Domain: a.domain, Subject: s, Anchor: a.key.Public().ID()}
	b.Signature = a.key.Sign(votes.ContextBallot, b.SigningBytes())
	return b
}

// ballot is for a view that has passed or is far ahead: whatever the guard of an
// honest anchor would not sign.
func (a *attacker) ballot() []byte {
	return machine.Frame(a.signed(quorum.Subject{Kind: quorum.Nullify, View: aweigh.View(a.next() + 1<<32)}))
}

// offer is as many valid votes as one may hold, in a frame that is sent over and over.
func (a *attacker) offer() []byte {
	o := machine.Offer{Domain: a.domain, View: 1, Height: 1}
	for i := range 1000 {
		b := a.signed(quorum.Subject{Kind: quorum.Nullify, View: aweigh.View(1<<32 + i)})
		o.Votes = append(o.Votes, machine.OfferedVote{Subject: b.Subject, Signature: quorum.Signature{Anchor: b.Anchor, Bytes: b.Signature}})
	}
	return Frame(machine.Frame(o))
}

// announcement looks valid up to its last signature.
func (a *attacker) announcement() []byte {
	h := a.header
	h.Time += aweigh.Instant(a.next())
	c := quorum.Certificate{Subject: quorum.Subject{Kind: quorum.Finalize, View: h.View, Block: h.Hash()}}
	for _, x := range a.genesis.Anchors[:3] {
		c.Signatures = append(c.Signatures, quorum.Signature{Anchor: x.Key.ID(), Bytes: bytes.Repeat([]byte{7}, 64)})
	}
	slices.SortFunc(c.Signatures, func(x, y quorum.Signature) int { return bytes.Compare(x.Anchor[:], y.Anchor[:]) })
	return machine.Frame(machine.Announce{Header: h, Certificate: c})
}

func (a *attacker) packet(messages ...[]byte) []byte {
	p := Peer{Network: a.genesis.Hash()}
	raw, err := p.Packet("final/"+a.genesis.Hash().String(), messages...)
	if err != nil {
		panic(err)
	}
	return raw
}

// names are the floods in order.
func names() []string { return slices.Sorted(maps.Keys(floods)) }

// newPlan is a flood of the network's running nodes.
func (x *net4) newPlan(t testing.TB, flood string, perSecond int) plan {
	t.Helper()
	block, err := x.node(0).Root().History().Block(1)
	if err != nil {
		t.Fatal(err)
	}
	p := plan{Flood: flood, Genesis: x.Genesis.Encode(), Rate: perSecond, Blocks: canon.Encode(block.Header)}
	for i := range x.daemons {
		p.Victims = append(p.Victims, x.addr(t, i))
	}
	if floods[flood].anchor {
		identity, anchor, err := x.Nodes[3].Home.Keys()
		if err != nil {
			t.Fatal(err)
		}
		p.Identity, p.Anchor = identity.Encode(), anchor.Encode()
	}
	return p
}
