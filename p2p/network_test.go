package p2p

import (
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	ds "github.com/ipfs/go-datastore"
	dssync "github.com/ipfs/go-datastore/sync"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/record"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
)

func TestAnotherNetworkIsRefused(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var met []peer.ID
	note := func(id peer.ID, _ bool) { mu.Lock(); defer mu.Unlock(); met = append(met, id) }
	a := start(t, func(c *Config) { c.Handler.Peer = note; c.Grace = 100 * time.Millisecond })
	b := start(t, func(c *Config) { c.Handler.Peer = note; c.Grace = time.Hour; c.Network = aweigh.Sum([]byte("another")) })
	a.Hint(b.info())
	testwait.Until(t, "the foreign peer is noticed", func() bool { return a.Stats().Foreign+b.Stats().Foreign > 0 })
	testwait.Until(t, "it is disconnected", func() bool {
		return a.host.Network().Connectedness(b.ID()) == network.NotConnected
	})
	if mu.Lock(); len(met) > 0 {
		t.Error("a foreign peer was announced")
	}
	mu.Unlock()
	testwait.Until(t, "it stays refused", func() bool {
		a.Hint(b.info())
		return a.Stats().GateRefusals+b.Stats().GateRefusals > 0
	})
}

// TestPeersThatCameAgainAreNotJudgedEarly: the time that a peer had to prove that it
// belongs here ends, and it went away and came again a moment ago.
func TestPeersThatCameAgainAreNotJudgedEarly(t *testing.T) {
	t.Parallel()
	testshort.Skip(t)
	a := start(t, func(c *Config) { c.Grace = time.Hour })
	b := start(t, func(c *Config) { c.Grace = time.Hour; c.Network = aweigh.Sum([]byte("another")) })
	began := time.Now()
	a.Hint(b.info())
	testwait.Until(t, "they connect", func() bool { return a.host.Network().Connectedness(b.ID()) == network.Connected })
	for range 2 { // when the second is taken, the first was judged
		a.peers.expired <- expiry{b.ID(), time.Hour}
	}
	if n := a.Stats().Foreign; n > 0 && time.Since(began) < secondLook {
		t.Error("a peer that is here for a moment was judged")
	}
	testwait.Until(t, "its own time ends", func() bool { return a.Stats().Foreign+b.Stats().Foreign > 0 })
}

func TestPeerIsFoundAgainAfterItRestarts(t *testing.T) {
	t.Parallel()
	var in inbox
	downs := make(chan peer.ID, 10)
	key := newKey(t)
	b := start(t, func(c *Config) { c.Key = key })
	addr := b.info().Addrs[0].String()
	a := start(t, func(c *Config) {
		c.Bootstrap = []peer.AddrInfo{b.info()}
		c.Members = []peer.ID{b.ID()}
		c.Handler.Peer = func(id peer.ID, up bool) {
			if !up {
				downs <- id
			}
		}
	})
	testwait.Until(t, "hosts connect", func() bool { return connected(a, b) })
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if id := within(t, "the loss is announced", downs); id != b.ID() {
		t.Errorf("%s went", id)
	}
	if a.Send(b.ID(), []byte("lost")) {
		t.Error("a frame for a peer that went was accepted")
	}
	testwait.Until(t, "dials fail", func() bool { return a.Stats().DialsFailed >= 2 })
	b = start(t, func(c *Config) { c.Key = key; c.Listen = []string{addr}; c.Handler.Frame = in.receive })
	testwait.Until(t, "hosts connect again", func() bool { return connected(a, b) })
	a.Send(b.ID(), []byte("found"))
	testwait.Until(t, "frames flow again", func() bool { return in.len() == 1 })
}

// TestThirtyHostsJoinThroughOneAddress uses an address of the machine that is
// no loopback address, since libp2p counts no connections of those.
func TestThirtyHostsJoinThroughOneAddress(t *testing.T) {
	t.Parallel()
	testshort.Skip(t)
	listen := []string{"/ip4/" + ownAddress(t) + "/tcp/0"}
	first := start(t, func(c *Config) { c.Listen = listen })
	var hosts []*Host
	for range 29 {
		hosts = append(hosts, start(t, func(c *Config) { c.Listen = listen; c.Bootstrap = []peer.AddrInfo{first.info()} }))
	}
	testwait.Until(t, "all reach the first", func() bool { return first.Stats().Peers == 29 })
	for i, h := range append(hosts, first) {
		if s := h.Stats(); s.Foreign+s.GateRefusals > 0 {
			t.Errorf("host %d refused someone: %+v", i, s)
		}
	}
}

// TestOneAddressHasALimit shows that the test above is not exempt from it.
func TestOneAddressHasALimit(t *testing.T) {
	t.Parallel()
	listen := []string{"/ip4/" + ownAddress(t) + "/tcp/0"}
	first := start(t, func(c *Config) { c.Listen = listen; c.PerAddressConns = 2 })
	var hosts []*Host
	for range 6 {
		h := start(t, func(c *Config) { c.Listen = listen; c.Target = 1 })
		h.Hint(first.info())
		hosts = append(hosts, h)
	}
	// A host counts a connection as soon as it dialled it; the first counts it
	// when the peer has identified itself. Only the second is bounded.
	testwait.Until(t, "two are let in and four are turned away", func() bool {
		failed := 0
		for _, h := range hosts {
			if !connected(h, first) && h.Stats().DialsFailed > 0 {
				failed++
			}
		}
		n := first.Stats().Peers
		if n > 2 {
			t.Fatalf("%d peers, not 2", n)
		}
		return failed == 4 && n == 2
	})
}

// ownAddress is an IPv4 address of this machine that others could reach.
func ownAddress(t testing.TB) string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() {
			return ip.IP.String()
		}
	}
	t.Skip("this machine has loopback addresses alone")
	return ""
}

// TestManyPeersBehindOneAddressAreAdmitted asks the resource manager directly,
// since the loopback addresses of the other tests are exempt from its limits.
func TestManyPeersBehindOneAddressAreAdmitted(t *testing.T) {
	t.Parallel()
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
		}
	}
}

func TestPeerExchangeFindsEveryone(t *testing.T) {
	t.Parallel()
	first := start(t, nil)
	hosts := []*Host{first}
	for range 9 {
		hosts = append(hosts, start(t, func(c *Config) { c.Bootstrap = []peer.AddrInfo{first.info()} }))
	}
	for i, h := range hosts {
		testwait.Until(t, "everyone knows everyone", func() bool { return h.Stats().Peers == 9 })
		testwait.Until(t, "all hosts identified themselves", func() bool {
			return !slices.ContainsFunc(h.Peers(), func(p PeerInfo) bool { return p.Agent != "aweigh/dev" })
		})
		if infos := h.Peers(); len(infos) != 9 || infos[0].Addr == "" {
			t.Errorf("host %d: %+v", i, infos)
		}
	}
}

func TestTargetEndsTheSearchButNotForMembers(t *testing.T) {
	t.Parallel()
	first := start(t, nil)
	var hosts []*Host
	for range 5 {
		hosts = append(hosts, start(t, func(c *Config) { c.Bootstrap = []peer.AddrInfo{first.info()}; c.Target = 1 }))
	}
	testwait.Until(t, "all reach the first", func() bool { return first.Stats().Peers == 5 })
	// A member's address is not known here; the first knows it.
	hosts[0].SetMembers([]peer.ID{hosts[1].ID(), hosts[2].ID()})
	testwait.Until(t, "members are found", func() bool { return connected(hosts[0], hosts[1]) && connected(hosts[0], hosts[2]) })
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
	t.Parallel()
	store := dssync.MutexWrap(ds.NewMapDatastore())
	key := newKey(t)
	b := start(t, nil)
	a := start(t, func(c *Config) { c.Key = key; c.Datastore = store })
	join(t, a, b)
	testwait.Until(t, "the peer is remembered", func() bool { return a.Stats().Known == 1 })
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	a = start(t, func(c *Config) { c.Key = key; c.Datastore = store })
	testwait.Until(t, "it is found from memory", func() bool { return connected(a, b) })
}

func TestForgedRecordsAreRefused(t *testing.T) {
	t.Parallel()
	key, other := newKey(t), newKey(t)
	good := sealedRecord(t, key, key)
	if e, err := good.open(); err != nil || len(e.addrs) != 1 {
		t.Fatalf("a good record: %v", err)
	}
	for i := range good.Sealed {
		forged := peerRecord{ID: good.ID, Sealed: slices.Clone(good.Sealed)}
		forged.Sealed[i] ^= 1
		if _, err := forged.open(); !errors.Is(err, ErrRecord) {
			t.Errorf("byte %d changed: %v", i, err)
		}
	}
	if _, err := sealedRecord(t, key, other).open(); !errors.Is(err, ErrRecord) {
		t.Errorf("signed by another: %v", err)
	}
	if _, err := (peerRecord{ID: sealedRecord(t, other, other).ID, Sealed: good.Sealed}).open(); !errors.Is(err, ErrRecord) {
		t.Errorf("passed off as another's: %v", err)
	}
}

// sealedRecord is a record about one identity, signed by another.
func sealedRecord(t testing.TB, about, signer crypto.PrivKey) peerRecord {
	t.Helper()
	id, err := peer.IDFromPrivateKey(about)
	if err != nil {
		t.Fatal(err)
	}
	env, err := record.Seal(&peer.PeerRecord{PeerID: id, Seq: 1, Addrs: []ma.Multiaddr{ma.StringCast("/ip4/192.0.2.1/tcp/1")}}, signer)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := env.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return peerRecord{ID: []byte(id), Sealed: sealed}
}

func FuzzPeersAnswer(f *testing.F) {
	key := newKey(f)
	f.Add(canon.Encode(peersAnswer{Records: []peerRecord{sealedRecord(f, key, key)}}))
	f.Add(canon.Encode(peersAnswer{}))
	f.Fuzz(func(t *testing.T, data []byte) {
		var answer peersAnswer
		if canon.Decode(data, &answer) != nil {
			return
		}
		for _, r := range answer.Records {
			if e, err := r.open(); err == nil && peer.ID(r.ID).Validate() != nil {
				t.Errorf("a record about nobody: %+v", e)
			}
		}
	})
}

func FuzzPeersRequest(f *testing.F) {
	h := &Host{cfg: Config{}.withDefaults()}
	h.book = newBook(h)
	f.Add(canon.Encode(peersRequest{Wanted: [][]byte{[]byte("x")}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if answer, err := h.answerPeers(t.Context(), "", data); err == nil && len(answer) > maxPeersAnswer {
			t.Errorf("an answer of %d bytes", len(answer))
		}
	})
}

func TestTCPIsDialledBeforeQUIC(t *testing.T) {
	t.Parallel()
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
	began := time.Now()
	join(t, a, b)
	slow := time.Since(began) > quicDelay // then both are dialed
	if addr := ma.StringCast(a.Peers()[0].Addr); !isTCP(addr) && !slow {
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
	t.Parallel()
	a, b := start(t, nil), start(t, nil)
	join(t, a, b)
	a.Block(b.ID(), time.Hour)
	testwait.Until(t, "the peer goes", func() bool { return a.Stats().Peers == 0 && b.Stats().Peers == 0 })
	b.Hint(a.info())
	testwait.Until(t, "the peer is refused", func() bool { return a.Stats().GateRefusals > 0 })
	if connected(a, b) {
		t.Error("a blocked peer is connected")
	}
}
