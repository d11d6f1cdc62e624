package p2p

import (
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"
)

// quicDelay is the head start of TCP over QUIC.
const quicDelay = 250 * time.Millisecond

// tcpFirst ranks a peer's addresses as libp2p does, except that QUIC waits for
// TCP and not the reverse: a round trip over TCP with Noise costs half the time
// and less processor than one over QUIC, and these connections live long, so
// that QUIC's faster handshake does not matter.
func tcpFirst(addrs []ma.Multiaddr) []network.AddrDelay {
	var udp, rest []ma.Multiaddr
	for _, a := range addrs {
		if _, err := a.ValueForProtocol(ma.P_QUIC_V1); err == nil {
			udp = append(udp, a)
		} else {
			rest = append(rest, a)
		}
	}
	ranked := swarm.DefaultDialRanker(rest)
	var delay time.Duration
	if len(ranked) > 0 {
		delay = quicDelay
	}
	for _, r := range swarm.DefaultDialRanker(udp) {
		r.Delay += delay
		ranked = append(ranked, r)
	}
	return ranked
}
