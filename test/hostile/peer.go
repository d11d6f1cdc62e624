package hostile

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	noise "github.com/libp2p/go-libp2p/p2p/security/noise"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"google.golang.org/protobuf/proto"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/votes"
)

// Peer is a libp2p host that looks like a node of a network from outside, and
// sends any bytes.
type Peer struct {
	Host    host.Host
	Network aweigh.NetworkID
}

// NewPeer makes a peer that listens nowhere. Without an identity it draws one;
// with that of a node it is that node, as far as others can tell.
func NewPeer(id aweigh.NetworkID, identity *votes.PrivateKey) (*Peer, error) {
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if identity != nil {
		key, err = libp2pKey(*identity)
	}
	if err != nil {
		return nil, err
	}
	h, err := libp2p.New(libp2p.Identity(key), libp2p.NoListenAddrs, libp2p.NoTransports,
		libp2p.Transport(tcp.NewTCPTransport, tcp.DisableReuseport()), libp2p.Security(noise.ID, noise.New),
		libp2p.ResourceManager(&network.NullResourceManager{}),
		libp2p.DisableRelay(), libp2p.ForceReachabilityPublic(), libp2p.DisableMetrics(), libp2p.DisableIdentifyAddressDiscovery())
	if err != nil {
		return nil, err
	}
	p := &Peer{Host: h, Network: id}
	// What a node sends here is not read: its windows fill, and stay full.
	h.SetStreamHandler(p.protocol("frames"), func(network.Stream) {})
	h.SetStreamHandler(p.protocol("proof"), func(s network.Stream) { _ = p.prove(s) })
	return p, nil
}

// libp2pKey is an Ed25519 key in libp2p's form.
func libp2pKey(k votes.PrivateKey) (crypto.PrivKey, error) {
	_, digits, _ := strings.Cut(k.Encode(), ":")
	seed, err := hex.DecodeString(digits)
	if err != nil {
		return nil, err
	}
	return crypto.UnmarshalEd25519PrivateKey(append(seed, k.Public().Bytes...))
}

// Close closes all connections.
func (p *Peer) Close() error { return p.Host.Close() }

// protocol is the ID of one of package p2p's protocols: proof, frames, pull or peers.
func (p *Peer) protocol(name string) protocol.ID {
	return protocol.ID(p2p.Protocols(p.Network) + "/" + name + "/1")
}

// Connect dials a node at a multiaddr that ends in its peer ID, and proves that it knows the network.
func (p *Peer) Connect(ctx context.Context, addr string) (peer.ID, error) {
	info, err := peer.AddrInfoFromString(addr)
	if err != nil {
		return "", err
	}
	if err := p.Host.Connect(ctx, *info); err != nil {
		return info.ID, err
	}
	s, err := p.Open(ctx, info.ID, "proof")
	if err != nil {
		return info.ID, err
	}
	return info.ID, p.prove(s)
}

// prove exchanges proofs of knowing the network, as nodes do before anything else.
func (p *Peer) prove(s network.Stream) error {
	defer s.Close()
	mine := p2p.Proof(p.Network, p.Host.ID(), s.Conn().RemotePeer())
	if err := Write(s, mine[:], 5*time.Second); err != nil {
		return err
	}
	if err := s.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	_, err := io.ReadFull(s, mine[:])
	return err
}

// Connected reports whether a node has not hung up.
func (p *Peer) Connected(to peer.ID) bool {
	return p.Host.Network().Connectedness(to) == network.Connected
}

// Drop closes the connections with a node.
func (p *Peer) Drop(to peer.ID) error { return p.Host.Network().ClosePeer(to) }

// Open opens a stream of one of package p2p's protocols.
func (p *Peer) Open(ctx context.Context, to peer.ID, name string) (network.Stream, error) {
	return p.Host.NewStream(network.WithNoDial(ctx, "connected before"), to, p.protocol(name))
}

// Frame is a frame as it goes over a stream: its length before it.
func Frame(body []byte) []byte {
	return append(binary.AppendUvarint(nil, uint64(len(body))), body...)
}

// Write writes within a time, since a victim that limits its input lets writers wait.
func Write(s network.Stream, b []byte, within time.Duration) error {
	if err := s.SetWriteDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	_, err := s.Write(b)
	return err
}

// Gossip opens a stream of pubsub.
func (p *Peer) Gossip(ctx context.Context, to peer.ID) (network.Stream, error) {
	return p.Host.NewStream(network.WithNoDial(ctx, "connected before"), to, "/meshsub/1.1.0")
}

// Topic is the pubsub topic of the bucket that a topic falls into.
func (p *Peer) Topic(topic string) string {
	sum := sha256.Sum256([]byte(topic))
	return fmt.Sprintf("%s/gossip/1/%d", p2p.Protocols(p.Network), int(sum[0])%64)
}

// Packet is one packet of pubsub with messages for a topic, as it goes over a stream.
func (p *Peer) Packet(topic string, messages ...[]byte) ([]byte, error) {
	name := p.Topic(topic)
	rpc := new(pb.RPC)
	for _, m := range messages {
		data := binary.BigEndian.AppendUint16(nil, uint16(len(topic)))
		data = append(append(data, topic...), m...)
		rpc.Publish = append(rpc.Publish, &pb.Message{Data: data, Topic: &name})
	}
	raw, err := proto.Marshal(rpc)
	return Frame(raw), err
}
