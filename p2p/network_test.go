package p2p

import (
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	ds "github.com/ipfs/go-datastore"
	dssync "github.com/ipfs/go-datastore/sync"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/aweigh/aweigh"
)

func TestAnotherNetworkIsRefused(t *testing.T) {
	var mu sync.Mutex
	var met []peer.ID
	note := func(id peer.ID, _ bool) { mu.Lock(); defer mu.Unlock(); met = append(met, id) }
	a := start(t, func(c *Config) { c.Handler.Peer = note })
	b := start(t, func(c *Config) { c.Handler.Peer = note; c.Network = aweigh.Sum([]byte("another")) })
	a.Hint(b.Info())
	eventually(t, "the foreign peer is noticed", func() bool { return a.Stats().Foreign+b.Stats().Foreign > 0 })
	eventually(t, "it is disconnected", func() bool {
		return a.host.Network().Connectedness(b.ID()) == network.NotConnected
	})
	if mu.Lock(); len(met) > 0 {
		t.Error("a foreign peer was announced")
	}
	mu.Unlock()
	eventually(t, "it stays refused", func() bool {
		a.Hint(b.Info())
		return a.Stats().GateRefusals+b.Stats().GateRefusals > 0
	})
}

func TestPeerIsFoundAgainAfterItRestarts(t *testing.T) {
	var in inbox
	downs := make(chan peer.ID, 10)
	key := newKey(t)
	b := start(t, func(c *Config) { c.Key = key })
	addr := b.Info().Addrs[0].String()
	a := start(t, func(c *Config) {
		c.Bootstrap = []peer.AddrInfo{b.Info()}
		c.Members = []peer.ID{b.ID()}
		c.Handler.Peer = func(id peer.ID, up bool) {
			if !up {
				downs <- id
			}
		}
	})
	eventually(t, "hosts connect", func() bool { return connected(a, b) })
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if id := within(t, "the loss is announced", downs); id != b.ID() {
		t.Errorf("%s went", id)
	}
	if a.Send(b.ID(), []byte("lost")) {
		t.Error("a frame for a peer that went was accepted")
	}
	eventually(t, "dials fail", func() bool { return a.Stats().DialsFailed >= 2 })
	b = start(t, func(c *Config) { c.Key = key; c.Listen = []string{addr}; c.Handler.Frame = in.receive })
	eventually(t, "hosts connect again", func() bool { return connected(a, b) })
	a.Send(b.ID(), []byte("found"))
	eventually(t, "frames flow again", func() bool { return in.len() == 1 })
}

func TestThirtyHostsJoinThroughOneAddress(t *testing.T) {
	first := start(t, nil)
	hosts := []*Host{first}
	for range 29 {
		hosts = append(hosts, start(t, func(c *Config) { c.Bootstrap = []peer.AddrInfo{first.Info()} }))
	}
	eventually(t, "all reach the first", func() bool { return first.Stats().Peers == 29 })
	for i, h := range hosts {
		if s := h.Stats(); s.Foreign+s.GateRefusals > 0 {
			t.Errorf("host %d refused someone: %+v", i, s)
		}
	}
}

// TestManyPeersBehindOneAddressAreAdmitted asks the resource manager directly,
// since the loopback addresses of the other tests are exempt from its limits.
func TestManyPeersBehindOneAddressAreAdmitted(t *testing.T) {
	for _, endpoint := range []string{"/ip4/192.0.2.1/tcp/4001", "/ip6/2001:db8::1/tcp/4001"} {
		resources, err := newResources(Config{}.withDefaults())
		if err != nil {
			t.Fatal(err)
		}
		defer resources.Close()
		for i := range 129 {
			_, err := resources.OpenConnection(network.DirInbound, true, ma.StringCast(endpoint))
			if admitted := err == nil; admitted != (i < 128) {
				t.Fatalf("%s: connection %d: %v", endpoint, i, err)
			}
			if i == 128 {
				continue
			}
			if !resources.VerifySourceAddress(testUDP) && i < 30 {
				continue // an unverified source only costs QUIC a round trip
			}
		}
	}
}

var testUDP = netAddr{netip.MustParseAddrPort("192.0.2.1:4001")}

type netAddr struct{ netip.AddrPort }

func (netAddr) Network() string { return "udp" }

func TestPeerExchangeFindsEveryone(t *testing.T) {
	first := start(t, nil)
	hosts := []*Host{first}
	for range 9 {
		hosts = append(hosts, start(t, func(c *Config) { c.Bootstrap = []peer.AddrInfo{first.Info()} }))
	}
	for i, h := range hosts {
		eventually(t, "everyone knows everyone", func() bool { return h.Stats().Peers == 9 })
		if infos := h.Peers(); len(infos) != 9 || infos[0].Agent != "aweigh/dev" || infos[0].Addr == "" {
			t.Errorf("host %d: %+v", i, infos)
		}
	}
}

func TestTargetEndsTheSearchButNotForMembers(t *testing.T) {
	first := start(t, nil)
	var hosts []*Host
	for range 5 {
		hosts = append(hosts, start(t, func(c *Config) { c.Bootstrap = []peer.AddrInfo{first.Info()}; c.Target = 1 }))
	}
	eventually(t, "all reach the first", func() bool { return first.Stats().Peers == 5 })
	// A member's address is not known here; the first knows it.
	hosts[0].SetMembers([]peer.ID{hosts[1].ID(), hosts[2].ID()})
	eventually(t, "members are found", func() bool { return connected(hosts[0], hosts[1]) && connected(hosts[0], hosts[2]) })
	if hosts[3].Stats().Dials > 2 {
		t.Error("a host with enough peers went on dialling")
	}
	if !hosts[0].host.ConnManager().IsProtected(hosts[1].ID(), memberTag) {
		t.Error("a member is not protected")
	}
	hosts[0].SetMembers(nil)
	if hosts[0].host.ConnManager().IsProtected(hosts[1].ID(), memberTag) {
		t.Error("a former member is protected")
	}
}

func TestAddressesSurviveARestart(t *testing.T) {
	store := dssync.MutexWrap(ds.NewMapDatastore())
	key := newKey(t)
	b := start(t, nil)
	a := start(t, func(c *Config) { c.Key = key; c.Datastore = store })
	join(t, a, b)
	eventually(t, "the peer is remembered", func() bool { return a.Stats().Known == 1 })
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	a = start(t, func(c *Config) { c.Key = key; c.Datastore = store })
	eventually(t, "it is found from memory", func() bool { return connected(a, b) })
}

func TestForgedRecordsAreRefused(t *testing.T) {
	a, b := start(t, nil), start(t, nil)
	join(t, a, b)
	eventually(t, "records are kept", func() bool { return a.Stats().Known == 1 })
	sealed := a.book.pick(nil, 1)[0]
	if id, _, err := openRecord(sealed); err != nil || id != b.ID() {
		t.Fatalf("a good record: %v", err)
	}
	for i := range sealed {
		forged := slices.Clone(sealed)
		forged[i] ^= 1
		if id, _, err := openRecord(forged); err == nil && id == b.ID() {
			t.Errorf("accepted with byte %d changed", i)
		}
	}
}

func TestTCPIsDialledBeforeQUIC(t *testing.T) {
	tcp, quic := ma.StringCast("/ip4/192.0.2.1/tcp/1"), ma.StringCast("/ip4/192.0.2.1/udp/1/quic-v1")
	ranked := tcpFirst([]ma.Multiaddr{quic, tcp})
	if len(ranked) != 2 || !ranked[0].Addr.Equal(tcp) || ranked[0].Delay != 0 || ranked[1].Delay < quicDelay {
		t.Errorf("%v", ranked)
	}
	if alone := tcpFirst([]ma.Multiaddr{quic}); len(alone) != 1 || alone[0].Delay != 0 {
		t.Errorf("QUIC alone waits: %v", alone)
	}
	both := []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"}
	a := start(t, func(c *Config) { c.Listen = both })
	b := start(t, func(c *Config) { c.Listen = both })
	join(t, a, b)
	if addr := ma.StringCast(a.Peers()[0].Addr); !isTCP(addr) {
		t.Errorf("connected over %s", addr)
	}
	if n := len(b.Addrs()); n != 2 {
		t.Errorf("%d addresses", n)
	}
}

func isTCP(a ma.Multiaddr) bool {
	_, err := a.ValueForProtocol(ma.P_TCP)
	return err == nil
}

func TestBlockedPeerStaysOut(t *testing.T) {
	a, b := start(t, nil), start(t, nil)
	join(t, a, b)
	a.Block(b.ID(), time.Hour)
	eventually(t, "the peer goes", func() bool { return a.Stats().Peers == 0 && b.Stats().Peers == 0 })
	b.Hint(a.Info())
	eventually(t, "the peer is refused", func() bool { return a.Stats().GateRefusals > 0 })
	if connected(a, b) {
		t.Error("a blocked peer is connected")
	}
}
