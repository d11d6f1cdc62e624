package p2p

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	quic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"
)

var (
	// ErrNotConnected is returned for a peer that is not connected, or not of this network.
	ErrNotConnected = errors.New("p2p: peer not connected")
	// ErrClosed is returned by a closed host.
	ErrClosed = errors.New("p2p: host closed")
)

// Host is one node's presence in the network. Its methods may be called from
// any goroutine, after Start.
type Host struct {
	cfg    Config
	host   host.Host
	count  counters
	gate   *gate
	blames *blames
	peers  *table
	book   *book
	dialer *dialer
	gossip *gossip

	nonMembers *nonMembers

	proofID, framesID, pullID, peersID protocol.ID

	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	closing bool
	running sync.WaitGroup // goroutines and handlers; entered through enter
}

// New makes a host that neither listens nor dials before Start. It returns
// ErrConfig, wrapped, for a bad Config.
func New(cfg Config) (*Host, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	announce, err := parseAddrs(cfg.Announce)
	if err != nil {
		return nil, err
	}
	prefix := Protocols(cfg.Network)
	h := &Host{
		cfg:      cfg,
		proofID:  protocol.ID(prefix + "/proof/1"),
		framesID: protocol.ID(prefix + "/frames/1"),
		pullID:   protocol.ID(prefix + "/pull/1"),
		peersID:  protocol.ID(prefix + "/peers/1"),
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.gate = newGate(&h.count.GateRefusals, func(id peer.ID) bool { return h.dialer.isMember(id) })
	h.blames = newBlames()
	h.nonMembers = newNonMembers(cfg)
	h.peers = newTable(h)
	if h.host, err = newLibp2p(cfg, h.gate, announce, relayOptions(cfg, h.knows)); err != nil {
		h.cancel()
		return nil, fmt.Errorf("p2p: start libp2p: %w", err)
	}
	h.book = newBook(h)
	h.dialer = newDialer(h)
	if h.gossip, err = newGossip(h); err != nil {
		h.cancel()
		return nil, errors.Join(fmt.Errorf("p2p: start gossip: %w", err), h.host.Close())
	}
	h.SetMembers(cfg.Members)
	return h, nil
}

// newLibp2p builds the libp2p host with every part named: the parts that libp2p
// would add by default (AutoNAT, address discovery) have no use in a network
// whose nodes know their addresses.
func newLibp2p(cfg Config, g *gate, announce []ma.Multiaddr, more []libp2p.Option) (host.Host, error) {
	resources, err := newResources(cfg)
	if err != nil {
		return nil, err
	}
	conns, err := connmgr.NewConnManager(cfg.MaxPeers*3/4, cfg.MaxPeers, connmgr.WithGracePeriod(cfg.Grace))
	if err != nil {
		return nil, errors.Join(err, resources.Close())
	}
	options := []libp2p.Option{
		libp2p.Identity(cfg.Key),
		libp2p.UserAgent("aweigh/" + cfg.Version),
		libp2p.NoListenAddrs, // Start listens once every protocol has its handler
		libp2p.NoTransports,
		libp2p.Transport(tcp.NewTCPTransport, tcp.DisableReuseport()),
		libp2p.Transport(quic.NewTransport),
		libp2p.Security(noise.ID, noise.New),
		libp2p.Muxer(yamux.ID, yamux.DefaultTransport),
		libp2p.ResourceManager(resources),
		libp2p.ConnectionManager(conns),
		libp2p.ConnectionGater(g),
		libp2p.SwarmOpts(swarm.WithDialRanker(tcpFirst)),
		libp2p.DisableIdentifyAddressDiscovery(),
		libp2p.DisableMetrics(), // libp2p's go to a process-wide registry
	}
	if len(announce) > 0 {
		options = append(options, libp2p.AddrsFactory(func([]ma.Multiaddr) []ma.Multiaddr { return announce }))
	}
	return libp2p.New(append(options, more...)...)
}

// Start listens, and begins to dial and to call the handler.
func (h *Host) Start() error {
	listen, err := parseAddrs(h.cfg.Listen)
	if err != nil {
		return err
	}
	if err := h.peers.watch(); err != nil {
		return fmt.Errorf("p2p: watch connections: %w", err)
	}
	h.refuseCircuits()
	h.host.SetStreamHandler(h.proofID, h.answerProof)
	h.host.SetStreamHandler(h.framesID, h.receiveFrames)
	h.host.SetStreamHandler(h.pullID, h.answer(h.cfg.MaxFrame, h.cfg.Handler.Request))
	h.host.SetStreamHandler(h.peersID, h.answer(maxPeersRequest, h.answerPeers))
	if err := h.host.Network().Listen(listen...); err != nil {
		return fmt.Errorf("p2p: listen on %s: %w", strings.Join(h.cfg.Listen, ", "), err)
	}
	h.book.load()
	h.dialer.keep(h.cfg.Bootstrap)
	h.dialer.keep(h.cfg.Relays)
	h.spawn(h.dialer.run)
	h.spawn(h.exchange)
	h.spawn(h.watchMembers)
	h.spawn(h.keepSlots)
	return nil
}

// Close stops everything and waits for running handlers to return: the caller must
// end what they wait for first, or at the same time. A handler must not call it.
func (h *Host) Close() error {
	h.mu.Lock()
	if h.closing {
		h.mu.Unlock()
		return nil
	}
	h.closing = true
	h.mu.Unlock()

	h.book.save()
	h.cancel()
	err := h.host.Close()
	h.peers.close()
	h.running.Wait()
	return err
}

// enter reports whether the host is open, and keeps Close waiting until leave.
func (h *Host) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return false
	}
	h.running.Add(1)
	return true
}

// leave ends what enter began.
func (h *Host) leave() { h.running.Done() }

// spawn runs f in a goroutine that Close waits for.
func (h *Host) spawn(f func()) {
	if h.enter() {
		go func() {
			defer h.leave()
			f()
		}()
	}
}

// ID is the host's identity.
func (h *Host) ID() peer.ID { return h.host.ID() }

// knows reports whether a peer is connected and has proved to be of this network.
func (h *Host) knows(id peer.ID) bool { return h.peers.find(id) != nil }

// Addrs are the host's full addresses, ending in /p2p/ and its ID, as
// ParsePeers reads them.
func (h *Host) Addrs() []string {
	info := h.info()
	addrs, err := peer.AddrInfoToP2pAddrs(&info)
	if err != nil {
		return nil
	}
	text := make([]string, len(addrs))
	for i, a := range addrs {
		text[i] = a.String()
	}
	return text
}

// info is the host's identity and addresses, as another's Config.Bootstrap takes them.
func (h *Host) info() peer.AddrInfo {
	return peer.AddrInfo{ID: h.host.ID(), Addrs: h.host.Addrs()}
}

// Stats are the host's counts so far.
func (h *Host) Stats() Stats {
	s := snapshot(&h.count)
	s.Peers = uint64(h.peers.len())
	s.Known = uint64(h.book.len())
	return s
}

// PeerInfo describes a connected peer.
type PeerInfo struct {
	ID          peer.ID
	Addr        string // of the connection
	Inbound     bool   // the peer dialled this host
	Member      bool
	Agent       string // the peer's name of its program
	Since       time.Time
	QueueFrames int // waiting to be sent
	QueueBytes  int
}

// Peers lists the connected peers of this network, ordered by ID.
func (h *Host) Peers() []PeerInfo {
	remotes := h.peers.all()
	infos := make([]PeerInfo, 0, len(remotes))
	for _, r := range remotes {
		info := PeerInfo{ID: r.id, Since: r.since, Member: h.dialer.isMember(r.id)}
		if conns := h.host.Network().ConnsToPeer(r.id); len(conns) > 0 {
			info.Addr = conns[0].RemoteMultiaddr().String()
			info.Inbound = conns[0].Stat().Direction == network.DirInbound
		}
		if v, err := h.host.Peerstore().Get(r.id, "AgentVersion"); err == nil {
			info.Agent, _ = v.(string)
		}
		info.QueueFrames, info.QueueBytes = r.link.waiting()
		infos = append(infos, info)
	}
	slices.SortFunc(infos, func(a, b PeerInfo) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return infos
}

// SetMembers names the peers that this host must stay connected with. They are
// dialled for ever, with a backoff of 100 ms to 5 s, and their connections are
// never closed to make room. It replaces the members named before.
func (h *Host) SetMembers(ids []peer.ID) {
	added, removed := h.dialer.setMembers(ids)
	for _, id := range added {
		h.host.ConnManager().Protect(id, memberTag)
	}
	for _, id := range removed {
		h.host.ConnManager().Unprotect(id, memberTag)
	}
}

// memberTag marks members in libp2p's connection manager.
const memberTag = "aweigh-member"
