package p2p

import (
	"fmt"
	"slices"
	"testing"

	ds "github.com/ipfs/go-datastore"
	dssync "github.com/ipfs/go-datastore/sync"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
)

// group is hosts that are members of one network, each with a memory that
// outlives it.
type group struct {
	t     *testing.T
	keys  []crypto.PrivKey
	ids   []peer.ID
	disks []ds.Datastore
	hosts []*Host
}

func newGroup(t *testing.T, n int) *group {
	g := &group{t: t, hosts: make([]*Host, n)}
	for range n {
		key := newKey(t)
		id, err := peer.IDFromPrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		g.keys, g.ids = append(g.keys, key), append(g.ids, id)
		g.disks = append(g.disks, dssync.MutexWrap(ds.NewMapDatastore()))
	}
	return g
}

// up starts host i on a free port; bootstrap are the only addresses that it gets.
func (g *group) up(i int, bootstrap ...peer.AddrInfo) *Host {
	g.hosts[i] = start(g.t, func(c *Config) {
		c.Key, c.Datastore, c.Bootstrap = g.keys[i], g.disks[i], bootstrap
		c.Members = slices.Delete(slices.Clone(g.ids), i, i+1)
	})
	return g.hosts[i]
}

// down stops a host.
func (g *group) down(i int) {
	if err := g.hosts[i].Close(); err != nil {
		g.t.Fatal(err)
	}
}

// whole waits until every host that is named sees all others that are named.
func (g *group) whole(what string, named ...int) {
	g.t.Helper()
	testwait.Until(g.t, what, func() bool {
		for _, i := range named {
			for _, j := range named {
				if i != j && !connected(g.hosts[i], g.hosts[j]) {
					return false
				}
			}
		}
		return true
	})
}

// TestMembersThatMoveOneByOneAreFound: all restart on another port, one by one,
// until none is at its first address.
func TestMembersThatMoveOneByOneAreFound(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 4)
	first := g.up(0).info()
	for i := 1; i < 4; i++ {
		g.up(i, first)
	}
	g.whole("the network forms", 0, 1, 2, 3)
	for i := range 4 {
		g.down(i)
		g.up(i) // its own memory alone
		g.whole("a member that moved is found", 0, 1, 2, 3)
	}
}

// TestMembersThatMoveTogetherAreFoundThroughOneThatStays: all remembered
// addresses are wrong, except one.
func TestMembersThatMoveTogetherAreFoundThroughOneThatStays(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 4)
	first := g.up(0).info()
	for i := 1; i < 4; i++ {
		g.up(i, first)
	}
	g.whole("the network forms", 0, 1, 2, 3)
	for i := 1; i < 4; i++ {
		g.down(i)
	}
	for i := 1; i < 4; i++ {
		g.up(i)
	}
	g.whole("all are found again", 0, 1, 2, 3)
}

// TestMembersMeetByHearsay: 1 and 2 never run at the same time until 0, which
// told them of each other, is gone for good.
func TestMembersMeetByHearsay(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3)
	first := g.up(0).info()
	g.up(1, first)
	g.whole("0 and 1 meet", 0, 1)
	there := []string{g.hosts[1].info().Addrs[0].String()}
	testwait.Until(t, "1 is remembered", func() bool { return len(g.hosts[0].book.addrs(g.ids[1])) > 0 })
	g.down(1)
	g.up(2, first)
	g.whole("0 and 2 meet", 0, 2)
	testwait.Until(t, "2 hears of 1", func() bool { return len(g.hosts[2].book.addrs(g.ids[1])) > 0 })
	g.down(0)
	g.down(2)
	g.hosts[1] = start(t, func(c *Config) { // it has forgotten all peers, and waits
		c.Key, c.Members = g.keys[1], g.ids[:1]
		c.Listen = there
	})
	g.up(2)
	g.whole("2 finds 1 from what it heard", 1, 2)
}

// TestMembersAreForgottenLast: a peer that fills the book with other peers does
// not make a host forget its members.
func TestMembersAreForgottenLast(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	member, err := peer.IDFromPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	h := start(t, func(c *Config) { c.Members = []peer.ID{member} })
	h.book.put(member, entry{seq: 1})
	for i := range maxKnown + 10 {
		h.book.put(peer.ID(fmt.Sprint("stranger ", i)), entry{seq: 1})
	}
	if n := h.book.len(); n != maxKnown {
		t.Errorf("%d peers are remembered, not %d", n, maxKnown)
	}
	h.book.mu.Lock()
	defer h.book.mu.Unlock()
	if _, ok := h.book.known[member]; !ok {
		t.Error("the member is forgotten")
	}
	if _, ok := h.book.known["stranger 0"]; ok {
		t.Error("the non-member seen longest ago is remembered")
	}
}

// TestHiddenHostsAreReachedThroughARelay: two hosts that listen nowhere meet,
// and meet again when the relay comes back elsewhere.
func TestHiddenHostsAreReachedThroughARelay(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	var in inbox
	key := newKey(t)
	relay := start(t, func(c *Config) { c.Key = key; c.Relay = true })
	hidden := func() *Host {
		return start(t, func(c *Config) {
			c.Listen, c.Relays = []string{}, []peer.AddrInfo{relay.info()}
			c.Handler.Frame = in.receive
		})
	}
	a, b := hidden(), hidden()
	a.SetMembers([]peer.ID{b.ID()})
	testwait.Until(t, "two hidden hosts meet", func() bool { return connected(a, b) })
	if !a.Send(b.ID(), []byte("hello")) {
		t.Error("no frame can be sent")
	}
	testwait.Until(t, "a frame passes", func() bool { return in.len() == 1 })
	plain := start(t, func(c *Config) { c.Bootstrap = []peer.AddrInfo{relay.info()}; c.Members = []peer.ID{a.ID()} })
	testwait.Until(t, "a third reaches one", func() bool { return connected(plain, a) })

	there := []string{relay.info().Addrs[0].String()}
	if err := relay.Close(); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the relayed connections break", func() bool { return !connected(a, b) })
	relay = start(t, func(c *Config) { c.Key, c.Relay, c.Listen = key, true, there })
	testwait.Until(t, "they meet again", func() bool { return connected(a, b) })
}

// TestRelayServesItsOwnNetworkAlone: other peers get no slot.
func TestRelayServesItsOwnNetworkAlone(t *testing.T) {
	t.Parallel()
	relay := start(t, func(c *Config) { c.Relay = true })
	friend, nonMember := start(t, nil), start(t, nil)
	join(t, friend, relay)
	acl := ownNetwork(relay.knows)
	if !acl.AllowReserve(friend.ID(), nil) || acl.AllowReserve(nonMember.ID(), nil) {
		t.Error("who gets a slot")
	}
	if acl.AllowConnect(nonMember.ID(), nil, friend.ID()) || acl.AllowConnect(friend.ID(), nil, nonMember.ID()) {
		t.Error("who is connected")
	}
	for _, h := range []*Host{relay, friend} {
		if slices.Contains(h.host.Mux().Protocols(), proto.ProtoIDv2Stop) {
			t.Error("a host that needs no relay takes relayed connections")
		}
	}
}
