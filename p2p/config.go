package p2p

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	ds "github.com/ipfs/go-datastore"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/aweigh/aweigh"
)

// Config holds a host's identity, its peers and its budgets. Key and
// Network are required; every other zero value means the default given.
type Config struct {
	Key     crypto.PrivKey   // the host's identity, Ed25519
	Network aweigh.NetworkID // hosts of different networks never mix
	Version string           // told to peers as "aweigh/<version>"; "dev"
	Handler Handler          // called with what arrives

	// Admit reports whether this host gives gossip and addresses of others to a peer of the network. It is asked again
	// while it says no; once it has said yes, only Host.Disconnect ends that. Nil admits all.
	Admit func(peer.ID) bool

	Listen   []string // multiaddrs; every IPv4 interface, TCP and QUIC, any port
	Announce []string // multiaddrs told to peers instead of those listened on, for hosts behind NAT

	Relay  bool            // carry connections to peers of this network that cannot be dialled
	Relays []peer.AddrInfo // hosts with Relay through which others reach this one, which cannot be dialled

	Bootstrap []peer.AddrInfo // dialled while fewer than Target peers are connected
	Members   []peer.ID       // see Host.SetMembers
	Target    int             // peers to find through peer exchange; 16
	Datastore ds.Datastore    // remembers peers' addresses across restarts; nil forgets

	MaxPeers        int // above this, peers that are not members are disconnected; 256
	PerAddressConns int // connections that one IP address may hold; 128. libp2p's 8 breaks clusters behind NAT

	MaxFrame     int           // bytes of one frame, request or answer; 8 MiB
	MaxGossip    int           // bytes of one gossip message with its topic; 5 MiB
	QueueFrames  int           // frames waiting for one peer; 16,384
	QueueBytes   int           // bytes waiting for one peer; 32 MiB
	MaxRequests  int           // requests in progress with one peer in each direction; 16
	WriteTimeout time.Duration // a peer that takes 64 KiB slower than this loses its stream; 10 s
	PullTimeout  time.Duration // longest time a request may take; 30 s
	Grace        time.Duration // in which a new peer must prove that it knows the network; 10 s

	PeerMessages int // messages accepted from one peer per second; 20,000, with bursts of two seconds
	PeerBytes    int // bytes accepted from one peer per second; 64 MiB, with bursts of two seconds

	// Peers that are no members get less, and all of them together four times
	// what one gets. Neither is above PeerMessages and PeerBytes.
	NonMemberMessages int // messages accepted from one per second; 4,000
	NonMemberBytes    int // bytes accepted from one per second; 16 MiB
	NonMemberMemory   int // bytes that wait for all of them, and that they began to send, each; 64 MiB

	GossipMessages int // gossip accepted from all peers per second; 250, half of it from one peer

	Log *slog.Logger // nil is silent
}

// Handler receives the messages of peers. A nil function refuses its messages.
// Functions are called concurrently for different peers.
type Handler struct {
	// Frame receives the frames of one peer in order, from one goroutine. It
	// owns frame. While it blocks, only that peer is slowed.
	Frame func(from peer.ID, frame []byte)

	// Request answers a peer. The peer gets an error's text. ctx ends
	// when the answer is no longer wanted.
	Request func(ctx context.Context, from peer.ID, req []byte) ([]byte, error)

	// Gossip judges a message of a joined topic before it is passed on. The
	// peer is the one that passed it here, not its author. data is shared:
	// it must not be changed. Calls are concurrent, even for one peer.
	Gossip func(from peer.ID, topic Topic, data []byte) Verdict

	// Peer is called when a peer of this network comes or goes. Calls come from
	// one goroutine, in order, and must not block. A last frame of a peer may
	// follow the call with up false.
	Peer func(id peer.ID, up bool)
}

// Topic names a subject of gossip: at most maxTopic bytes.
type Topic string

// maxTopic is the length in bytes of the longest topic.
const maxTopic = 256

// Verdict is what becomes of a gossip message.
type Verdict uint8

const (
	Accept Verdict = iota // pass it on
	Ignore                // do not pass it on; no peer is to blame
	Reject                // invalid: the peer that sent it is to blame
)

// ErrConfig is returned by New for a Config that makes no sense.
var ErrConfig = errors.New("p2p: invalid configuration")

// withDefaults fills in zero values.
func (c Config) withDefaults() Config {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	defTime := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	def(&c.Target, 16)
	def(&c.MaxPeers, 256)
	def(&c.PerAddressConns, 128)
	def(&c.MaxFrame, 8<<20)
	def(&c.MaxGossip, 5<<20)
	def(&c.QueueFrames, 16384)
	def(&c.QueueBytes, 32<<20)
	def(&c.MaxRequests, 16)
	def(&c.PeerMessages, 20_000)
	def(&c.PeerBytes, 64<<20)
	def(&c.NonMemberMessages, 4000)
	def(&c.NonMemberBytes, 16<<20)
	def(&c.NonMemberMemory, 64<<20)
	def(&c.GossipMessages, 250)
	c.NonMemberMessages, c.NonMemberBytes = min(c.NonMemberMessages, c.PeerMessages), min(c.NonMemberBytes, c.PeerBytes)
	defTime(&c.WriteTimeout, 10*time.Second)
	defTime(&c.PullTimeout, 30*time.Second)
	defTime(&c.Grace, 10*time.Second)
	if c.Version == "" {
		c.Version = "dev"
	}
	if c.Admit == nil {
		c.Admit = func(peer.ID) bool { return true }
	}
	if c.Listen == nil {
		c.Listen = []string{"/ip4/0.0.0.0/tcp/0", "/ip4/0.0.0.0/udp/0/quic-v1"}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// validate reports what is wrong with c, wrapped in ErrConfig.
func (c Config) validate() error {
	switch {
	case c.Key == nil:
		return fmt.Errorf("%w: no key", ErrConfig)
	case c.Network.IsZero():
		return fmt.Errorf("%w: no network", ErrConfig)
	case c.MaxGossip <= maxTopic+topicPrefix:
		return fmt.Errorf("%w: gossip of %d bytes leaves no room for a topic", ErrConfig, c.MaxGossip)
	}
	positive := []struct {
		name string
		v    int64
	}{
		{"Target", int64(c.Target)}, {"MaxPeers", int64(c.MaxPeers)}, {"PerAddressConns", int64(c.PerAddressConns)},
		{"MaxFrame", int64(c.MaxFrame)}, {"QueueFrames", int64(c.QueueFrames)}, {"QueueBytes", int64(c.QueueBytes)},
		{"MaxRequests", int64(c.MaxRequests)}, {"PeerMessages", int64(c.PeerMessages)}, {"PeerBytes", int64(c.PeerBytes)},
		{"NonMemberMessages", int64(c.NonMemberMessages)}, {"NonMemberBytes", int64(c.NonMemberBytes)},
		{"NonMemberMemory", int64(c.NonMemberMemory)}, {"GossipMessages", int64(c.GossipMessages)},
		{"WriteTimeout", int64(c.WriteTimeout)}, {"PullTimeout", int64(c.PullTimeout)}, {"Grace", int64(c.Grace)},
	}
	for _, p := range positive {
		if p.v < 0 {
			return fmt.Errorf("%w: %s is negative", ErrConfig, p.name)
		}
	}
	return nil
}

// ParsePeers reads full multiaddrs, such as /ip4/192.0.2.1/tcp/4001/p2p/12D3…,
// and gathers the addresses of each peer.
func ParsePeers(addrs []string) ([]peer.AddrInfo, error) {
	parsed, err := parseAddrs(addrs)
	if err != nil {
		return nil, err
	}
	infos, err := peer.AddrInfosFromP2pAddrs(parsed...)
	if err != nil {
		return nil, fmt.Errorf("%w: a peer's address ends in /p2p/ and its ID: %w", ErrConfig, err)
	}
	return infos, nil
}

// parseAddrs reads multiaddrs.
func parseAddrs(addrs []string) ([]ma.Multiaddr, error) {
	parsed := make([]ma.Multiaddr, 0, len(addrs))
	for _, s := range addrs {
		a, err := ma.NewMultiaddr(s)
		if err != nil {
			return nil, fmt.Errorf("%w: address %q: %w", ErrConfig, s, err)
		}
		parsed = append(parsed, a)
	}
	return parsed, nil
}
