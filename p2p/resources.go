package p2p

import (
	"net/netip"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/x/rate"
)

// maxMemory bounds what libp2p reserves for its buffers, in bytes.
const maxMemory = 1 << 30

// newResources sets libp2p's limits in terms of Config, so that they do not
// depend on the machine. libp2p's own allow one IPv4 address 8 connections and
// a new one every 5 s; containers and NAT look just like that.
func newResources(cfg Config) (network.ResourceManager, error) {
	scaling := rcmgr.DefaultLimits
	libp2p.SetDefaultServiceLimits(&scaling)

	// Two peers that dial each other at once hold two connections for a while,
	// and a network that restarts all at once arrives all at once.
	conns := rcmgr.LimitVal(4*cfg.MaxPeers + 64)
	perPeer := rcmgr.LimitVal(8*cfg.MaxRequests + 64)
	limits := rcmgr.PartialLimitConfig{
		System: rcmgr.ResourceLimits{
			Conns: conns, ConnsInbound: conns, ConnsOutbound: conns, FD: conns,
			Streams: 64 * conns, StreamsInbound: 32 * conns, StreamsOutbound: 32 * conns,
			Memory: maxMemory,
		},
		Transient: rcmgr.ResourceLimits{
			Conns: conns / 2, ConnsInbound: conns / 2, ConnsOutbound: conns / 2, FD: conns / 2,
			Streams: 2 * conns, StreamsInbound: conns, StreamsOutbound: conns,
			Memory: maxMemory / 4,
		},
		PeerDefault: rcmgr.ResourceLimits{
			Conns: 8, ConnsInbound: 8, ConnsOutbound: 8, FD: 8,
			Streams: 2 * perPeer, StreamsInbound: perPeer, StreamsOutbound: perPeer,
			Memory: maxMemory / 8,
		},
		ProtocolDefault:     rcmgr.ResourceLimits{Streams: rcmgr.Unlimited, StreamsInbound: rcmgr.Unlimited, StreamsOutbound: rcmgr.Unlimited},
		ProtocolPeerDefault: rcmgr.ResourceLimits{Streams: 2 * perPeer, StreamsInbound: perPeer, StreamsOutbound: perPeer},
	}.Build(scaling.Scale(maxMemory, 4*cfg.MaxPeers+64))

	n := cfg.PerAddressConns
	local := []rate.PrefixLimit{
		{Prefix: netip.MustParsePrefix("127.0.0.0/8")},
		{Prefix: netip.MustParsePrefix("::1/128")},
	}
	arrivals := rate.Limit{RPS: float64(n) / 8, Burst: 2 * n}
	return rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(limits),
		rcmgr.WithMetricsDisabled(),
		rcmgr.WithLimitPerSubnet(
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 32, ConnCount: n}},
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 56, ConnCount: n}, {PrefixLength: 48, ConnCount: 8 * n}}),
		rcmgr.WithConnRateLimiters(&rate.Limiter{
			NetworkPrefixLimits: local,
			SubnetRateLimiter: rate.SubnetLimiter{
				IPv4SubnetLimits: []rate.SubnetLimit{{PrefixLength: 32, Limit: arrivals}},
				IPv6SubnetLimits: []rate.SubnetLimit{{PrefixLength: 56, Limit: arrivals}},
				GracePeriod:      time.Minute,
			},
		}))
}
