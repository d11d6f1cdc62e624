package p2p

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/aweigh/aweigh/internal/curve"
)

// maxBlocked bounds how many peers are blocked at once. An attacker can mint
// identities; blocking is a courtesy to the processor, not a defence.
const maxBlocked = 4096

// shunAfter is how many peers of one address may be blocked for their acts
// within shunMemory, before non-members from there are refused. An address may be
// that of a whole site behind NAT, so it takes many.
const (
	shunAfter  = 16
	shunMemory = 10 * time.Minute
	shunMin    = 10 * time.Second // doubles with each further one
	shunMax    = 10 * time.Minute
)

// gate refuses connections with blocked peers, and with non-members from addresses
// that many blocked peers came from. It is libp2p's ConnectionGater.
type gate struct {
	refusals *atomic.Uint64
	member   func(peer.ID) bool // members are never refused by their address

	mu      sync.Mutex
	until   map[peer.ID]time.Time
	shunned map[netip.Prefix]shunned
}

// shunned is an address's record: IPv4 by itself, IPv6 by its /56.
type shunned struct {
	blocked int       // peers from there
	last    time.Time // when the last of them was
	until   time.Time
}

func newGate(refusals *atomic.Uint64, member func(peer.ID) bool) *gate {
	return &gate{refusals: refusals, member: member, until: make(map[peer.ID]time.Time), shunned: make(map[netip.Prefix]shunned)}
}

// shun notes that a peer from an address was blocked for its acts.
func (g *gate) shun(from ma.Multiaddr) {
	place, ok := placeOf(from)
	if !ok {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if len(g.shunned) >= maxBlocked {
		clear(g.shunned)
	}
	s := g.shunned[place]
	if now.Sub(s.last) > shunMemory {
		s = shunned{}
	}
	s.blocked, s.last = s.blocked+1, now
	if over := s.blocked - shunAfter; over >= 0 {
		s.until = now.Add(min(shunMin<<min(over, 16), shunMax))
	}
	g.shunned[place] = s
}

// welcomes reports whether non-members from an address are not refused.
func (g *gate) welcomes(from ma.Multiaddr) bool {
	place, ok := placeOf(from)
	if !ok {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Now().After(g.shunned[place].until)
}

// placeOf is where an address's owner cannot easily get another from.
func placeOf(a ma.Multiaddr) (netip.Prefix, bool) {
	if _, err := a.ValueForProtocol(ma.P_CIRCUIT); err == nil { // the address is the relay's
		return netip.Prefix{}, false
	}
	ip, err := manet.ToIP(a)
	if err != nil {
		return netip.Prefix{}, false
	}
	addr, _ := netip.AddrFromSlice(ip)
	addr, bits := addr.Unmap(), 56
	if addr.Is4() {
		bits = 32
	}
	place, err := addr.Prefix(bits)
	return place, err == nil
}

// block refuses id for d.
func (g *gate) block(id peer.ID, d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if len(g.until) >= maxBlocked {
		for other, t := range g.until {
			if t.Before(now) || len(g.until) >= maxBlocked {
				delete(g.until, other)
			}
		}
	}
	g.until[id] = now.Add(d)
}

// allows reports whether id is not blocked.
func (g *gate) allows(id peer.ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	t, ok := g.until[id]
	if ok && time.Now().After(t) {
		delete(g.until, id)
		ok = false
	}
	return !ok
}

// admit is allows, counted.
func (g *gate) admit(id peer.ID) bool {
	ok := g.allows(id)
	if !ok {
		g.refusals.Add(1)
	}
	return ok
}

func (g *gate) InterceptPeerDial(id peer.ID) bool                               { return g.admit(id) }
func (g *gate) InterceptAddrDial(peer.ID, ma.Multiaddr) bool                    { return true }
func (g *gate) InterceptAccept(network.ConnMultiaddrs) bool                     { return true }
func (g *gate) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }
func (g *gate) InterceptSecured(dir network.Direction, id peer.ID, c network.ConnMultiaddrs) bool {
	if dir == network.DirInbound && !g.member(id) && !g.welcomes(c.RemoteMultiaddr()) {
		g.refusals.Add(1)
		return false
	}
	if !binding(id) {
		g.refusals.Add(1)
		return false
	}
	return g.admit(id)
}

// binding reports whether only the key's owner can authenticate itself as a
// peer: with an Ed25519 key of small order, any peer can.
func binding(id peer.ID) bool {
	key, err := id.ExtractPublicKey()
	if err != nil || key.Type() != crypto.Ed25519 { // not an Edwards curve: RSA, ECDSA, secp256k1
		return true
	}
	raw, err := key.Raw()
	return err == nil && curve.Ed25519(raw) == nil
}
